//! The storage that instances share: a directory, or Redis. Keys are paths with slashes, in the layout of certmagic
//! (`filestorage.go`, `storage.go`) and Caddy (`modules/caddypki`), so that a storage of Caddy or FrankenPHP goes on being
//! used.

mod files;
mod names;
mod redis;

pub(crate) use names::{local_authority, local_leaf, safe};

use crate::{Error, RedisStorage};
use files::Files;
use redis::Redis;
use std::path::PathBuf;
use std::sync::Arc;

/// Whatever reads or writes blocks.
#[derive(Debug, Clone)]
pub(crate) enum Store {
    Files(Files),
    Redis(Arc<Redis>),
}

/// Of several processes one holds it at a time. Released when it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "what a lock does, it does when it is dropped")]
pub(crate) enum Lock {
    File(files::Lock),
    Redis(redis::Lock),
}

impl Store {
    /// A directory. Nothing is made before something is written.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::Files(Files::new(root))
    }

    /// Redis, with copies in the directory, from which is read while Redis cannot be reached.
    pub fn of_redis(options: &RedisStorage, copies: impl Into<PathBuf>) -> Result<Self, Error> {
        Ok(Self::Redis(Arc::new(Redis::new(options, Files::new(copies))?)))
    }

    /// What names the value in messages. In a directory, its file.
    pub fn path(&self, key: &str) -> PathBuf {
        match self {
            Self::Files(files) => files.path(key),
            Self::Redis(redis) => redis.url(key).into(),
        }
    }

    /// A file with the value, for programs of others; `None` if there is no such value.
    pub fn file(&self, key: &str) -> Result<Option<PathBuf>, Error> {
        match self {
            Self::Files(files) => Ok(Some(files.path(key)).filter(|path| path.is_file())),
            Self::Redis(redis) => redis.file(key),
        }
    }

    /// `None` if there is no such value.
    pub fn read(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        match self {
            Self::Files(files) => files.read(key),
            Self::Redis(redis) => redis.read(key),
        }
    }

    /// Whoever reads meanwhile sees the old content or the new, also after a power failure.
    pub fn write(&self, key: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write_all(&[(key, bytes)])
    }

    /// As [`Self::write`], in this order. If one cannot be written, all of them stay as they were: a key without its
    /// certificate would spoil both.
    pub fn write_all(&self, values: &[(&str, &[u8])]) -> Result<(), Error> {
        match self {
            Self::Files(files) => files.write_all(values),
            Self::Redis(redis) => redis.write_all(values),
        }
    }

    /// Nothing if there is no such value.
    pub fn remove(&self, key: &str) -> Result<(), Error> {
        match self {
            Self::Files(files) => files.remove(key),
            Self::Redis(redis) => redis.remove(key),
        }
    }

    /// `None` while another process or thread holds it.
    pub fn try_lock(&self, name: &str) -> Result<Option<Lock>, Error> {
        match self {
            Self::Files(files) => Ok(files.try_lock(name)?.map(Lock::File)),
            Self::Redis(redis) => Ok(redis::Lock::try_take(redis, name)?.map(Lock::Redis)),
        }
    }

    /// Waits for other processes and threads that hold it.
    pub fn lock(&self, name: &str) -> Result<Lock, Error> {
        match self {
            Self::Files(files) => files.lock(name).map(Lock::File),
            Self::Redis(redis) => redis::Lock::take(redis, name).map(Lock::Redis),
        }
    }
}
