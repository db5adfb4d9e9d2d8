//! HTTP/3: the UDP sockets of listening addresses, on the I/O thread that accepts. It receives for all connections, each of which
//! runs on one of the I/O threads, as those of TCP do.

use regent_http::h3::{Arriving, Came, Endpoint};
use regent_metrics::ConnectionMeter;
use regent_tls::QuicServer;
use rustix::fd::OwnedFd;
use std::convert::Infallible;
use std::io;
use std::net::UdpSocket;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_local};

/// Wait before a socket that failed is used anew.
const PAUSE: Duration = Duration::from_secs(1);

/// Held as long as a connection has to receive.
pub type Receiving = mpsc::Sender<Infallible>;

/// The UDP sockets of a server.
pub(crate) struct Datagrams {
    prepared: Vec<Port>,
    open: Vec<OpenPort>,
    /// Of which connections hold clones.
    receiving: Receiving,
    /// Ends when none does.
    none_receives: mpsc::Receiver<Infallible>,
    meter: Rc<ConnectionMeter>,
}

/// The UDP socket of a listening address.
struct Port {
    /// Of its address.
    number: usize,
    endpoint: Endpoint,
    /// Has a descriptor of its own.
    socket: Rc<UdpSocket>,
}

struct OpenPort {
    number: usize,
    socket: Rc<UdpSocket>,
    task: JoinHandle<()>,
}

/// Connections that are there go on as long as they have something to do.
impl Drop for OpenPort {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Datagrams {
    pub fn new(meter: Rc<ConnectionMeter>) -> Self {
        let (receiving, none_receives) = mpsc::channel(1);
        Self { prepared: Vec::new(), open: Vec::new(), receiving, none_receives, meter }
    }

    /// Connections can come from this socket too, once [`Self::begin`] is called. Must be called within a runtime.
    pub fn prepare(&mut self, number: usize, socket: UdpSocket) -> io::Result<()> {
        let endpoint = endpoint(&socket)?;
        self.prepared.push(Port { number, endpoint, socket: Rc::new(socket) });
        Ok(())
    }

    /// From now on those that come by what was prepared are given to `serve`, with the number of their address.
    pub fn begin(&mut self, serve: impl Fn(Box<Arriving>, usize, Receiving) + Clone + 'static) {
        for port in self.prepared.drain(..) {
            let (number, receiving, serve) = (port.number, self.receiving.downgrade(), serve.clone());
            let socket = Rc::clone(&port.socket);
            let meter = Rc::clone(&self.meter);
            let task = spawn_local(port.accept(move |came| match (came, receiving.upgrade()) {
                (Came::Client(arriving), Some(receiving)) => serve(arriving, number, receiving),
                // The server stops, and the client is refused.
                (Came::Client(_), None) => meter.quic_refused(),
                (Came::Unproven, _) => meter.quic_retried(),
            }));
            self.open.push(OpenPort { number, socket, task });
        }
    }

    pub fn discard(&mut self) {
        self.prepared.clear();
    }

    /// No connection comes from this address any more.
    pub fn close(&mut self, number: usize) {
        self.open.retain(|port| port.number != number);
    }

    /// Other descriptors of all that connections come from, each with the number of its address.
    pub fn lend(&self) -> io::Result<Vec<(usize, OwnedFd)>> {
        self.open.iter().map(|port| Ok((port.number, port.socket.try_clone()?.into()))).collect()
    }

    /// Refuses those that come from now on, and ends when no connection has anything to receive.
    pub async fn none_left(self) {
        let Self { prepared, open, receiving, mut none_receives, .. } = self;
        drop((prepared, receiving));
        // Nothing is ever sent: it ends with the last clone.
        let _ = none_receives.recv().await;
        drop(open);
    }
}

impl Port {
    async fn accept(self, serve: impl Fn(Came)) {
        let Self { number, mut endpoint, socket } = self;
        loop {
            while let Some(came) = endpoint.next().await {
                serve(came);
            }
            tracing::error!(address = number, "a UDP socket failed: HTTP/3 begins anew there");
            tokio::time::sleep(PAUSE).await;
            match self::endpoint(&socket) {
                Ok(anew) => endpoint = anew,
                Err(error) => tracing::error!(%error, "HTTP/3 could not begin anew"),
            }
        }
    }
}

fn endpoint(socket: &UdpSocket) -> io::Result<Endpoint> {
    Endpoint::new(socket.try_clone()?, QuicServer::of_endpoint())
}
