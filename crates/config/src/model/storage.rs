//! Servers of Redis or Valkey, and what instances share in them: certificates, accounts and locks.

use super::Secret;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// A server of Redis or Valkey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedisServer {
    /// A name, an address without brackets, or the absolute path of a Unix socket.
    pub host: String,
    pub port: u16,
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub database: u32,
    /// For connecting, and for each answer.
    pub timeout: Duration,
    /// `None`: plain TCP.
    pub tls: Option<RedisTls>,
}

/// The storage in Redis, with the data of Caddy's module `caddy-storage-redis`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RedisStorage {
    #[serde(flatten)]
    pub server: RedisServer,
    /// Before each key, with a slash between. Never empty.
    pub key_prefix: String,
    /// 32 bytes, with which values are encrypted (AES-256-GCM).
    pub encryption_key: Option<Secret>,
    pub compression: RedisCompression,
}

/// Of values, where that makes them shorter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum RedisCompression {
    #[default]
    None,
    Flate,
    Zlib,
}

/// What the certificate of Redis is verified with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum RedisTls {
    SystemRoots,
    /// A PEM file of roots.
    Roots(PathBuf),
    /// It is not.
    Insecure,
}

impl Default for RedisServer {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 6379,
            username: None,
            password: None,
            database: 0,
            timeout: Duration::from_secs(5),
            tls: None,
        }
    }
}
