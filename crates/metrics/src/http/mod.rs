//! Figures under Caddy's names (modules/caddyhttp/metrics.go of Caddy 2.11), of requests of all kinds: those that no engine answers
//! too.
//!
//! A [`ScopeId`] stands for what Caddy calls server, handler and host. Each I/O thread counts with an [`HttpMeter`] of its own; a
//! request that is being answered is an [`HttpRequest`].

mod buckets;
mod exposition;
mod figures;
mod meter;
mod request;
mod scopes;

pub(crate) use exposition::families;
pub(crate) use figures::{HttpFigures, MethodLabel};
pub use meter::{HttpMeter, Outcome};
pub use request::HttpRequest;
pub(crate) use scopes::Scopes;
pub use scopes::{HostLabel, Hosts, HttpLabels, MAX_OBSERVED_HOSTS, ScopeId};

use std::sync::{Arc, Mutex, PoisonError};

/// What all I/O threads have in common.
#[derive(Default)]
pub(crate) struct HttpFamily {
    pub scopes: Arc<Scopes>,
    threads: Mutex<Vec<Arc<HttpFigures>>>,
}

impl HttpFamily {
    pub fn meter(&self) -> HttpMeter {
        let figures = Arc::<HttpFigures>::default();
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&figures));
        HttpMeter::new(Arc::clone(&self.scopes), figures)
    }

    pub fn threads(&self) -> Vec<Arc<HttpFigures>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
