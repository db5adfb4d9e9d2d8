//! Servers of Redis or Valkey, and what instances share in them: certificates, accounts and locks.

use super::Secret;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// A server of Redis or Valkey, or a cluster of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedisServer {
    #[serde(flatten)]
    pub place: RedisPlace,
    pub username: Option<String>,
    pub password: Option<Secret>,
    /// 0 in a cluster.
    pub database: u32,
    /// For connecting, and for each answer.
    pub timeout: Duration,
    /// `None`: plain TCP.
    pub tls: Option<RedisTls>,
}

/// Where the server is that takes what is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RedisPlace {
    /// At the address, or at that one of several whose server says that it is the primary. Never empty.
    Servers(Vec<RedisAddress>),
    /// Where these say.
    Sentinels(RedisSentinels),
    /// In a cluster, of which these are some. Never empty.
    Cluster(Vec<RedisAddress>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedisAddress {
    /// A name, an address without brackets, or the absolute path of a Unix socket.
    pub host: String,
    pub port: u16,
}

/// Sentinels, which know the primary by a name and choose another one when it has died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedisSentinels {
    /// Never empty.
    pub addresses: Vec<RedisAddress>,
    pub master_name: String,
    pub username: Option<String>,
    pub password: Option<Secret>,
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
            place: RedisPlace::at("127.0.0.1", 6379),
            username: None,
            password: None,
            database: 0,
            timeout: Duration::from_secs(5),
            tls: None,
        }
    }
}

impl RedisPlace {
    /// One server.
    pub fn at(host: &str, port: u16) -> Self {
        Self::Servers(vec![RedisAddress { host: host.to_owned(), port }])
    }
}
