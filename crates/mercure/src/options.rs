//! How a hub is set up.

use regent_redis::RedisServer;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How a hub is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubOptions {
    /// Checks the tokens of publishers. `None`: nobody publishes over HTTP.
    pub publisher: Option<Key>,
    /// Checks the tokens of subscribers. `None`: no token of theirs is valid.
    pub subscriber: Option<Key>,
    pub anonymous: Anonymous,
    pub subscriptions: Subscriptions,
    /// Origins whose pages may use the hub; `*`: all, without cookies.
    pub cors_origins: Vec<String>,
    /// Origins whose pages may publish with a cookie; `*`: all.
    pub publish_origins: Vec<String>,
    /// The cookie that a token may be in.
    pub cookie_name: String,
    pub history: HistoryOptions,
    /// A comment is sent to subscribers after such a silence; 0: never.
    pub heartbeat: Duration,
    /// A subscriber's connection ends after that; 0: never.
    pub write_timeout: Duration,
    /// A subscriber that takes nothing of what waits for it for so long is cut off; 0: never.
    pub dispatch_timeout: Duration,
}

/// What tokens are checked with.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// A shared secret, or a public key in PEM.
    pub secret: String,
    /// As tokens name it: `HS256`.
    pub algorithm: String,
}

/// Who may subscribe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anonymous {
    /// Who has a token.
    Refused,
    /// Everybody; private updates need a token all the same.
    Allowed,
}

/// Whether subscriptions are published and listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscriptions {
    Hidden,
    Shown,
}

/// Which updates are kept for subscribers that come again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryOptions {
    None,
    /// As many as there is room for. They are gone when the server ends.
    Memory,
    /// In a file beside this one, and in memory: as many as `size`, 0: as many as there is room for.
    File {
        path: PathBuf,
        size: usize,
    },
    /// In a stream of Redis, and in memory: the latest `size`, about. All hubs that have the stream are one.
    Shared {
        server: RedisServer,
        stream: String,
        size: usize,
    },
}

/// A key is for nobody to see.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl Default for HubOptions {
    fn default() -> Self {
        Self {
            publisher: None,
            subscriber: None,
            anonymous: Anonymous::Refused,
            subscriptions: Subscriptions::Hidden,
            cors_origins: Vec::new(),
            publish_origins: Vec::new(),
            cookie_name: "mercureAuthorization".into(),
            history: HistoryOptions::Memory,
            heartbeat: Duration::from_secs(40),
            write_timeout: Duration::from_secs(600),
            dispatch_timeout: Duration::from_secs(5),
        }
    }
}
