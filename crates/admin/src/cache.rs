//! The cache: how it stands, and what is to be forgotten.

use serde::{Deserialize, Serialize};

/// Since the server started, and now. Without a `cache` directive all of it is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheFigures {
    pub hits: u64,
    /// Requests that were answered with what was over: while it was fetched anew, or instead of an error.
    pub stale: u64,
    pub misses: u64,
    /// Requests that the cache was not for.
    pub passes: u64,
    /// Requests that waited for the fetch of another, and had it.
    pub collapsed: u64,
    /// Stored responses that PHP has said to be good still.
    pub revalidations: u64,
    pub stores: u64,
    pub evictions: u64,
    pub purged: u64,
    /// URLs that something is known of.
    pub urls: u64,
    /// Bytes of what is stored.
    pub bytes: u64,
    /// The bound of them.
    pub limit: u64,
    pub disk: CacheDiskFigures,
}

/// The same of the disk behind the memory. Without one all of it is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheDiskFigures {
    /// Requests that were answered with what was read from it.
    pub hits: u64,
    pub writes: u64,
    /// Responses that were not written, as it was too slow, or failed.
    pub dropped: u64,
    pub evictions: u64,
    pub errors: u64,
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// The bound of them.
    pub limit: u64,
    /// Whether responses can be written now.
    pub working: bool,
}

/// What is to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachePurge {
    /// All responses of a URL.
    Url(String),
    /// Of all URLs that begin so.
    Prefix(String),
    /// Of all that have one of these tags.
    Tags(Vec<String>),
    Everything,
}

/// What was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// Stored responses.
    pub purged: u64,
}
