//! Version 2: binary.

use super::{Addresses, BadHeader, Parsed, ProxyHeader, begin_with};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family and protocol, length of the rest.
const FIXED: usize = 16;

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, BadHeader> {
    match begin_with(bytes, SIGNATURE) {
        None => return Ok(Parsed::Incomplete),
        Some(false) => return Ok(Parsed::Absent),
        Some(true) => {}
    }
    let Some((fixed, rest)) = bytes.split_at_checked(FIXED) else { return Ok(Parsed::Incomplete) };
    let is_local = match fixed[12] {
        0x20 => true,
        0x21 => false,
        _ => return Err(BadHeader),
    };
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    // All of it has to come, with what follows the addresses, which says nothing that is needed here.
    let Some(rest) = rest.get(..length) else { return Ok(Parsed::Incomplete) };
    let addresses = if is_local { None } else { addresses(fixed[13], rest)? };
    Ok(Parsed::Header(ProxyHeader { addresses }, FIXED + length))
}

/// Section 2.2: the upper four bits are the family, the lower four the protocol.
fn addresses(kind: u8, rest: &[u8]) -> Result<Option<Addresses>, BadHeader> {
    match kind {
        0x11 | 0x12 => v4(rest).ok_or(BadHeader).map(Some),
        0x21 | 0x22 => v6(rest).ok_or(BadHeader).map(Some),
        // Of no family, of no protocol, or of Unix sockets: there is nothing to be called a client's address.
        0x00..=0x02 | 0x10 | 0x20 | 0x30..=0x32 => Ok(None),
        _ => Err(BadHeader),
    }
}

fn v4(rest: &[u8]) -> Option<Addresses> {
    let (client, rest) = rest.split_first_chunk::<4>()?;
    let (local, rest) = rest.split_first_chunk::<4>()?;
    let (client_port, local_port) = ports(rest)?;
    Some(Addresses {
        client: SocketAddr::new(Ipv4Addr::from(*client).into(), client_port),
        local: SocketAddr::new(Ipv4Addr::from(*local).into(), local_port),
    })
}

fn v6(rest: &[u8]) -> Option<Addresses> {
    let (client, rest) = rest.split_first_chunk::<16>()?;
    let (local, rest) = rest.split_first_chunk::<16>()?;
    let (client_port, local_port) = ports(rest)?;
    Some(Addresses {
        client: SocketAddr::new(Ipv6Addr::from(*client).into(), client_port),
        local: SocketAddr::new(Ipv6Addr::from(*local).into(), local_port),
    })
}

fn ports(rest: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *rest.first_chunk::<4>()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}
