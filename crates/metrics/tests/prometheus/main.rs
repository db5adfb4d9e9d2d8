//! What Prometheus gets, and what is written about it.

mod documents;
mod format;
mod server;
