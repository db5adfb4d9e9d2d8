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
pub(crate) struct Store(Place);

#[derive(Debug, Clone)]
enum Place {
    Files(Files),
    Redis(Arc<Redis>),
}

/// Of several processes one holds it at a time. Released when it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "what a lock does, it does when it is dropped")]
pub(crate) struct Lock(Held);

#[derive(Debug)]
#[expect(dead_code, reason = "the same")]
enum Held {
    File(files::Lock),
    Redis(redis::Lock),
}

impl Store {
    /// A directory. Nothing is made before something is written.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(Place::Files(Files::new(root)))
    }

    /// Redis, with copies in the directory, from which is read while Redis cannot be reached.
    pub fn of_redis(options: &RedisStorage, copies: impl Into<PathBuf>) -> Result<Self, Error> {
        Ok(Self(Place::Redis(Arc::new(Redis::new(options, Files::new(copies))?))))
    }

    /// What names the value in messages. In a directory, its file.
    pub fn path(&self, key: &str) -> PathBuf {
        match &self.0 {
            Place::Files(files) => files.path(key),
            Place::Redis(redis) => redis.url(key).into(),
        }
    }

    /// A file with the value, for programs of others; `None` if there is no such value.
    pub fn file(&self, key: &str) -> Result<Option<PathBuf>, Error> {
        match &self.0 {
            Place::Files(files) => Ok(Some(files.path(key)).filter(|path| path.is_file())),
            Place::Redis(redis) => redis.file(key),
        }
    }

    /// `None` if there is no such value.
    pub fn read(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        match &self.0 {
            Place::Files(files) => files.read(key),
            Place::Redis(redis) => redis.read(key),
        }
    }

    /// Whoever reads meanwhile sees the old content or the new, also after a power failure.
    pub fn write(&self, key: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write_all(&[(key, bytes)])
    }

    /// As [`Self::write`], in this order. If one cannot be written, all of them stay as they were: a key without its
    /// certificate would spoil both.
    pub fn write_all(&self, values: &[(&str, &[u8])]) -> Result<(), Error> {
        match &self.0 {
            Place::Files(files) => files.write_all(values),
            Place::Redis(redis) => redis.write_all(values),
        }
    }

    /// Nothing if there is no such value.
    pub fn remove(&self, key: &str) -> Result<(), Error> {
        match &self.0 {
            Place::Files(files) => files.remove(key),
            Place::Redis(redis) => redis.remove(key),
        }
    }

    /// `None` while another process or thread holds it.
    pub fn try_lock(&self, name: &str) -> Result<Option<Lock>, Error> {
        match &self.0 {
            Place::Files(files) => Ok(files.try_lock(name)?.map(|lock| Lock(Held::File(lock)))),
            Place::Redis(redis) => {
                Ok(redis::Lock::try_take(redis, name)?.map(|lock| Lock(Held::Redis(lock))))
            }
        }
    }

    /// Waits for other processes and threads that hold it.
    pub fn lock(&self, name: &str) -> Result<Lock, Error> {
        match &self.0 {
            Place::Files(files) => files.lock(name).map(|lock| Lock(Held::File(lock))),
            Place::Redis(redis) => redis::Lock::take(redis, name).map(|lock| Lock(Held::Redis(lock))),
        }
    }
}
