//! Where a server is and how it is spoken to, as plain data.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A server of Redis or Valkey.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisServer {
    /// A name, an address, or the absolute path of a Unix socket.
    pub host: String,
    pub port: u16,
    pub username: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    /// For connecting, and for each answer.
    pub timeout: Duration,
    /// `None`: without TLS.
    pub tls: Option<RedisTls>,
}

/// What the certificate of Redis is verified with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisTls {
    SystemRoots,
    /// A PEM file of roots.
    Roots(PathBuf),
    /// It is not: whoever is in between can read and change everything.
    Insecure,
}

impl RedisServer {
    /// One for which nothing else is to be said.
    pub fn at(host: &str, port: u16) -> Self {
        Self {
            host: host.to_owned(),
            port,
            username: None,
            password: None,
            database: 0,
            timeout: Duration::from_secs(5),
            tls: None,
        }
    }

    /// For messages: without user and password.
    pub fn url(&self) -> String {
        let Self { host, port, database, .. } = self;
        let scheme = if self.tls.is_some() { "rediss" } else { "redis" };
        match host {
            path if path.starts_with('/') => format!("{scheme}+unix:{path}?db={database}"),
            host if host.contains(':') => format!("{scheme}://[{host}]:{port}/{database}"),
            host => format!("{scheme}://{host}:{port}/{database}"),
        }
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer").field("url", &self.url()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_not_who() {
        let secret = RedisServer { password: Some("letmein".into()), ..RedisServer::at("::1", 6379) };
        assert_eq!(secret.url(), "redis://[::1]:6379/0");
        assert!(!format!("{secret:?}").contains("letmein"));
        let tls =
            RedisServer { tls: Some(RedisTls::SystemRoots), database: 2, ..RedisServer::at("r.test", 1) };
        assert_eq!(tls.url(), "rediss://r.test:1/2");
        assert_eq!(RedisServer::at("/run/redis.sock", 1).url(), "redis+unix:/run/redis.sock?db=0");
    }
}
