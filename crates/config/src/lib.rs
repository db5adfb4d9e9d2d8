//! The meaning of a Caddyfile: one file per directive, and the typed [`Config`] that they fill.
//!
//! [`load`] reads a file, [`parse`] a text; both report every mistake of the file at once. What the Caddyfile and
//! FrankenPHP know but Regent does not do yet is an error that says so, never ignored.
#![forbid(unsafe_code)]

mod address;
mod advice;
mod call;
mod code;
mod command_line;
mod conditions;
mod context;
mod delivery;
mod differences;
mod directives;
mod environment;
mod expression;
mod file_texts;
mod global;
mod host_names;
mod hot_reload;
mod ip_ranges;
mod json;
mod listing;
mod load;
mod mapped;
mod matchers;
mod model;
mod named_routes;
mod native;
mod nesting;
mod networks;
mod order;
mod passed_over;
mod php_ini;
mod problems;
mod rate_zones;
mod redis_options;
mod resolvers;
mod routes;
mod sites;
mod telemetry;
mod template;
mod thread_counts;
mod timeout;
mod unix_socket;
mod values;
mod workers;

pub use command_line::{
    AccessLog, Compression, Content, Hub, Listings, LogDetail, ProxyArguments, RespondArguments,
    SiteArguments, UpstreamCertificates, UpstreamHost, WorkerArgument, proxy_config, respond_config,
    site_config,
};
pub use environment::Environment;
pub use file_texts::file_content;
pub use host_names::{ascii_authority, ascii_host};
pub use listing::modules;
pub use load::{Loaded, Reach, load, parse, parse_json, parse_within};
pub use model::*;
pub use networks::Networks;
pub use passed_over::{PassedOver, passed_over, roots};
pub use problems::Warning;
pub use regent_caddyfile::{Error, Errors, Imports, format as format_caddyfile};
pub use sites::is_internal;
pub use template::{escaped, of_system};
pub use timeout::timeout;
