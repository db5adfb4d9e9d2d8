//! Carries out the routes of a site: matchers, rewrites, headers, static files, and the way into PHP.
//!
//! No PHP and no networking in here. [`Sites::build`] compiles a configuration once; [`Sites::route`] takes an
//! [`Exchange`] through it and says what to do ([`Action`]); [`Sites::resume`] goes on behind an error that came up after
//! that; [`Exchange::finish`] takes whatever response came of it through the site's filters.
#![forbid(unsafe_code)]

mod access_log;
mod answer;
mod conditional;
mod content_coding;
mod content_type;
mod delivery;
mod encode;
mod error;
mod exchange;
mod failure;
mod file_cache;
mod file_server;
mod file_stat;
mod filter;
#[doc(hidden)]
pub mod fuzzing;
mod glob;
mod hide;
mod host;
mod known_scripts;
mod log_filter;
mod log_writer;
mod matcher;
mod native;
mod path_pattern;
mod php;
mod php_server;
mod placeholder;
mod range;
mod response_headers;
mod rewrite;
mod root;
mod route;
mod script;
mod sites;
mod text;
mod try_files;
mod url_path;
pub mod visible;

pub use access_log::{AccessLog, AccessRecord};
pub use error::BuildError;
pub use exchange::{Action, Delivery, Exchange, NativeTarget, PhpTarget, Target};
pub use failure::Failure;
pub use sites::Sites;
