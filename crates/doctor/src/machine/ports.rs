//! Whether addresses can be listened on.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;

/// The name of a running server, as the kernel has it.
pub const OWN_NAME: &str = "regent";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    pub address: SocketAddr,
    pub state: PortState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortState {
    Free,
    /// Somebody listens there already: the name of the program, if it can be seen.
    Taken(Option<String>),
    /// Not for this user.
    Forbidden,
    /// Anything else: the address is not this machine's, for example.
    Unusable(String),
}

impl Port {
    /// Binds the address for an instant, without listening.
    pub fn read(address: SocketAddr) -> Self {
        let state = match bind(address) {
            Ok(()) => PortState::Free,
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                PortState::Taken(owner(&sockets(address.port())))
            }
            // The kernel looks at rights first; the server that may listen there perhaps does already.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => match sockets(address.port()) {
                sockets if sockets.is_empty() => PortState::Forbidden,
                sockets => PortState::Taken(owner(&sockets)),
            },
            Err(error) => PortState::Unusable(error.to_string()),
        };
        Self { address, state }
    }
}

fn bind(address: SocketAddr) -> std::io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // As servers do: connections of the past that the kernel still remembers are no obstacle.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(bind(&socket, &address)?)
}

/// The sockets that listen on this port, as links in `/proc/PID/fd` name them.
fn sockets(port: u16) -> Vec<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter();
    tables
        .filter_map(|file| fs::read_to_string(file).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .collect()
}

/// The name of the program that has one of these sockets. Only root sees those of other users, and of a server that has
/// closed its memory: who does not see the owner is told of a Regent if one runs.
fn owner(sockets: &[String]) -> Option<String> {
    let processes: Vec<_> = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path()).collect();
    let name = |process: &Path| Some(fs::read_to_string(process.join("comm")).ok()?.trim().to_owned());
    match processes.iter().find(|process| holds(process, sockets)) {
        Some(process) => name(process),
        None => processes.iter().filter_map(|process| name(process)).find(|name| name == OWN_NAME),
    }
}

/// From a table as proc(5) has it: local address in the second column, `0A` (listening) in the fourth, inode in the tenth.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    let suffix = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.len() > 9 && row[1].ends_with(&suffix) && row[3] == "0A")
        .map(|row| format!("socket:[{}]", row[9]))
        .collect()
}

fn holds(process: &Path, inodes: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    descriptors
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| inodes.iter().any(|inode| target.as_os_str() == inode.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn an_address_is_free_or_somebodys() {
        // All of 127/8 is this machine, and these are this process's own.
        let process = std::process::id();
        let [_, _, high, low] = process.to_be_bytes();
        let port = 12_000 + u16::try_from(process % 20_000).unwrap();
        let [address, beside] = [1, 2].map(|last| SocketAddr::from(([127, high.max(1), low, last], port)));
        let _listening = TcpListener::bind(address).unwrap();
        let PortState::Taken(Some(program)) = Port::read(address).state else {
            panic!("{:?}", Port::read(address));
        };
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(program, own.trim());
        // Not the same address after a close: what another test starts in that moment has the socket until it has begun.
        assert_eq!(Port::read(beside).state, PortState::Free);
        assert!(matches!(Port::read("192.0.2.1:80".parse().unwrap()).state, PortState::Unusable(_)));
    }

    #[test]
    fn rows_of_other_ports_and_of_connections_do_not_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 11 1 0 100 0 0 10 0\n\
            1: 0100007F:0050 0100007F:9999 01 00000000:00000000 00:00000000 00000000 0 0 12 1 0 100 0 0 10 0\n\
            2: 0100007F:0051 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 13 1 0 100 0 0 10 0\n";
        assert_eq!(listening_inodes(table, 80), ["socket:[11]"]);
    }
}
