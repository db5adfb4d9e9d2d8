//! Access logs.

pub(crate) mod access_log;
mod head;
pub(crate) mod log_filter;
pub mod log_template;
pub mod log_time;
pub(crate) mod log_writer;
pub mod rolling;
pub(crate) mod sampler;
mod schedule;
pub mod visible;
