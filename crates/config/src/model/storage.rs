//! Where certificates, accounts and locks are kept that several instances share.

use super::Secret;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// A server of Redis or Valkey, with the data of Caddy's module `caddy-storage-redis`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RedisStorage {
    /// A name, an address without brackets, or the absolute path of a Unix socket.
    pub host: String,
    pub port: u16,
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub database: u32,
    /// For connecting, and for each answer.
    pub timeout: Duration,
    /// Before each key, with a slash between. Never empty.
    pub key_prefix: String,
    /// 32 bytes, with which values are encrypted (AES-256-GCM).
    pub encryption_key: Option<Secret>,
    pub compression: RedisCompression,
    /// `None`: plain TCP.
    pub tls: Option<RedisTls>,
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
