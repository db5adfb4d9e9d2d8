//! Connections to one address.

use crate::client::ClientError;
use crate::{Address, RedisServer, RedisTls};
use redis::io::tcp::TcpSettings;
use redis::{
    Connection, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisError, RedisResult,
    TlsCertificates,
};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A login, and how to get to where it counts.
pub(crate) struct Dialer {
    login: RedisConnectionInfo,
    tls: Option<Tls>,
}

#[derive(Clone)]
struct Tls {
    insecure: bool,
    /// A PEM file; `None`: those of the system.
    roots: Option<Vec<u8>>,
}

/// When all has to be done by.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    end: Instant,
    /// What one connection may take of it.
    share: Duration,
}

impl Dialer {
    /// To servers. Blocks while a file of roots is read.
    pub fn of(server: &RedisServer) -> Result<Self, ClientError> {
        let login = login(server.username.as_deref(), server.password.as_deref());
        let tls = server.tls.as_ref().map(tls).transpose()?;
        Ok(Self { login: login.set_db(server.database.into()), tls })
    }

    /// By the same way, to others who have a login of their own and no databases.
    pub fn with_login(&self, username: Option<&str>, password: Option<&str>) -> Self {
        Self { login: login(username, password), tls: self.tls.clone() }
    }

    /// A connection, on which each answer is waited for as long as for the connection. Blocks.
    pub fn dial(&self, address: &Address, deadline: Deadline) -> RedisResult<Connection> {
        let timeout = deadline.next()?;
        let connection = self.client(address)?.get_connection_with_timeout(timeout)?;
        wait_at_most(&connection, timeout)?;
        Ok(connection)
    }

    fn client(&self, address: &Address) -> RedisResult<redis::Client> {
        let Address { host, port } = address.clone();
        let place = match &self.tls {
            Some(tls) => ConnectionAddr::TcpTls { host, port, insecure: tls.insecure, tls_params: None },
            None if host.starts_with('/') => ConnectionAddr::Unix(PathBuf::from(host)),
            None => ConnectionAddr::Tcp(host, port),
        };
        let info = place
            .into_connection_info()?
            .set_redis_settings(self.login.clone())
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        match &self.tls {
            Some(Tls { roots, .. }) => {
                let certificates = TlsCertificates { client_tls: None, root_cert: roots.clone() };
                redis::Client::build_with_tls(info, certificates)
            }
            None => redis::Client::open(info),
        }
    }

    /// What is wrong with an address or with the roots, which is known without connecting.
    pub fn check(&self, address: &Address) -> RedisResult<()> {
        self.client(address).map(drop)
    }
}

impl Deadline {
    pub fn after(time: Duration, connections: usize) -> Self {
        let connections = u32::try_from(connections).unwrap_or(u32::MAX).max(1);
        Self { end: Instant::now() + time, share: time / connections }
    }

    fn next(&self) -> RedisResult<Duration> {
        let left = self.end.saturating_duration_since(Instant::now()).min(self.share);
        if left.is_zero() {
            return Err(RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut)));
        }
        Ok(left)
    }
}

/// Each answer.
pub(crate) fn wait_at_most(connection: &Connection, timeout: Duration) -> RedisResult<()> {
    connection.set_read_timeout(Some(timeout))?;
    connection.set_write_timeout(Some(timeout))
}

fn login(username: Option<&str>, password: Option<&str>) -> RedisConnectionInfo {
    let mut login = RedisConnectionInfo::default();
    if let Some(username) = username {
        login = login.set_username(username);
    }
    if let Some(password) = password {
        login = login.set_password(password);
    }
    login
}

fn tls(verification: &RedisTls) -> Result<Tls, ClientError> {
    let read = |file: &PathBuf| std::fs::read(file).map_err(|error| ClientError::Roots(file.clone(), error));
    Ok(match verification {
        RedisTls::SystemRoots => Tls { insecure: false, roots: None },
        RedisTls::Insecure => Tls { insecure: true, roots: None },
        RedisTls::Roots(file) => Tls { insecure: false, roots: Some(read(file)?) },
    })
}
