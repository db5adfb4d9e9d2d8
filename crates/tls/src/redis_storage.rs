//! How values are kept in Redis, as plain data.

use regent_redis::RedisServer;
use std::fmt;

/// A server of Redis or Valkey, with the data of Caddy's module `caddy-storage-redis`.
#[derive(Clone)]
pub struct RedisStorage {
    pub server: RedisServer,
    /// Before each key, with a slash between.
    pub key_prefix: String,
    /// What values are encrypted with, by AES-256-GCM.
    pub encryption_key: Option<[u8; 32]>,
    pub compression: Compression,
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
    pub fn on(server: RedisServer) -> Self {
        Self { server, key_prefix: "caddy".to_owned(), encryption_key: None, compression: Compression::None }
    }

    /// For messages: without user and password.
    pub fn url(&self) -> String {
        self.server.url()
    }
}

impl fmt::Debug for RedisStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStorage").field("server", &self.server).finish_non_exhaustive()
    }
}
