//! Carries out the routes of a site: matchers, rewrites, headers, static files, and the way into PHP.
//!
//! No PHP and no networking in here. [`Sites::build`] compiles a configuration once; [`Sites::route`] takes an
//! [`Exchange`] through it and says what to do ([`Action`]); [`Sites::resume`] goes on behind an error that came up after
//! that; [`Exchange::finish`] takes whatever response came of it through the site's filters.
#![forbid(unsafe_code)]

mod caches;
pub mod caching;
mod context;
mod directives;
mod error;
mod files;
mod filters;
#[doc(hidden)]
pub mod fuzzing;
mod ip_prefix;
mod log;
mod matchers;
mod paths;
mod rates;
mod routing;
mod templates;

pub use caches::Caches;
pub use context::body_rules::BodyRules;
pub use context::client::{Forwarded, Scheme};
pub use context::exchange::Exchange;
pub use context::failure::Failure;
pub use context::listing::{Listed, Listing};
pub use context::observed::EngineTimes;
pub use context::proxied::Proxied;
pub use context::rendering::{Progress, Rendering};
pub use context::request_span::RequestSpan;
pub use context::shutdown::ShutdownNotice;
pub use context::step::Step;
pub use context::target::{Action, Delivery, NativeTarget, PhpTarget, ProxyRules, ProxyTarget, Target};
pub use context::verification::{Verification, Verified};
pub use error::BuildError;
pub use log::access_log::{AccessLog, AccessRecord, LogOutputs};
pub use log::log_writer::{LogKind, LogWriter};
pub use log::rolling::RollingFile;
pub use log::sampler::Sampler;
pub use log::{log_template, log_time, visible};
pub use paths::host::in_url;
pub use paths::root::CodeGeneration;
pub use rates::{RateZones, ZoneFigures};
pub use routing::sites::Sites;
