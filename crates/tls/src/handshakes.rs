//! How many handshakes may be under way on an I/O thread, and for how long.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Of one I/O thread; what clones share. When there is no room, the oldest handshake makes way: a client that means it
/// is through after two round trips, so those that stall are the oldest, and cannot lock others out.
#[derive(Debug, Clone)]
pub struct Handshakes(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: NonZeroUsize,
    timeout: Duration,
    next: Cell<u64>,
    /// By age. A sender's end displaces its handshake.
    under_way: RefCell<BTreeMap<u64, oneshot::Sender<Infallible>>>,
}

/// 1024 handshakes of 10 seconds at most.
impl Default for Handshakes {
    fn default() -> Self {
        Self::new(NonZeroUsize::new(1024).expect("invariant: 1024 is not 0"), Duration::from_secs(10))
    }
}

impl Handshakes {
    pub fn new(limit: NonZeroUsize, timeout: Duration) -> Self {
        Self(Rc::new(Inner { limit, timeout, next: Cell::default(), under_way: RefCell::default() }))
    }

    /// How many are under way now.
    pub fn count(&self) -> usize {
        self.0.under_way.borrow().len()
    }

    /// Runs one to its end, its time-out, or until it makes way for a younger one.
    pub(crate) async fn run<T>(
        &self,
        handshake: impl Future<Output = Result<T, HandshakeError>>,
    ) -> Result<T, HandshakeError> {
        let mut place = self.enter();
        tokio::select! {
            result = tokio::time::timeout(self.0.timeout, handshake) => result.unwrap_or(Err(HandshakeError::TimedOut)),
            _ = &mut place.displaced => Err(HandshakeError::Displaced),
        }
    }

    fn enter(&self) -> Place {
        let mut under_way = self.0.under_way.borrow_mut();
        while under_way.len() >= self.0.limit.get() {
            under_way.pop_first();
        }
        let number = self.0.next.replace(self.0.next.get() + 1);
        let (sender, displaced) = oneshot::channel();
        under_way.insert(number, sender);
        Place { number, displaced, handshakes: self.clone() }
    }
}

struct Place {
    number: u64,
    displaced: oneshot::Receiver<Infallible>,
    handshakes: Handshakes,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.handshakes.0.under_way.borrow_mut().remove(&self.number);
    }
}

/// Why there is no connection. It is the inner error of the [`io::Error`] of [`Acceptor::accept`](crate::Acceptor::accept).
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error("the TLS handshake took too long")]
    TimedOut,
    #[error("the TLS handshake made way for younger ones")]
    Displaced,
    #[error("the client asked for {0:?}, which no site has")]
    UnknownName(String),
    #[error("the client named no site, and there is no default")]
    NoName,
    #[error("the client sent an HTTP request without TLS")]
    PlainHttp,
    #[error("there is no certificate for {0:?} yet")]
    NoCertificate(String),
    #[error("{0:?} may have no certificate on demand: `ask` has refused it, or could not be asked")]
    NotAllowed(String),
    #[error("a CA looked for a challenge for {0:?}")]
    Challenge(String),
    #[error("the client left within the TLS handshake")]
    Left,
    #[error("the TLS handshake failed: {0}")]
    Failed(String),
    #[error("the TLS handshake failed: {0}")]
    Io(io::Error),
}

impl HandshakeError {
    pub(crate) fn of(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                Self::Left
            }
            _ => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                Some(tls) => Self::Failed(tls.to_string()),
                None => Self::Io(error),
            },
        }
    }
}

impl From<HandshakeError> for io::Error {
    fn from(error: HandshakeError) -> Self {
        let kind = match &error {
            HandshakeError::TimedOut => io::ErrorKind::TimedOut,
            HandshakeError::Displaced => io::ErrorKind::ConnectionAborted,
            HandshakeError::Left => io::ErrorKind::UnexpectedEof,
            HandshakeError::Io(inner) => inner.kind(),
            HandshakeError::Challenge(_) => io::ErrorKind::ConnectionAborted,
            HandshakeError::UnknownName(_)
            | HandshakeError::NoName
            | HandshakeError::NoCertificate(_)
            | HandshakeError::NotAllowed(_)
            | HandshakeError::PlainHttp
            | HandshakeError::Failed(_) => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}
