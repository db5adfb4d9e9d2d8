//! Ranges of addresses.

use crate::model::IpRange;
use std::net::IpAddr;

/// Several ranges of addresses.
#[derive(Debug)]
pub struct Networks(Vec<Network>);

#[derive(Debug)]
struct Network {
    address: IpAddr,
    bits: u8,
}

impl Networks {
    pub fn new(ranges: &[IpRange]) -> Self {
        Self(ranges.iter().map(|(address, bits)| Network::new(*address, *bits)).collect())
    }

    /// An IPv4-mapped IPv6 address is the IPv4 address.
    pub fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

impl Network {
    /// An IPv4-mapped IPv6 range is the IPv4 range.
    fn new(address: IpAddr, bits: u8) -> Self {
        match (address, address.to_canonical()) {
            (IpAddr::V6(_), mapped @ IpAddr::V4(_)) => {
                Self { address: mapped, bits: bits.saturating_sub(96) }
            }
            (address, _) => Self { address, bits },
        }
    }

    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.bits.min(32));
                (u32::from(network) ^ u32::from(address)).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.bits.min(128));
                (u128::from(network) ^ u128::from(address)).checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}
