//! The cache: what all sites share of it, and what a `cache` directive says.

use super::IpRange;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// The `cache` global option: the memory and the disk of all `cache` directives together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CacheMemory {
    /// Bytes of all stored responses. Default: 128 MiB.
    pub memory: u64,
    /// Bytes of the largest body that is stored. Default: 8 MiB.
    pub largest_object: u64,
    /// `None`: what memory has no room for is not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<CacheDisk>,
}

/// Where responses lie that memory has no room for, and all after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CacheDisk {
    /// An absolute path.
    pub directory: PathBuf,
    /// Bytes of all files.
    pub size: u64,
    /// Files at most. Default: 100,000.
    pub files: u64,
    /// Bytes of the largest body that is stored. Default: 1 GiB, and no more than a quarter of the size.
    pub largest_object: u64,
}

/// `cache`: responses of PHP, native services and upstreams are stored and used again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Caching {
    Off,
    On(Box<Cache>),
}

/// Which responses are stored, for how long, and for which requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// Lifetime of responses that say nothing of one; `None`: they are not stored.
    pub default_ttl: Option<Duration>,
    /// Of responses that say nothing of it. Default: 0.
    pub stale_while_revalidate: Duration,
    /// The same. Default: 0.
    pub stale_if_error: Duration,
    /// Lifetimes are guessed from `Last-Modified` where there is nothing else.
    pub heuristic: bool,
    /// `Cache-Control` of requests counts.
    pub obey_clients: bool,
    /// Fields that count instead of `Cache-Control`, the most important first. Default: `CDN-Cache-Control`.
    pub targeted: Vec<String>,
    /// Names of cookies, with `*` for any text: requests with one pass.
    pub pass_cookies: Vec<String>,
    /// The same: they are as if they were not there.
    pub ignore_cookies: Vec<String>,
    pub vary_cookies: VaryCookies,
    /// Paths, with `*` for any text: requests for one pass.
    pub pass_paths: Vec<String>,
    /// The same of the names in the query.
    pub pass_queries: Vec<String>,
    /// Such names are as if they were not there, and whoever makes the response does not see them.
    pub ignore_queries: Vec<String>,
    /// Longest wait for the response that another request has asked for. Default: 10 s.
    pub wait: Duration,
    /// Clients whose `PURGE` is carried out; empty: the method is none of the cache's.
    pub purge_from: Vec<IpRange>,
    /// Which responses scripts may have forgotten.
    pub script_purge: ScriptPurge,
    /// Clients get the fields with tags, and `Cache-Status`.
    pub fields: CacheFields,
}

/// Which responses scripts of the site may have forgotten (`regent_cache_purge()`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum ScriptPurge {
    /// Those of the hosts that lead to the site.
    #[default]
    Site,
    /// All of the server's.
    Server,
    Off,
}

/// What `Vary: Cookie` means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum VaryCookies {
    /// Requests with the same cookies get the same response, but for [`Cache::ignore_cookies`].
    #[default]
    Count,
    /// Nothing: requests with cookies that matter pass.
    Ignored,
}

/// Which of the cache's own fields clients get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CacheFields {
    /// Default: yes.
    pub status: bool,
    /// Default: no.
    pub tags: bool,
}

impl CacheMemory {
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for CacheMemory {
    fn default() -> Self {
        Self { memory: 128 << 20, largest_object: 8 << 20, disk: None }
    }
}

impl Default for Cache {
    fn default() -> Self {
        // What nearly every session, in whatever framework, is recognized by.
        const SESSIONS: [&str; 7] =
            ["*sess*", "*token*", "*auth*", "*login*", "*logged*", "*user*", "remember*"];
        Self {
            default_ttl: None,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            heuristic: false,
            obey_clients: false,
            targeted: vec!["CDN-Cache-Control".into()],
            pass_cookies: SESSIONS.map(Into::into).into(),
            ignore_cookies: Vec::new(),
            vary_cookies: VaryCookies::default(),
            pass_paths: Vec::new(),
            pass_queries: Vec::new(),
            ignore_queries: Vec::new(),
            wait: Duration::from_secs(10),
            purge_from: Vec::new(),
            script_purge: ScriptPurge::default(),
            fields: CacheFields { status: true, tags: false },
        }
    }
}
