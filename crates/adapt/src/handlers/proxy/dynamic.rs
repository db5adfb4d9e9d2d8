//! Upstreams that DNS knows.

use crate::object::{Object, nanoseconds};
use crate::text::text;
use regent_config::{AddressFamilies, DnsServers, DynamicRecords, DynamicUpstreams};
use std::net::SocketAddr;
use std::time::Duration;

/// How long an answer is used where nothing is said, as in Caddy.
const REFRESH: Duration = Duration::from_secs(60);
/// The port where nothing is said.
const PORT: &str = "80";
const DNS_PORT: u16 = 53;

/// `None`: there are none.
pub(super) fn sources(sources: &[DynamicUpstreams]) -> Option<Object> {
    match sources {
        [] => None,
        [only] => Some(source(only)),
        several => {
            let mut object = Object::of_kind("source", "multi");
            object.set_list("sources", several.iter().map(source));
            Some(object)
        }
    }
}

fn source(upstreams: &DynamicUpstreams) -> Object {
    let DynamicUpstreams { records, refresh, dns } = upstreams;
    let mut object = records_object(records);
    object.set_duration("refresh", *refresh, REFRESH);
    object.non_empty("resolver", resolver(dns));
    object.set_some_duration("dial_timeout", dns.timeout);
    object
}

fn records_object(records: &DynamicRecords) -> Object {
    match records {
        DynamicRecords::Addresses { name, port, families } => {
            let mut object = Object::of_kind("source", "a");
            object.set("name", text(name));
            object.set_unless("port", text(port), PORT.to_owned());
            object.set_some("versions", versions(*families));
            object
        }
        DynamicRecords::Services { name, grace_period } => {
            let mut object = Object::of_kind("source", "srv");
            object.set("name", text(name));
            object.set_some("grace_period", grace_period.map(nanoseconds));
            object
        }
    }
}

fn versions(families: AddressFamilies) -> Option<Object> {
    let key = match families {
        AddressFamilies::Both => return None,
        AddressFamilies::Ipv4 => "ipv4",
        AddressFamilies::Ipv6 => "ipv6",
    };
    let mut object = Object::new();
    object.set(key, true);
    Some(object)
}

/// Who is asked. The time for an answer stands elsewhere.
pub(super) fn resolver(dns: &DnsServers) -> Object {
    let DnsServers { servers, timeout: _ } = dns;
    let mut object = Object::new();
    object.set_list("addresses", servers.iter().map(dns_server));
    object
}

fn dns_server(server: &SocketAddr) -> String {
    if server.port() == DNS_PORT { server.ip().to_string() } else { server.to_string() }
}
