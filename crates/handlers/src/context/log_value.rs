//! What `log_append` adds to access logs.

use crate::context::exchange::Exchange;

/// A value that is looked at when a line is written.
pub(crate) trait LogValue: Send + Sync {
    fn value(&self, exchange: &Exchange) -> Vec<u8>;
}
