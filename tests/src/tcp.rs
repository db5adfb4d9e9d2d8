//! What the kernel says of a connection over TCP, asked by its two ends: sock_diag(7).
//!
//! A look costs some microseconds. The tables in /proc say the same, and cost ten milliseconds each however few connections there
//! are, which a test that waits pays two hundred times a second.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::fs;
use std::net::{SocketAddr, SocketAddrV4};

/// `tcp_states.h` of the kernel: of a connection that this end has closed.
const FIN_WAIT_1: u8 = 4;
const FIN_WAIT_2: u8 = 5;
const TIME_WAIT: u8 = 6;

/// One end of a connection.
struct End {
    state: u8,
    has_unread_bytes: bool,
    /// A socket that nobody has accepted yet, or that was closed, has no inode.
    has_inode: bool,
}

/// Whether a server on this machine has accepted the connection from `client` to `server` and read all that was sent, or has even
/// closed it since.
///
/// # Panics
/// When the addresses are not of IPv4.
pub fn has_read_all(server: SocketAddr, client: SocketAddr) -> bool {
    let (SocketAddr::V4(server), SocketAddr::V4(client)) = (server, client) else {
        panic!("tests connect over IPv4");
    };
    end(server, client).or_else(|| end_of_tables(server, client)).is_some_and(|end| {
        let is_closed_by_server = [FIN_WAIT_1, FIN_WAIT_2, TIME_WAIT].contains(&end.state);
        !end.has_unread_bytes && (end.has_inode || is_closed_by_server)
    })
}

/// `None`: the kernel knows of no such connection, or cannot be asked.
fn end(local: SocketAddrV4, remote: SocketAddrV4) -> Option<End> {
    const ERROR: u16 = 2;
    let socket = diagnosis().ok()?;
    send(&socket, &request(local, remote), SendFlags::empty()).ok()?;
    let mut response = [0; 512];
    let (_, length) = recv(&socket, &mut response[..], RecvFlags::empty()).ok()?;
    let message = response[..length].get(16..88)?;
    let number =
        |position: usize| u32::from_ne_bytes(message[position..position + 4].try_into().expect("four"));
    let kind = u16::from_ne_bytes([response[4], response[5]]);
    // `struct inet_diag_msg` of linux/inet_diag.h; a listener is found where no connection is.
    let port = |position: usize| u16::from_be_bytes([message[position], message[position + 1]]);
    let is_it = kind != ERROR && [port(4), port(6)] == [local.port(), remote.port()];
    is_it.then(|| End { state: message[1], has_unread_bytes: number(56) > 0, has_inode: number(68) > 0 })
}

fn diagnosis() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`, for this one connection.
fn request(local: SocketAddrV4, remote: SocketAddrV4) -> Vec<u8> {
    const LENGTH: u32 = 72;
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    const AF_INET: u8 = 2;
    const IPPROTO_TCP: u8 = 6;
    let mut message = LENGTH.to_ne_bytes().to_vec();
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    // The sequence and the sender, then the family, the protocol, and connections in all states.
    message.extend([0; 8]);
    message.extend([AF_INET, IPPROTO_TCP, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    message.extend([local.port().to_be_bytes(), remote.port().to_be_bytes()].concat());
    for end in [local, remote] {
        message.extend(end.ip().octets());
        message.extend([0; 12]);
    }
    // Any interface, and no cookie of an earlier look.
    message.extend([0; 4]);
    message.extend([0xff; 8]);
    message
}

/// The same from `/proc/net/tcp` and `tcp6`, for a kernel that cannot be asked.
fn end_of_tables(local: SocketAddrV4, remote: SocketAddrV4) -> Option<End> {
    let form =
        |end: SocketAddrV4| format!("{:08X}:{:04X}", u32::from_ne_bytes(end.ip().octets()), end.port());
    let (local, remote) = (form(local), form(remote));
    ["tcp", "tcp6"].iter().find_map(|table| {
        let table = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        table.lines().find_map(|line| {
            // sl, local, remote, state, tx:rx queue, timer, retransmits, uid, timeout, inode
            let fields: Vec<_> = line.split_whitespace().collect();
            let [_, here, there, state, queues, _, _, _, _, inode, ..] = fields.as_slice() else {
                return None;
            };
            // A listener for both protocols has the IPv4 addresses at the end of IPv6 ones.
            (here.ends_with(&local) && there.ends_with(&remote)).then(|| End {
                state: u8::from_str_radix(state, 16).unwrap_or_default(),
                has_unread_bytes: !queues.ends_with(":00000000"),
                has_inode: *inode != "0",
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_is_read_when_its_server_has_taken_the_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let mut client = TcpStream::connect(listener.local_addr().expect("it listens")).expect("it listens");
        let ends = (client.peer_addr().expect("it is open"), client.local_addr().expect("it is open"));
        let is_read = || {
            let (SocketAddr::V4(server), SocketAddr::V4(client)) = ends else { unreachable!("IPv4") };
            let both = [end(server, client), end_of_tables(server, client)];
            let unread = both.map(|end| end.expect("it is known").has_unread_bytes);
            assert_eq!(unread[0], unread[1], "both ways to ask agree");
            has_read_all(ends.0, ends.1)
        };
        client.write_all(b"abc").expect("there is room");
        assert!(!is_read(), "it is not even accepted");
        let (mut accepted, _) = listener.accept().expect("someone has connected");
        assert!(!is_read(), "three bytes wait");
        accepted.read_exact(&mut [0; 3]).expect("they were sent");
        assert!(is_read());
        drop(accepted);
        assert!(is_read(), "it is closed");
    }
}
