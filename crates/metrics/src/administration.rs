//! What becomes of reloads, and of requests to the admin API, under Caddy's names (metrics.go of Caddy 2.11).

use crate::families::{counter, gauge, labels, seconds};
use crate::http::MethodLabel;
use prometheus::proto::MetricFamily;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// What Caddy calls all of the admin API.
const HANDLER: &str = "admin";

/// A request that the admin API answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdminRequest<'a> {
    /// Of the API, not of the request: what stands for a placeholder is left out.
    pub path: &'a str,
    pub method: &'a str,
    pub status: u16,
}

/// What became of a reload, or of the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadOutcome {
    Loaded,
    /// The configuration before goes on.
    Refused,
}

/// Both change seldom, so that a lock is good enough.
#[derive(Default)]
pub(crate) struct Administration {
    /// The last one; `None`: the server has not started.
    reload: Option<ReloadOutcome>,
    loaded: Option<SystemTime>,
    requests: BTreeMap<RequestKey, u64>,
    errors: BTreeMap<ErrorKey, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ErrorKey {
    path: String,
    method: MethodLabel,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RequestKey {
    to: ErrorKey,
    status: u16,
}

impl Administration {
    pub fn reloaded(&mut self, outcome: ReloadOutcome, now: SystemTime) {
        self.reload = Some(outcome);
        if outcome == ReloadOutcome::Loaded {
            self.loaded = Some(now);
        }
    }

    pub fn answered(&mut self, request: AdminRequest<'_>) {
        let AdminRequest { path, method, status } = request;
        let to = ErrorKey { path: path.to_owned(), method: MethodLabel::new(method) };
        if status >= 400 {
            *self.errors.entry(to.clone()).or_default() += 1;
        }
        *self.requests.entry(RequestKey { to, status }).or_default() += 1;
    }

    pub fn families(&self) -> Vec<MetricFamily> {
        let successful = self.reload.map(|outcome| f64::from(u8::from(outcome == ReloadOutcome::Loaded)));
        let loaded = self.loaded.and_then(|loaded| loaded.duration_since(UNIX_EPOCH).ok()).map(seconds);
        let requests = self.requests.iter().map(|(RequestKey { to, status }, count)| {
            let (code, method) = (status.to_string(), to.method.text());
            let pairs =
                [("code", code.as_str()), ("handler", HANDLER), ("method", method), ("path", &to.path)];
            (labels(&pairs), *count as f64)
        });
        let errors = self.errors.iter().map(|(to, count)| {
            let pairs = [("handler", HANDLER), ("method", to.method.text()), ("path", &to.path)];
            (labels(&pairs), *count as f64)
        });
        vec![
            counter(
                "caddy_admin_http_request_errors_total",
                "Number of requests resulting in middleware errors.",
                errors,
            ),
            counter(
                "caddy_admin_http_requests_total",
                "Counter of requests made to the Admin API's HTTP endpoints.",
                requests,
            ),
            gauge(
                "caddy_config_last_reload_success_timestamp_seconds",
                "Timestamp of the last successful configuration reload.",
                loaded.map(|loaded| (vec![], loaded)),
            ),
            gauge(
                "caddy_config_last_reload_successful",
                "Whether the last configuration reload attempt was successful.",
                successful.map(|successful| (vec![], successful)),
            ),
        ]
    }
}
