//! Addresses of a test's own: all of 127/8 is this machine, so nobody else listens where a test does.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports below those that the kernel gives to outgoing connections. A process uses each once in 20,000 times, for servers that
/// listen on all addresses, and processes begin far from each other.
const PORTS: std::ops::Range<u32> = 12_000..32_000;
/// Ports between the first ones of two processes that start one after the other.
const APART: u32 = 2_003;

/// An address that no other test has, of this process or of another. Nothing is asked of the kernel: it is there to be listened
/// on at any time, again and again.
pub fn own_address() -> SocketAddr {
    let [address] = own_addresses();
    address
}

/// Addresses that differ in their ports only.
pub fn own_addresses<const COUNT: usize>() -> [SocketAddr; COUNT] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let count = u32::try_from(COUNT).expect("they are few");
    let first = NEXT.fetch_add(count, Ordering::Relaxed);
    let process = std::process::id();
    let host = host(process, first);
    let port = |number: u32| {
        let port = PORTS.start + process.wrapping_mul(APART).wrapping_add(number) % (PORTS.end - PORTS.start);
        u16::try_from(port).expect("they are all below 65,536")
    };
    std::array::from_fn(|index| {
        SocketAddr::from((host, port(first + u32::try_from(index).expect("they are few"))))
    })
}

/// The process's number and the test's, with nothing in 127.0/16, where everybody else is.
fn host(process: u32, number: u32) -> Ipv4Addr {
    let byte = |value: u32| u8::try_from(value % 256).expect("it is below 256");
    Ipv4Addr::new(127, 1 + byte(process / 256 % 255), byte(process), 1 + byte(number % 254))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn addresses_are_given_once() {
        let given: HashSet<SocketAddr> = (0..5_000).flat_map(|_| own_addresses::<3>()).collect();
        assert_eq!(given.len(), 15_000);
        assert!(given.iter().all(|address| address.ip().is_loopback()));
        let [one, two] = own_addresses();
        assert_eq!(one.ip(), two.ip());
    }

    #[test]
    fn processes_that_start_one_after_the_other_have_other_hosts() {
        let hosts: HashSet<Ipv4Addr> = (300..65_000).map(|process| host(process, 7)).collect();
        assert_eq!(hosts.len(), 65_000 - 300);
        assert!(hosts.iter().all(|host| host.octets()[1] != 0));
    }
}
