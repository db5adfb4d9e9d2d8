//! Redis or Valkey, with the keys and values of Caddy's module `caddy-storage-redis` (pberkel, version 1.7), so that its
//! data goes on being used and Caddy instances can share it: under a prefix, values as [`value`] has them, and for each
//! directory a sorted set of what is in it, which Caddy lists.
//!
//! What was read or written last also lies in a directory. While Redis cannot be reached, it is read from there: a server
//! that is started then has the certificates of before. Nothing is written or locked then, so nothing is ordered.

mod link;
mod lock;
mod value;

pub(super) use lock::Lock;

use super::files::Files;
use crate::{Error, RedisStorage};
use link::Link;
use redis::{Cmd, Pipeline, RedisError, RedisResult, cmd, pipe};
use std::path::PathBuf;
use time::OffsetDateTime;
use value::Codec;

#[derive(Debug)]
pub(super) struct Redis {
    link: Link,
    codec: Codec,
    prefix: String,
    copies: Files,
}

impl Redis {
    /// Connects to nothing yet.
    pub fn new(options: &RedisStorage, copies: Files) -> Result<Self, Error> {
        let link = Link::new(&options.server)?;
        Ok(Self { link, codec: Codec::of(options), prefix: options.key_prefix.clone(), copies })
    }

    pub fn url(&self, key: &str) -> String {
        format!("{}/{}", self.link.url(), self.key(key))
    }

    pub fn file(&self, key: &str) -> Result<Option<PathBuf>, Error> {
        let Some(bytes) = self.read(key)? else { return Ok(None) };
        self.copies.write(key, &bytes)?;
        Ok(Some(self.copies.path(key)))
    }

    pub fn read(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let name = self.key(key);
        let stored: Option<Vec<u8>> =
            match self.link.run(&name, |connection| cmd("GET").arg(&name).query(connection)) {
                Ok(stored) => stored,
                Err(error) => return self.read_copy(key, error),
            };
        let Some(stored) = stored else { return Ok(None) };
        let bytes = self.codec.decode(&stored).map_err(|reason| self.unreadable(key, reason))?;
        self.copy(key, &bytes);
        Ok(Some(bytes))
    }

    pub fn write_all(&self, values: &[(&str, &[u8])]) -> Result<(), Error> {
        let now = OffsetDateTime::now_utc();
        let mut transactions = Transactions { link: &self.link, all: Vec::new() };
        for (key, bytes) in values {
            let key = self.key(key);
            index(&mut transactions, &key, now.unix_timestamp());
            let mut set = cmd("SET");
            set.arg(&key).arg(self.codec.encode(bytes, now));
            transactions.add(&key, set);
        }
        transactions.carry_out().map_err(|error| self.unreachable(error))?;
        values.iter().for_each(|(key, bytes)| self.copy(key, bytes));
        Ok(())
    }

    pub fn remove(&self, key: &str) -> Result<(), Error> {
        let stored = self.key(key);
        self.remove_stored(&stored).map_err(|error| self.unreachable(error))?;
        self.copies.remove(key)
    }

    fn remove_stored(&self, stored: &str) -> RedisResult<()> {
        self.link.run(stored, |connection| cmd("DEL").arg(stored).exec(connection))?;
        let mut below = stored;
        // A directory without content is none: its own name leaves the one above it.
        for (depth, directory) in directories(stored).enumerate() {
            let name = name_in_directory(below, depth);
            let is_left: bool = self.link.run(directory, |connection| {
                cmd("ZREM").arg(directory).arg(&name).exec(connection)?;
                cmd("EXISTS").arg(directory).query(connection)
            })?;
            if is_left {
                break;
            }
            below = directory;
        }
        Ok(())
    }

    fn key(&self, key: &str) -> String {
        format!("{}/{key}", self.prefix)
    }

    fn read_copy(&self, key: &str, error: RedisError) -> Result<Option<Vec<u8>>, Error> {
        match self.copies.read(key) {
            Ok(Some(copy)) => Ok(Some(copy)),
            // Whether Redis has it, nobody knows: an account or a CA must not be made anew for that.
            Ok(None) | Err(_) => Err(self.unreachable(error)),
        }
    }

    /// Best effort: a container may have no place for it.
    fn copy(&self, key: &str, bytes: &[u8]) {
        if self.copies.read(key).is_ok_and(|copy| copy.as_deref() == Some(bytes)) {
            return;
        }
        if let Err(error) = self.copies.write(key, bytes) {
            tracing::debug!(%error, key, "a value of Redis has no copy for the time when it cannot be reached");
        }
    }

    fn unreachable(&self, error: RedisError) -> Error {
        Error::Redis { url: self.link.url().to_owned(), reason: error.to_string() }
    }

    fn unreadable(&self, key: &str, reason: String) -> Error {
        Error::RedisValue { key: self.url(key), reason }
    }
}

/// One; in a cluster, where a server changes no keys but its own, one for each slot.
struct Transactions<'a> {
    link: &'a Link,
    /// In the order of what comes first in each, with a key of it.
    all: Vec<(String, Pipeline)>,
}

impl Transactions<'_> {
    fn add(&mut self, key: &str, command: Cmd) {
        let slot = self.link.slot(key);
        let known = self.all.iter_mut().find(|(other, _)| self.link.slot(other) == slot);
        if let Some((_, transaction)) = known {
            transaction.add_command(command).ignore();
            return;
        }
        let mut transaction = pipe();
        transaction.atomic().add_command(command).ignore();
        self.all.push((key.to_owned(), transaction));
    }

    fn carry_out(&self) -> RedisResult<()> {
        let mut all = self.all.iter();
        all.try_for_each(|(key, transaction)| self.link.run(key, |connection| transaction.exec(connection)))
    }
}

/// What is in a directory is a set under the directory's name.
fn index(transactions: &mut Transactions<'_>, key: &str, modified: i64) {
    let mut below = key;
    for (depth, directory) in directories(key).enumerate() {
        let mut add = cmd("ZADD");
        add.arg(directory).arg(modified).arg(name_in_directory(below, depth));
        transactions.add(directory, add);
        below = directory;
    }
}

/// Directories have a slash behind, which all but the first of them are.
fn name_in_directory(path: &str, depth: usize) -> String {
    let suffix = if depth == 0 { "" } else { "/" };
    format!("{}{suffix}", last_part(path))
}

/// Those that a key is in, from the innermost.
fn directories(key: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(key), |path| path.rsplit_once('/').map(|(directory, _)| directory)).skip(1)
}

fn last_part(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

#[cfg(test)]
mod tests;
