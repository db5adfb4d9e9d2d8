//! Carries out the routes of a site: matchers, rewrites, headers, static files, and the way into PHP.
//!
//! No PHP and no networking in here. [`Sites::build`] compiles a configuration once; [`Sites::route`] takes an
//! [`Exchange`] through it and says what to do ([`Action`]); [`Sites::resume`] goes on behind an error that came up after
//! that; [`Exchange::finish`] takes whatever response came of it through the site's filters.
#![forbid(unsafe_code)]

mod access_log;
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
mod found;
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
mod origin;
mod page;
mod path_pattern;
mod php;
mod php_server;
mod placeholder;
mod range;
mod redir;
mod respond;
mod response_headers;
mod rewrite;
mod root;
mod root_source;
mod route;
mod script;
mod sites;
mod status;
mod target;
mod text;
mod try_files;
mod url_path;
mod uuid;
pub mod visible;

pub use access_log::{AccessLog, AccessRecord};
pub use error::BuildError;
pub use exchange::Exchange;
pub use failure::Failure;
pub use sites::Sites;
pub use target::{Action, Delivery, NativeTarget, PhpTarget, Target};
