//! A running server in the words of the admin API and of the metrics.
//!
//! A [`Subject`] is what they look at and give orders to: engines, upstreams, certificates. How a configuration is changed, and how
//! requests are answered, is not known here.
#![forbid(unsafe_code)]

pub mod cache;
mod certificates;
pub mod export;
mod figures;
mod php;
pub mod purging;
pub mod reloads;
mod seen;
mod subject;
pub mod tasks;
mod threads;
mod upstreams;

pub use subject::{Kept, Subject};
