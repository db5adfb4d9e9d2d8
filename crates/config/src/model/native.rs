//! Compiled handlers: the modules that are loaded, and the services that they answer for.

use super::{Delivery, as_text};
use serde::Serialize;
use std::path::PathBuf;

/// All native modules of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NativeGlobal {
    /// Those of the global block, which only offer interfaces to others. No file occurs twice.
    pub modules: Vec<NativeModule>,
    /// One per `native` directive, in the order of the file; a [`NativeId`] is an index into it.
    pub services: Vec<NativeService>,
}

/// A module that is loaded because others depend on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NativeModule {
    /// Absolute path of the library.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// For the module to read, in order; a name may occur several times.
    pub config: Vec<(String, String)>,
}

/// A module as one `native` directive uses it: with a configuration, routes and threads of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NativeService {
    /// Shown in lists and metrics; no two services share one. Default: the library's file name without `lib` and `.so`.
    pub name: String,
    /// Absolute path of the library. Several services may have the same.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// For the module to read, in order; a name may occur several times.
    pub config: Vec<(String, String)>,
    /// Threads at start, at least 1. `None`: one per core, no more than `max_threads`.
    pub threads: Option<u16>,
    /// Threads that scaling may reach, at least `threads`. `None`: as many as `threads`, or without that as the memory
    /// allows.
    pub max_threads: Option<u16>,
    /// Requests that may be with the service at once, waiting ones among them, at least 1; more are answered with 503.
    /// `None`: no bound.
    pub max_connections: Option<u32>,
    pub inline: Inline,
}

/// Where handlers run that declare that they never block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Inline {
    /// In the engine, as all others: a crash or a hang of theirs is not the server's.
    #[default]
    Never,
    /// In the server, on the thread that serves the connection.
    Allowed,
}

/// Index into [`NativeGlobal::services`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct NativeId(pub u16);

/// `native`: what reaches it goes to a service.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Native {
    pub service: NativeId,
    #[serde(flatten)]
    pub delivery: Delivery,
}
