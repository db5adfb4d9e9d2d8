//! Where a storage in Redis is, and how its values are written, as plain data.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A server of Redis or Valkey, with the data of Caddy's module `caddy-storage-redis`.
#[derive(Clone)]
pub struct RedisStorage {
    /// A name, an address, or the absolute path of a Unix socket.
    pub host: String,
    pub port: u16,
    pub username: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    /// For connecting, and for each answer.
    pub timeout: Duration,
    /// Before each key, with a slash between.
    pub key_prefix: String,
    /// What values are encrypted with, by AES-256-GCM.
    pub encryption_key: Option<[u8; 32]>,
    pub compression: Compression,
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

/// Of values, where that makes them shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Flate,
    Zlib,
}

impl RedisStorage {
    /// One for which nothing else is to be said.
    pub fn at(host: &str, port: u16) -> Self {
        Self {
            host: host.to_owned(),
            port,
            username: None,
            password: None,
            database: 0,
            timeout: Duration::from_secs(5),
            key_prefix: "caddy".to_owned(),
            encryption_key: None,
            compression: Compression::None,
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

impl fmt::Debug for RedisStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStorage").field("url", &self.url()).finish_non_exhaustive()
    }
}
