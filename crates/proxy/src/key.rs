//! What of a request is hashed to choose an upstream.

use http::{HeaderName, header};
use regent_config::{HashKey, OptionalKey};
use regent_handlers::Exchange;
use std::net::IpAddr;

pub(crate) fn of(key: HashKey, exchange: &Exchange) -> Vec<u8> {
    let text = |address: Option<IpAddr>| {
        address.map(|address| address.to_canonical().to_string()).unwrap_or_default().into_bytes()
    };
    match key {
        HashKey::RemoteIp => text(exchange.connection.remote.map(|remote| remote.ip())),
        HashKey::ClientIp => text(exchange.client_ip()),
        HashKey::Uri => exchange.original_uri.to_string().into_bytes(),
    }
}

/// `None`: the request does not have it.
pub(crate) fn optional(key: &OptionalKey, exchange: &Exchange) -> Option<Vec<u8>> {
    let value = match key {
        OptionalKey::Header(name) => match name.parse::<HeaderName>().ok()? {
            header::HOST => exchange.host_port().to_vec(),
            name => exchange.headers.get(name)?.as_bytes().to_vec(),
        },
        OptionalKey::Query(key) => query_values(exchange.uri.query()?, key),
    };
    Some(value).filter(|value| !value.is_empty())
}

/// All values of a key, as they are written: a client that adds one must not choose for those who read the first.
fn query_values(query: &str, key: &str) -> Vec<u8> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let values: Vec<&str> = pairs.filter(|(name, _)| *name == key).map(|(_, value)| value).collect();
    values.join(",").into_bytes()
}

/// FNV-1a of both, with MurmurHash3's last step, without which similar keys have similar hashes. It is the same in every
/// process, so that several servers in front of the same upstreams agree.
pub(crate) fn hash(upstream: &str, key: &[u8]) -> u64 {
    let bytes = upstream.bytes().chain(key.iter().copied());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}
