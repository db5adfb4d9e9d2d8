//! Tells when files change.
//!
//! [`Watch::start`] runs a thread that knows each file of its [`Pattern`]s by a stamp ([`snapshot`]). The kernel's events
//! (inotify(7)) are only a reason to look again: what has changed is found by comparing stamps, so that an event that was
//! lost, or a directory that came with its files at once, costs nothing. On file systems that report nothing, the thread
//! looks each second ([`events`]).
#![forbid(unsafe_code)]

mod events;
mod pattern;
mod snapshot;
mod watch;

pub use pattern::{Pattern, PatternError};
pub use watch::{Watch, named};
