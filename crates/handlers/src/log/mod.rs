//! Access logs.

pub(crate) mod access_log;
pub(crate) mod log_filter;
pub(crate) mod log_writer;
pub mod visible;
