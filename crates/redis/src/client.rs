//! What makes connections to the server that takes what is written, wherever it is at the moment.
//!
//! Where there are several servers, a new connection is what finds the primary: one that was kept breaks when its server
//! dies, and says `READONLY` when its server has become a replica. The crate `redis` has a client of Sentinels too, which
//! waits for those without end.

use crate::dialer::{Deadline, Dialer, wait_at_most};
use crate::{Address, Place, RedisServer};
use redis::{Connection, ErrorKind, RedisError, RedisResult, Role, ServerErrorKind, cmd};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Connects to one server, which may be another one each time.
pub struct Client {
    servers: Dialer,
    route: Route,
    url: String,
    timeout: Duration,
}

/// What is wrong with the description of a server.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the roots in {path} cannot be read: {cause}", path = .0.display(), cause = .1)]
    Roots(PathBuf, io::Error),
    #[error("{url}: {cause}")]
    Server { url: String, cause: RedisError },
}

enum Route {
    Servers(Candidates),
    Sentinels { candidates: Candidates, dialer: Dialer, primary: String },
}

/// Who is asked, one after the other.
struct Candidates {
    addresses: Vec<Address>,
    /// Which of them was right the last time.
    first: AtomicUsize,
}

impl Client {
    /// Connects to nothing yet. Blocks while a file of roots is read.
    ///
    /// # Errors
    /// When that file cannot be read, or has no certificates.
    pub fn new(server: &RedisServer) -> Result<Self, ClientError> {
        let servers = Dialer::of(server)?;
        let route = match &server.place {
            Place::OneOf(addresses) => Route::Servers(Candidates::new(addresses)),
            Place::ToldBy(sentinels) => Route::Sentinels {
                candidates: Candidates::new(&sentinels.addresses),
                dialer: servers.with_login(sentinels.username.as_deref(), sentinels.password.as_deref()),
                primary: sentinels.primary.clone(),
            },
        };
        let client = Self { servers, route, url: server.url(), timeout: server.timeout };
        let refused = |cause| ClientError::Server { url: server.url(), cause };
        client
            .candidates()
            .addresses
            .iter()
            .try_for_each(|each| client.servers.check(each))
            .map_err(refused)?;
        Ok(client)
    }

    /// Without secrets.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// For connecting, and for each answer.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A new connection, on which each answer is waited for until the time limit. Blocks, no longer than that.
    ///
    /// # Errors
    /// When the server cannot be reached in time, does not let us in, or when there is none that takes what is written.
    pub fn connect(&self) -> RedisResult<Connection> {
        let connection = match &self.route {
            Route::Servers(candidates) => self.connect_to_one_of(candidates),
            Route::Sentinels { candidates, dialer, primary } => {
                let deadline = Deadline::after(self.timeout, candidates.addresses.len() + 1);
                candidates.first(|sentinel| {
                    let mut connection = dialer.dial(sentinel, deadline)?;
                    let address = told(&mut connection, primary)?;
                    primary_at(&self.servers, &address, deadline)
                })
            }
        }?;
        wait_at_most(&connection, self.timeout)?;
        Ok(connection)
    }

    fn connect_to_one_of(&self, candidates: &Candidates) -> RedisResult<Connection> {
        let deadline = Deadline::after(self.timeout, candidates.addresses.len());
        match candidates.addresses.as_slice() {
            [only] => self.servers.dial(only, deadline),
            _ => candidates.first(|address| primary_at(&self.servers, address, deadline)),
        }
    }

    fn candidates(&self) -> &Candidates {
        match &self.route {
            Route::Servers(candidates) | Route::Sentinels { candidates, .. } => candidates,
        }
    }
}

/// Whether the error is one of the connection, which has to be made anew, and not an answer of the server. So it is with
/// the answers of a server that was the primary when the connection was made and is not any more; nothing of what was asked
/// for was done then.
pub fn is_broken(error: &RedisError) -> bool {
    let is_of_replica = matches!(
        error.kind(),
        ErrorKind::Server(
            // A transaction is refused by `EXEC`, its parts before that.
            ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown | ServerErrorKind::ExecAbort
        )
    );
    is_of_replica || error.is_io_error() || error.is_connection_dropped() || error.is_timeout()
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Candidates {
    fn new(addresses: &[Address]) -> Self {
        Self { addresses: addresses.to_vec(), first: AtomicUsize::new(0) }
    }

    /// What the first has of whom it is to be had, beginning with who had it the last time.
    fn first<T>(&self, ask: impl Fn(&Address) -> RedisResult<T>) -> RedisResult<T> {
        let number = self.addresses.len();
        let begin = self.first.load(Ordering::Relaxed);
        let mut reasons = Vec::new();
        for index in (0..number).map(|offset| (begin + offset) % number) {
            let address = &self.addresses[index];
            match ask(address) {
                Ok(found) => {
                    self.first.store(index, Ordering::Relaxed);
                    return Ok(found);
                }
                Err(error) => reasons.push(format!("{address}: {error}")),
            }
        }
        Err((ErrorKind::Io, "there is no primary", reasons.join("; ")).into())
    }
}

/// What a Sentinel says where the primary is.
fn told(sentinel: &mut Connection, primary: &str) -> RedisResult<Address> {
    let place: Option<(String, u16)> =
        cmd("SENTINEL").arg("get-master-addr-by-name").arg(primary).query(sentinel)?;
    let unknown = || (ErrorKind::InvalidClientConfig, "it knows no primary of the name", primary.to_owned());
    let (host, port) = place.ok_or_else(unknown)?;
    Ok(Address { host, port })
}

fn primary_at(dialer: &Dialer, address: &Address, deadline: Deadline) -> RedisResult<Connection> {
    let mut connection = dialer.dial(address, deadline)?;
    match cmd("ROLE").query(&mut connection) {
        Ok(Role::Primary { .. }) => Ok(connection),
        Ok(_) => Err((ErrorKind::Io, "the server is a replica", address.to_string()).into()),
        // Who may not ask hears it when something is to be written.
        Err(error) if error.code() == Some("NOPERM") => Ok(connection),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
