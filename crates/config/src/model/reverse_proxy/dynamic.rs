//! Upstreams that DNS knows.

use crate::model::Template;
use serde::Serialize;
use std::net::SocketAddr;
use std::time::Duration;

/// Where upstreams are looked up: one source of `dynamic`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DynamicUpstreams {
    pub records: DynamicRecords,
    /// How long an answer is used before the question is asked again; more than 0.
    pub refresh: Duration,
    pub dns: DnsServers,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum DynamicRecords {
    /// `a`: the addresses of a name are the upstreams, all at the same port.
    Addresses { name: Template, port: Template, families: AddressFamilies },
    /// `srv`: upstreams with ports of their own.
    Services {
        /// Such as `_http._tcp.example.com`.
        name: Template,
        /// How long the last answer is used while there is no other, from when it was due. `None`: an hour, but not if
        /// the name is known to be gone.
        grace_period: Option<Duration>,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressFamilies {
    #[default]
    Both,
    Ipv4,
    Ipv6,
}

/// Who is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
pub struct DnsServers {
    /// Empty: those of the system.
    pub servers: Vec<SocketAddr>,
    /// For the answer to one question, before it is put again. `None`: as the system says, or 5 s.
    pub timeout: Option<Duration>,
}

impl DnsServers {
    /// Whether nothing else is said than to ask as everybody on this machine does.
    pub fn is_default(&self) -> bool {
        self.servers.is_empty() && self.timeout.is_none()
    }
}
