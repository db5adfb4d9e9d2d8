//! What a request asks for, as far as that is the URL.

use std::sync::Arc;

/// Bytes of a key; requests with longer ones pass the cache.
pub(crate) const LONGEST: usize = 4096;

/// A URL. That of several sites is one, so that it is purged at once; their responses are told apart by what they are
/// [selected](crate::Selection) by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// `https://example.com:8443/path?query`, with host and port as the application sees them, in lower case. `None`: it is too
    /// long. `target`: path and query as the client sent them.
    pub fn new(scheme: &str, host: &str, target: &str) -> Option<Self> {
        if host.len() + target.len() > LONGEST {
            return None;
        }
        Some(Self(format!("{scheme}://{}{target}", host.to_ascii_lowercase()).into()))
    }

    /// As [`Self::url`] has given it. `None`: it is none.
    pub(crate) fn of_url(url: &str) -> Option<Self> {
        url.contains("://").then(|| Self(url.into()))
    }

    pub fn url(&self) -> &str {
        &self.0
    }

    /// The host, with the port if it has one.
    pub fn host_port(&self) -> &str {
        let (_, rest) = self.0.split_once("://").unwrap_or_default();
        &rest[..rest.find(['/', '?']).unwrap_or(rest.len())]
    }

    /// Of its copies in memory.
    pub(crate) fn weight(&self) -> usize {
        self.0.len()
    }
}
