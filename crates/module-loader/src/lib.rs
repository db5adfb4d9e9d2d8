//! Compiled modules: shared libraries whose handlers answer requests, by the C interface of `include/regent.h`.
//!
//! [`Modules::load`] opens the libraries of a [`Plan`], checks what they say of themselves, initialises them in the
//! order of their dependencies, and has them all or none. [`Modules::answer`] takes one request to the route that it
//! is for and the handler's answer back: what the request is, is a [`Head`], and how its body comes and its answer
//! goes, an [`Exchange`], so that the engine (shared memory) and the server (in memory, for routes that never block)
//! do the same.
//!
//! # What is trusted
//! A module runs in the process that loads it and can do there what it likes. What is checked is what an honest one gets
//! wrong: sizes, versions, names, statuses, header fields, lengths, calls at the wrong time. A library is never
//! unloaded: threads, thread-local destructors and handlers of `atexit` of its own may point into it.

mod abi;
mod answer;
mod error;
mod exchange;
mod fields;
#[doc(hidden)]
pub mod fuzzing;
mod instance;
mod instance_api;
mod json;
mod library;
mod module_call;
mod modules;
mod order;
mod problem;
mod request;
mod request_api;
mod router;
mod setup;
mod statistics;
mod version;

pub use error::LoadError;
pub use exchange::{Completion, Exchange, Gone, Head, Level, LogSink};
pub use fields::Fields;
pub use modules::{ModulePlan, Modules, Plan, Scratch, ServiceId};
