//! Networks that addresses are in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// So many bits of an address, the rest zero; of one with fewer bits all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpPrefix {
    pub v4: u8,
    pub v6: u8,
}

impl IpPrefix {
    pub fn bits(self, address: IpAddr) -> u8 {
        match address {
            IpAddr::V4(_) => self.v4.min(32),
            IpAddr::V6(_) => self.v6.min(128),
        }
    }

    pub fn of(self, address: IpAddr) -> IpAddr {
        let bits = u32::from(self.bits(address));
        match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                Ipv4Addr::from(u32::from(address) & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                Ipv6Addr::from(u128::from(address) & mask).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_an_address_is_zero() {
        let of = |v4, v6, text: &str| IpPrefix { v4, v6 }.of(text.parse().unwrap()).to_string();
        assert_eq!(of(24, 64, "192.0.2.7"), "192.0.2.0");
        assert_eq!(of(0, 0, "192.0.2.7"), "0.0.0.0");
        assert_eq!(of(99, 200, "192.0.2.7"), "192.0.2.7");
        assert_eq!(of(24, 32, "2001:db8:1::7"), "2001:db8::");
        assert_eq!(of(24, 0, "2001:db8:1::7"), "::");
    }
}
