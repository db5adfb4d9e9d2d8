//! IP addresses and ranges of them.

use crate::context::Context;
use crate::model::IpRange;
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::net::IpAddr;

/// What `private_ranges` stands for in Caddy.
const PRIVATE_RANGES: &[&str] =
    &["192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.1/8", "fd00::/8", "::1"];

/// `private_ranges`, addresses and CIDR ranges, each of which the environment may have.
pub(crate) fn parse(cx: &Context<'_>, tokens: &[Token]) -> Result<Vec<IpRange>, Error> {
    let mut ranges = Vec::new();
    for token in tokens {
        match cx.fixed_text(token)?.as_str() {
            "private_ranges" => ranges.extend(PRIVATE_RANGES.iter().filter_map(|text| range(text))),
            "forwarded" => {
                return Err(error(token, "`forwarded` is no option any more; use the condition `client_ip`"));
            }
            text => ranges.push(range(text).ok_or_else(|| {
                error(token, format!("`{text}` is no IP address or range; write `10.0.0.1`, `10.0.0.0/8` or `private_ranges`"))
            })?),
        }
    }
    Ok(ranges)
}

fn range(text: &str) -> Option<IpRange> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    Some((address, length.unwrap_or(most))).filter(|(_, length)| *length <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_both_kinds() {
        assert_eq!(range("10.0.0.0/8"), Some(([10, 0, 0, 0].into(), 8)));
        assert_eq!(range("::1"), Some((IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), 128)));
        for text in ["10.0.0.0/33", "::/129", "10.0.0/8", "x", "10.0.0.0/", ""] {
            assert_eq!(range(text), None, "{text}");
        }
    }
}
