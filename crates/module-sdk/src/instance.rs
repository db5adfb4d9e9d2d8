//! The module as one service uses it, for handlers and threads: its log and its figures.

use crate::abi::{self, Api, Text};
use serde::Serialize;
use std::sync::{Arc, PoisonError, RwLock};

/// The module as one service uses it: its log and its figures, for handlers and for threads of the module.
///
/// Once the module has been cleaned up, there is nobody left to talk to: what is logged is dropped, and figures are zero.
#[derive(Clone)]
pub struct Instance(Arc<RwLock<Option<Host>>>);

struct Host {
    api: &'static Api,
    raw: *mut abi::Instance,
}

// SAFETY: regent.h allows `log` and `statistics`, the only functions that are called through this, on any thread until
// cleanup has returned; `Instance::close` takes the host away before.
unsafe impl Send for Host {}
// SAFETY: the same.
unsafe impl Sync for Host {}

/// syslog's levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Level {
    Error = 3,
    Warning = 4,
    Info = 6,
    Debug = 7,
}

/// Requests of a service since its process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    pub requests: u64,
    /// The one that asks among them.
    pub running: u64,
    /// Of the answers' bodies.
    pub bytes: u64,
    pub answers: Answers,
}

/// Answers by the class of their status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    #[serde(rename = "1xx")]
    pub informational: u64,
    #[serde(rename = "2xx")]
    pub successful: u64,
    #[serde(rename = "3xx")]
    pub redirections: u64,
    #[serde(rename = "4xx")]
    pub client_errors: u64,
    #[serde(rename = "5xx")]
    pub server_errors: u64,
    pub broken_off: u64,
}

impl Instance {
    /// `raw` is valid until [`Instance::close`].
    pub(crate) fn new(api: &'static Api, raw: *mut abi::Instance) -> Self {
        Self(Arc::new(RwLock::new(Some(Host { api, raw }))))
    }

    /// Waits for calls that are under way; later ones do nothing.
    pub(crate) fn close(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Writes a line into the server's log.
    pub fn log(&self, level: Level, message: impl AsRef<str>) {
        self.with_host(|host| {
            let message = Text::new(message.as_ref().as_bytes());
            // SAFETY: the instance is valid until `close`, which waits for us.
            unsafe { (host.api.log)(host.raw, level as i32, message) }
        });
    }

    /// Writes a line with the level `Error`.
    pub fn error(&self, message: impl AsRef<str>) {
        self.log(Level::Error, message);
    }

    /// Writes a line with the level `Info`.
    pub fn info(&self, message: impl AsRef<str>) {
        self.log(Level::Info, message);
    }

    pub fn statistics(&self) -> Statistics {
        let mut raw = abi::Statistics { size: size_of::<abi::Statistics>(), ..Default::default() };
        // SAFETY: as in `log`.
        self.with_host(|host| unsafe { (host.api.statistics)(host.raw, &mut raw) });
        let [broken_off, informational, successful, redirections, client_errors, server_errors] = raw.answers;
        let answers =
            Answers { informational, successful, redirections, client_errors, server_errors, broken_off };
        Statistics { requests: raw.requests, running: raw.running, bytes: raw.bytes, answers }
    }

    fn with_host<T>(&self, call: impl FnOnce(&Host) -> T) -> Option<T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(call)
    }
}
