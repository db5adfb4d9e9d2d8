//! Which upstreams are given requests at all.

use super::UpstreamAddress;
use serde::Serialize;
use std::time::Duration;

/// What failed requests say of an upstream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassiveHealth {
    /// How long a failure is remembered. 0: failures are not counted.
    pub fail_duration: Duration,
    /// Failures within that time from which on the upstream gets nothing; at least 1.
    pub max_fails: u32,
    /// Statuses that are failures, as ranges with both ends in them.
    pub unhealthy_status: Vec<(u16, u16)>,
    /// A response that took so long is a failure. 0: none does.
    pub unhealthy_latency: Duration,
    /// Requests at once, of all I/O threads, from which on the upstream gets no more. `None`: no bound.
    pub unhealthy_request_count: Option<u32>,
}

/// How upstreams are asked how they are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActiveHealth {
    /// Path and query.
    pub uri: String,
    /// Who is asked instead of the upstream, with its port; goes before `port`.
    pub upstream: Option<UpstreamAddress>,
    /// `None`: that of the upstream.
    pub port: Option<u16>,
    pub method: String,
    /// Of the question.
    pub request_body: String,
    pub redirects: Redirects,
    pub headers: Vec<(String, String)>,
    pub interval: Duration,
    /// For the whole response.
    pub timeout: Duration,
    /// Both ends of a range of statuses.
    pub status: (u16, u16),
    /// A regular expression that the body has to match.
    pub body: Option<String>,
    /// Good responses in a row that make an upstream healthy again; at least 1.
    pub passes: u32,
    /// Bad ones that make it unhealthy; at least 1.
    pub fails: u32,
}

/// What becomes of a response that leads elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Redirects {
    /// It is the answer.
    Judged,
    /// The same server is asked for the other place.
    Followed,
}

impl Default for ActiveHealth {
    /// As in Caddy (reverseproxy/healthchecks.go).
    fn default() -> Self {
        Self {
            uri: "/".into(),
            upstream: None,
            port: None,
            method: "GET".into(),
            request_body: String::new(),
            redirects: Redirects::Judged,
            headers: Vec::new(),
            interval: Duration::from_secs(30),
            timeout: Duration::from_secs(5),
            status: (200, 299),
            body: None,
            passes: 1,
            fails: 1,
        }
    }
}

impl Default for PassiveHealth {
    fn default() -> Self {
        Self {
            fail_duration: Duration::ZERO,
            max_fails: 1,
            unhealthy_status: Vec::new(),
            unhealthy_latency: Duration::ZERO,
            unhealthy_request_count: None,
        }
    }
}
