//! The one connection to Redis, made when it is needed and made anew when it broke.

use crate::{Error, RedisStorage, Verification};
use redis::{
    Client, Connection, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisError, RedisResult,
};
use redis::{TlsCertificates, io::tcp::TcpSettings};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After a failure nobody waits for another time-out for so long.
const PAUSE: Duration = Duration::from_secs(2);

pub(super) struct Link {
    client: Client,
    url: String,
    /// For connecting, and for each answer.
    timeout: Duration,
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
    pub fn new(options: &RedisStorage) -> Result<Self, Error> {
        let url = options.url();
        let refused = |error: RedisError| Error::Redis { url: options.url(), reason: error.to_string() };
        let mut login = RedisConnectionInfo::default().set_db(options.database.into());
        if let Some(username) = &options.username {
            login = login.set_username(username);
        }
        if let Some(password) = &options.password {
            login = login.set_password(password);
        }
        let info = address(options)
            .into_connection_info()
            .map_err(refused)?
            .set_redis_settings(login)
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let client = match &options.tls {
            Some(verification) => {
                let certificates = TlsCertificates { client_tls: None, root_cert: roots(verification)? };
                Client::build_with_tls(info, certificates).map_err(refused)?
            }
            None => Client::open(info).map_err(refused)?,
        };
        Ok(Self { client, url, timeout: options.timeout, state: Mutex::default() })
    }

    /// Without secrets.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What may be done twice: a connection that was kept may have ended meanwhile, then it is done on a new one.
    pub fn run<T>(&self, mut what: impl FnMut(&mut Connection) -> RedisResult<T>) -> RedisResult<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut kept) = state.connection.take() {
            match what(&mut kept) {
                Err(error) if is_broken(&error) => {}
                result => {
                    state.connection = Some(kept);
                    return result;
                }
            }
        }
        let mut connection = self.connect(&mut state)?;
        let result = what(&mut connection);
        if !result.as_ref().is_err_and(is_broken) {
            state.connection = Some(connection);
        }
        result
    }

    fn connect(&self, state: &mut State) -> RedisResult<Connection> {
        if let Some((when, reason)) = &state.failed
            && when.elapsed() < PAUSE
        {
            return Err((redis::ErrorKind::Io, "a moment ago", reason.clone()).into());
        }
        let connected = self.client.get_connection_with_timeout(self.timeout).and_then(|connection| {
            connection.set_read_timeout(Some(self.timeout))?;
            connection.set_write_timeout(Some(self.timeout))?;
            Ok(connection)
        });
        match &connected {
            Ok(_) => {
                if state.failed.take().is_some() {
                    tracing::info!(storage = self.url, "the storage can be reached again");
                }
            }
            Err(error) => {
                if state.failed.is_none() {
                    tracing::error!(storage = self.url, %error, "the storage cannot be reached; certificates go on as they are, and none is ordered");
                }
                state.failed = Some((Instant::now(), error.to_string()));
            }
        }
        connected
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("url", &self.url).finish_non_exhaustive()
    }
}

fn address(options: &RedisStorage) -> ConnectionAddr {
    let (host, port) = (options.host.clone(), options.port);
    match &options.tls {
        Some(verification) => {
            let insecure = *verification == Verification::None;
            ConnectionAddr::TcpTls { host, port, insecure, tls_params: None }
        }
        None if host.starts_with('/') => ConnectionAddr::Unix(host.into()),
        None => ConnectionAddr::Tcp(host, port),
    }
}

/// `None`: those of the system.
fn roots(verification: &Verification) -> Result<Option<Vec<u8>>, Error> {
    let Verification::Roots(files) = verification else { return Ok(None) };
    let mut all = Vec::new();
    for file in files {
        all.extend(std::fs::read(file).map_err(|error| Error::read(file, error))?);
        all.push(b'\n');
    }
    Ok(Some(all))
}

fn is_broken(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.is_timeout()
}
