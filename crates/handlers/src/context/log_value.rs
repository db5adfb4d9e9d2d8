//! What `log_append` adds to access logs.

use crate::context::exchange::Exchange;
use http::HeaderMap;

/// A value that is looked at when a line is written.
pub(crate) trait LogValue: Send + Sync {
    /// `response`: the fields of what the client got.
    fn value(&self, exchange: &Exchange, response: &HeaderMap) -> Vec<u8>;
}
