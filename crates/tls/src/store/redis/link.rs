//! The one connection to Redis, made when it is needed and made anew when it broke. To a cluster it is one to each server
//! whose keys were needed.

use crate::Error;
use redis::RedisResult;
use regent_redis::{Client, ClientError, Connection, RedisServer, is_broken};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After a failure nobody waits for another time-out for so long.
const PAUSE: Duration = Duration::from_secs(2);

pub(super) struct Link {
    client: Client,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// The last failure to connect, with its reason.
    failed: Option<(Instant, String)>,
}

impl Link {
    /// # Errors
    /// Of the options: a file of roots that cannot be read.
    pub fn new(server: &RedisServer) -> Result<Self, Error> {
        let client = Client::new(server).map_err(|error| match error {
            ClientError::Roots(file, cause) => Error::read(&file, cause),
            ClientError::Server { url, cause } => Error::Redis { url, reason: cause.to_string() },
        })?;
        Ok(Self { client, state: Mutex::default() })
    }

    /// Without secrets.
    pub fn url(&self) -> &str {
        self.client.url()
    }

    /// Keys with the same number can be changed in one transaction.
    pub fn slot(&self, key: &str) -> u16 {
        self.client.slot(key)
    }

    /// What may be done twice, and is about this key: a connection that was kept may have ended meanwhile, then it is done on
    /// a new one.
    pub fn run<T>(
        &self,
        key: &str,
        mut what: impl FnMut(&mut Connection) -> RedisResult<T>,
    ) -> RedisResult<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut kept) = state.connection.take() {
            match kept.about(key).and_then(&mut what) {
                Err(error) if is_broken(&error) => {}
                result => {
                    state.connection = Some(kept);
                    return result;
                }
            }
        }
        let mut connection = self.connect(&mut state, key)?;
        let result = what(&mut connection);
        if !result.as_ref().is_err_and(is_broken) {
            state.connection = Some(connection);
        }
        result
    }

    fn connect(&self, state: &mut State, key: &str) -> RedisResult<Connection> {
        if let Some((when, reason)) = &state.failed
            && when.elapsed() < PAUSE
        {
            return Err((redis::ErrorKind::Io, "a moment ago", reason.clone()).into());
        }
        let connected = self.client.connect(key);
        match &connected {
            Ok(_) => {
                if state.failed.take().is_some() {
                    tracing::info!(storage = self.url(), "the storage can be reached again");
                }
            }
            Err(error) => {
                if state.failed.is_none() {
                    tracing::error!(storage = self.url(), %error, "the storage cannot be reached; certificates go on as they are, and none is ordered");
                }
                state.failed = Some((Instant::now(), error.to_string()));
            }
        }
        connected
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("client", &self.client).finish_non_exhaustive()
    }
}
