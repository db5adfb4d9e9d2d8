//! What directives do, one file each, named as in the configuration. `deadline`, `lane`, `log_skip`, `root` and
//! `server_timing` set one field of the request, which is a line in `routing`; what changes responses is in `filters`.

pub(crate) mod basic_auth;
pub(crate) mod cache;
pub(crate) mod copy_response;
pub(crate) mod delivery;
pub(crate) mod error;
pub(crate) mod fastcgi;
pub(crate) mod file_server;
pub(crate) mod intercept;
pub(crate) mod map;
pub(crate) mod mercure;
pub(crate) mod native;
pub(crate) mod php;
pub(crate) mod php_server;
pub(crate) mod query;
pub(crate) mod rate_limit;
pub(crate) mod redir;
pub(crate) mod request_body;
pub(crate) mod respond;
pub(crate) mod reverse_proxy;
pub(crate) mod rewrite;
pub(crate) mod templates;
pub(crate) mod tracing;
pub(crate) mod vars;

use crate::files::file_cache::FileCache;
use crate::filters::encode::EncoderBudget;
use crate::paths::script::Split;
use crate::rates::RateZones;
use php::WorkerScripts;
use regent_cache::Store;
use regent_traces::Tracer;
use std::sync::Arc;

/// What handlers need to know when they are compiled.
pub(crate) struct Context<'a> {
    pub(crate) workers: &'a WorkerScripts,
    pub(crate) files: &'a Arc<FileCache>,
    pub(crate) encoders: &'a Arc<EncoderBudget>,
    pub(crate) store: &'a Arc<Store>,
    pub(crate) rates: &'a RateZones,
    /// A name for the site that no other has.
    pub(crate) site: &'a Arc<str>,
    /// Names that are source code somewhere in this site, and so are not served as files anywhere in it.
    pub(crate) scripts: &'a Split,
    /// `None`: nobody wants traces.
    pub(crate) tracer: Option<&'a Arc<Tracer>>,
    /// All of the configuration, as [`regent_config::ProxyId`] counts them.
    pub(crate) proxies: &'a [regent_config::ReverseProxy],
}
