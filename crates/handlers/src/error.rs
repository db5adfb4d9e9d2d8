//! Why a configuration cannot be carried out.

use std::io;
use std::path::PathBuf;

/// What is wrong with a configuration; the operator's to mend.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("`{pattern}` is not a valid regular expression: {source}")]
    Regex { pattern: String, source: regex::Error },
    #[error("`{0}` is not a valid header field name: use letters, digits and `-`")]
    HeaderName(String),
    #[error("`{0}` cannot be the realm of `basic_auth`: control characters cannot stand in a header field")]
    Realm(String),
    #[error("`{0}` is not a status code of an answer: give a number from 200 to 999")]
    Status(String),
    #[error("`{0}` is not a valid path pattern: a `[` needs its `]`, and a `\\` a character after it")]
    Glob(String),
    #[error("`{0}` is not an encoding for precompressed files: use gzip, br or zstd")]
    ContentCoding(String),
    #[error("worker {0} is used by a site, but there is no such worker")]
    UnknownWorker(u16),
    #[error("cannot find the directory that `{path}` is relative to: {source}")]
    Path { path: PathBuf, source: io::Error },
    #[error(
        "cannot open the access log {path}: {source}; check that its directory exists and may be written to"
    )]
    AccessLog { path: PathBuf, source: io::Error },
    #[error(
        "cannot send the access log to {address}: {source}; start what listens there, or say `soft_start` to begin without it"
    )]
    LogCollector { address: String, source: io::Error },
    #[error("cannot start the thread that writes the access log: {0}")]
    LogThread(io::Error),
}
