//! Mercure hubs.

use super::{RedisServer, as_text};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Index into [`Global::hubs`](super::Global::hubs).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct HubId(pub u16);

/// A Mercure hub. Directives that say the same have one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MercureHub {
    /// Checks the tokens of publishers. `None`: nobody publishes over HTTP.
    pub publisher: Option<JwtKey>,
    /// Checks the tokens of subscribers. `None`: there is `anonymous`, and private updates are for nobody.
    pub subscriber: Option<JwtKey>,
    /// Subscribers need no token.
    pub anonymous: bool,
    /// Subscriptions are published and listed.
    pub subscriptions: bool,
    /// Origins (`https://example.com`) whose pages may use the hub; `*`: all, without cookies.
    pub cors_origins: Vec<String>,
    /// Origins whose pages may publish with a cookie; `*`: all.
    pub publish_origins: Vec<String>,
    /// The cookie that a token may be in. Default: `mercureAuthorization`.
    pub cookie_name: String,
    pub history: HubHistory,
    /// Silence after which a comment is sent to subscribers; 0: never. Default: 40 s.
    pub heartbeat: Duration,
    /// How long a subscriber's connection lasts; 0: as long as it wants. Default: 600 s.
    pub write_timeout: Duration,
    /// How long an update may wait for a subscriber that takes nothing; 0: for ever. Default: 5 s.
    pub dispatch_timeout: Duration,
}

/// Which updates a hub keeps for subscribers that come again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum HubHistory {
    None,
    /// The latest, until the process ends.
    Memory,
    /// The latest `size`, 0: as many as there is room for, in a file beside this one, whose name begins with a dot.
    File {
        /// Absolute.
        #[serde(serialize_with = "as_text")]
        path: PathBuf,
        /// No option has named it: elsewhere it is in another working directory.
        #[serde(skip)]
        is_default: bool,
        size: usize,
    },
    /// In a stream of Redis, which instances share: the latest `size`, about.
    Redis {
        server: RedisServer,
        stream: String,
        size: usize,
    },
}

/// What tokens are checked with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JwtKey {
    /// A shared secret, or a public key in PEM. Never empty.
    pub key: Secret,
    /// As tokens name it: `HS256`.
    pub algorithm: String,
}

/// `hot_reload`: pages that subscribe to the topic are told of changed files. No two have the same hub and topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HotReload {
    pub hub: HubId,
    pub topic: String,
    /// Patterns, relative to the working directory.
    pub watch: Vec<String>,
}

/// A text that is shown to nobody: not in the configuration that is printed, nor in a log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

const HIDDEN: &str = "(hidden)";

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

impl Default for MercureHub {
    fn default() -> Self {
        Self {
            publisher: None,
            subscriber: None,
            anonymous: false,
            subscriptions: false,
            cors_origins: Vec::new(),
            publish_origins: Vec::new(),
            cookie_name: "mercureAuthorization".into(),
            history: HubHistory::Memory,
            heartbeat: Duration::from_secs(40),
            write_timeout: Duration::from_secs(600),
            dispatch_timeout: Duration::from_secs(5),
        }
    }
}
