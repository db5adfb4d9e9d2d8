//! What makes connections to the server that takes what is written, wherever it is at the moment.
//!
//! Where there are several servers, a new connection is what finds the primary: one that was kept breaks when its server
//! dies, and says `READONLY` when its server has become a replica. The crate `redis` has a client of Sentinels too, which
//! waits for those without end.

use crate::cluster::Cluster;
use crate::dialer::{Deadline, Dialer, wait_at_most};
use crate::slots::slot;
use crate::{Address, Connection, Place, RedisServer, Sentinels};
use redis::{ErrorKind, RedisError, RedisResult, Role, ServerErrorKind, cmd};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Connects to one server, which may be another one each time, or to those of a cluster.
pub struct Client {
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
    Servers { candidates: Candidates, servers: Dialer },
    Sentinels { candidates: Candidates, sentinels: Dialer, primary: String, servers: Dialer },
    Cluster(Cluster),
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
        let addresses = server.place.addresses();
        let refused = |cause| ClientError::Server { url: server.url(), cause };
        addresses.iter().try_for_each(|each| servers.check(each)).map_err(refused)?;
        let candidates = Candidates::new(addresses);
        let route = match &server.place {
            Place::OneOf(_) => Route::Servers { candidates, servers },
            Place::ToldBy(Sentinels { primary, username, password, .. }) => Route::Sentinels {
                candidates,
                sentinels: servers.with_login(username.as_deref(), password.as_deref()),
                primary: primary.clone(),
                servers,
            },
            Place::Cluster(_) => Route::Cluster(Cluster::new(servers, server.timeout, addresses)),
        };
        Ok(Self { route, url: server.url(), timeout: server.timeout })
    }

    /// Without secrets.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// For connecting, and for each answer.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Keys with the same number can be changed in one transaction, or by one script.
    pub fn slot(&self, key: &str) -> u16 {
        match &self.route {
            Route::Servers { .. } | Route::Sentinels { .. } => 0,
            Route::Cluster(_) => slot(key),
        }
    }

    /// A new connection, on which each answer is waited for until the time limit; for what is about this key, until
    /// [`Connection::about`] names another. Blocks, no longer than that.
    ///
    /// # Errors
    /// When the server cannot be reached in time, does not let us in, or when there is none that takes what is written.
    pub fn connect(&self, key: &str) -> RedisResult<Connection> {
        let connection = match &self.route {
            Route::Servers { candidates, servers } => self.connect_to_one_of(candidates, servers),
            Route::Sentinels { candidates, sentinels, primary, servers } => {
                let deadline = Deadline::after(self.timeout, candidates.addresses.len() + 1);
                candidates.first(|sentinel| {
                    let mut connection = sentinels.dial(sentinel, deadline)?;
                    let address = told(&mut connection, primary)?;
                    primary_at(servers, &address, deadline)
                })
            }
            Route::Cluster(cluster) => return cluster.connect(key).map(Connection::to_cluster),
        }?;
        wait_at_most(&connection, self.timeout)?;
        Ok(Connection::to_server(connection))
    }

    fn connect_to_one_of(&self, candidates: &Candidates, servers: &Dialer) -> RedisResult<redis::Connection> {
        let deadline = Deadline::after(self.timeout, candidates.addresses.len());
        match candidates.addresses.as_slice() {
            [only] => servers.dial(only, deadline),
            _ => candidates.first(|address| primary_at(servers, address, deadline)),
        }
    }
}

/// Whether the error is one of the connection, which has to be made anew, and not an answer of the server. So it is with
/// the answers of a server that was the primary when the connection was made and is not any more, and with those of a cluster
/// of which too many are away, or which sends from one to the other; nothing of what was asked for was done then.
pub fn is_broken(error: &RedisError) -> bool {
    let is_of_place = matches!(
        error.kind(),
        ErrorKind::Server(
            // A transaction is refused by `EXEC`, its parts before that.
            ServerErrorKind::ReadOnly
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ExecAbort
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::Moved
                | ServerErrorKind::Ask
        )
    );
    is_of_place || error.is_io_error() || error.is_connection_dropped() || error.is_timeout()
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
        let (index, found) = first_of(&self.addresses, self.first.load(Ordering::Relaxed), ask)?;
        self.first.store(index, Ordering::Relaxed);
        Ok(found)
    }
}

/// What the first has of whom it is to be had, and who it is.
pub(crate) fn first_of<T>(
    addresses: &[Address],
    begin: usize,
    ask: impl Fn(&Address) -> RedisResult<T>,
) -> RedisResult<(usize, T)> {
    let number = addresses.len();
    let mut reasons = Vec::new();
    for index in (0..number).map(|offset| (begin + offset) % number) {
        let address = &addresses[index];
        match ask(address) {
            Ok(found) => return Ok((index, found)),
            Err(error) => reasons.push(format!("{address}: {error}")),
        }
    }
    Err((ErrorKind::Io, "there is no primary", reasons.join("; ")).into())
}

/// What a Sentinel says where the primary is.
fn told(sentinel: &mut redis::Connection, primary: &str) -> RedisResult<Address> {
    let place: Option<(String, u16)> =
        cmd("SENTINEL").arg("get-master-addr-by-name").arg(primary).query(sentinel)?;
    let unknown = || (ErrorKind::InvalidClientConfig, "it knows no primary of the name", primary.to_owned());
    let (host, port) = place.ok_or_else(unknown)?;
    Ok(Address { host, port })
}

fn primary_at(dialer: &Dialer, address: &Address, deadline: Deadline) -> RedisResult<redis::Connection> {
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
pub(crate) mod testing;
#[cfg(test)]
mod tests;
