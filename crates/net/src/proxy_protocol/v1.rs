//! Version 1: a line of text.

use super::{Addresses, BadHeader, Parsed, ProxyHeader, begin_with};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const START: &[u8] = b"PROXY ";
/// With its line end, as section 2.1 counts.
const LONGEST: usize = 107;

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, BadHeader> {
    match begin_with(bytes, START) {
        None => return Ok(Parsed::Incomplete),
        Some(false) => return Ok(Parsed::Absent),
        Some(true) => {}
    }
    let beginning = &bytes[..bytes.len().min(LONGEST)];
    let Some(end) = beginning.windows(2).position(|two| two == b"\r\n") else {
        return if bytes.len() < LONGEST { Ok(Parsed::Incomplete) } else { Err(BadHeader) };
    };
    let line = std::str::from_utf8(&bytes[START.len()..end]).map_err(|_| BadHeader)?;
    Ok(Parsed::Header(ProxyHeader { addresses: addresses(line)? }, end + 2))
}

fn addresses(line: &str) -> Result<Option<Addresses>, BadHeader> {
    let mut words = line.split(' ');
    let is_v4 = match words.next() {
        Some("TCP4") => true,
        Some("TCP6") => false,
        // What follows is to be ignored.
        Some("UNKNOWN") => return Ok(None),
        _ => return Err(BadHeader),
    };
    let address = |word: Option<&str>| ip(word?, is_v4);
    let (client, local) = (address(words.next()), address(words.next()));
    let (client_port, local_port) = (port(words.next()), port(words.next()));
    match (client, local, client_port, local_port, words.next()) {
        (Some(client), Some(local), Some(client_port), Some(local_port), None) => Ok(Some(Addresses {
            client: SocketAddr::new(client, client_port),
            local: SocketAddr::new(local, local_port),
        })),
        _ => Err(BadHeader),
    }
}

fn ip(word: &str, is_v4: bool) -> Option<IpAddr> {
    match is_v4 {
        true => word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        false => word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
    }
}

/// In decimal, without leading zeros.
fn port(word: Option<&str>) -> Option<u16> {
    let word = word?;
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    word.parse().ok().filter(|_| is_plain)
}
