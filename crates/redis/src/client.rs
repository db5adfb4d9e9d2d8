//! What makes connections.

use crate::{RedisServer, RedisTls};
use redis::io::tcp::TcpSettings;
use redis::{
    Connection, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisError, RedisResult,
    TlsCertificates,
};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Connects to one server.
pub struct Client {
    client: redis::Client,
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

impl Client {
    /// Connects to nothing yet. Blocks while a file of roots is read.
    ///
    /// # Errors
    /// When that file cannot be read, or has no certificates.
    pub fn new(server: &RedisServer) -> Result<Self, ClientError> {
        let url = server.url();
        let refused = |cause| ClientError::Server { url: server.url(), cause };
        let mut login = RedisConnectionInfo::default().set_db(server.database.into());
        if let Some(username) = &server.username {
            login = login.set_username(username);
        }
        if let Some(password) = &server.password {
            login = login.set_password(password);
        }
        let info = address(server)
            .into_connection_info()
            .map_err(refused)?
            .set_redis_settings(login)
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let client = match &server.tls {
            Some(verification) => {
                let certificates = TlsCertificates { client_tls: None, root_cert: roots(verification)? };
                redis::Client::build_with_tls(info, certificates).map_err(refused)?
            }
            None => redis::Client::open(info).map_err(refused)?,
        };
        Ok(Self { client, url, timeout: server.timeout })
    }

    /// Without secrets.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// For connecting, and for each answer.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A new connection, on which each answer is waited for until the time limit. Blocks.
    ///
    /// # Errors
    /// When the server cannot be reached in time, or does not let us in.
    pub fn connect(&self) -> RedisResult<Connection> {
        let connection = self.client.get_connection_with_timeout(self.timeout)?;
        connection.set_read_timeout(Some(self.timeout))?;
        connection.set_write_timeout(Some(self.timeout))?;
        Ok(connection)
    }
}

/// Whether the error is one of the connection, which has to be made anew, and not an answer of the server.
pub fn is_broken(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.is_timeout()
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url).finish_non_exhaustive()
    }
}

fn address(server: &RedisServer) -> ConnectionAddr {
    let (host, port) = (server.host.clone(), server.port);
    match &server.tls {
        Some(verification) => {
            let insecure = *verification == RedisTls::Insecure;
            ConnectionAddr::TcpTls { host, port, insecure, tls_params: None }
        }
        None if host.starts_with('/') => ConnectionAddr::Unix(host.into()),
        None => ConnectionAddr::Tcp(host, port),
    }
}

/// `None`: those of the system.
fn roots(verification: &RedisTls) -> Result<Option<Vec<u8>>, ClientError> {
    let RedisTls::Roots(file) = verification else { return Ok(None) };
    std::fs::read(file).map(Some).map_err(|error| ClientError::Roots(file.clone(), error))
}
