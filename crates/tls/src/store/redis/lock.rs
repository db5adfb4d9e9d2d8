//! Locks as of bsm/redislock, which caddy-storage-redis uses: a key with a token of its holder, that ends by itself.

use super::Redis;
use crate::store::safe;
use crate::{Error, crypto};
use redis::{RedisResult, cmd};
use regent_redis::Connection;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After which time a holder that says nothing counts as dead.
const LIFETIME: Duration = Duration::from_secs(10);
const REFRESH: Duration = Duration::from_secs(3);
/// How often a lock that another holds is tried.
const POLL: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(60);

/// Only who holds a lock may prolong or release it.
const PROLONG: &str =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 0";
const RELEASE: &str =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0";

/// Released when it is dropped.
#[derive(Debug)]
pub(in crate::store) struct Lock {
    redis: Arc<Redis>,
    key: String,
    token: String,
    /// Its end ends the thread.
    refresher: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Lock {
    /// Blocks the thread.
    pub fn take(redis: &Arc<Redis>, name: &str) -> Result<Self, Error> {
        let begun = Instant::now();
        loop {
            if let Some(lock) = Self::try_take(redis, name)? {
                return Ok(lock);
            }
            if begun.elapsed() > PATIENCE {
                let path = redis.url(&key_of(name)).into();
                return Err(Error::Locked { path, seconds: PATIENCE.as_secs() });
            }
            std::thread::sleep(POLL);
        }
    }

    /// `None` while another holds it.
    pub fn try_take(redis: &Arc<Redis>, name: &str) -> Result<Option<Self>, Error> {
        let key = redis.key(&key_of(name));
        let token = crypto::hex(&crypto::random::<16>());
        let taken = redis.link.run(&key, |connection| set_if_free(connection, &key, &token));
        if !taken.map_err(|error| redis.unreachable(error))? {
            return Ok(None);
        }
        let mut lock = Self { redis: Arc::clone(redis), key, token, refresher: None };
        lock.refresher = Some(lock.keep_fresh()?);
        Ok(Some(lock))
    }

    fn keep_fresh(&self) -> Result<(Sender<()>, JoinHandle<()>), Error> {
        let (stop, stopped) = channel();
        let (redis, key, token) = (Arc::clone(&self.redis), self.key.clone(), self.token.clone());
        let thread = std::thread::Builder::new().name("store-lock".into()).spawn(move || {
            while stopped.recv_timeout(REFRESH) == Err(RecvTimeoutError::Timeout) {
                // A failure shows as a lock that ends, and may pass before that.
                let _ = redis.link.run(&key, |connection| if_held(connection, PROLONG, &key, &token));
            }
        });
        let thread = thread.map_err(|error| self.redis.unreachable(error.into()))?;
        Ok((stop, thread))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.refresher.take() {
            drop(stop);
            // Its panic would have been reported by the thread.
            let _ = thread.join();
        }
        // If it cannot be released, it ends soon.
        let _ =
            self.redis.link.run(&self.key, |connection| if_held(connection, RELEASE, &self.key, &self.token));
    }
}

fn key_of(name: &str) -> String {
    format!("locks/{}", safe(name))
}

/// May be asked twice: the connection may have broken after the first was heard.
fn set_if_free(connection: &mut Connection, key: &str, token: &str) -> RedisResult<bool> {
    let life = LIFETIME.as_millis() as u64;
    let set: Option<String> =
        cmd("SET").arg(key).arg(token).arg("NX").arg("PX").arg(life).query(connection)?;
    if set.is_some() {
        return Ok(true);
    }
    let holder: Option<String> = cmd("GET").arg(key).query(connection)?;
    Ok(holder.as_deref() == Some(token))
}

fn if_held(connection: &mut Connection, script: &str, key: &str, token: &str) -> RedisResult<i64> {
    cmd("EVAL").arg(script).arg(1).arg(key).arg(token).arg(LIFETIME.as_millis() as u64).query(connection)
}
