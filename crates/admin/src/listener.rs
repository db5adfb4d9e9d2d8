//! The admin listener's sockets.

use crate::address::Address;
use regent_net::{Inherited, Keeper, SocketFile};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 128;

/// Only the user that the server runs as.
const SOCKET_MODE: u32 = 0o600;

/// Sockets that listen, to be given to [`crate::serve`]. Dropped, they are closed, and a Unix socket's file is removed.
#[derive(Debug)]
pub struct Listeners {
    pub(crate) address: Address,
    pub(crate) sockets: Vec<Listener>,
}

#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    /// `None`: the file is not the server's.
    Unix(UnixListener, Option<SocketFile>),
}

/// Why the admin listener cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("the admin listener cannot listen on {address}: {cause}{}", hint(.cause))]
pub struct BindError {
    pub address: Address,
    #[source]
    pub cause: io::Error,
}

/// Listens on an address: on all of the host's when it is a name, so that `localhost` is both 127.0.0.1 and `::1`. A Unix
/// socket's file is for the own user only (0600); one that no process listens on any more is replaced. Addresses that are among
/// the inherited sockets are listened on by those.
///
/// # Errors
/// When one of its addresses is in use or cannot be had. A machine without IPv6 is no error.
pub fn bind(address: &Address, inherited: &Inherited) -> Result<Listeners, BindError> {
    let sockets = match address {
        Address::Tcp { host, port } => bind_tcp(host, *port, inherited),
        Address::Unix(path) => bind_unix(path, inherited),
    };
    match sockets {
        Ok(sockets) => Ok(Listeners { address: address.clone(), sockets }),
        Err(cause) => Err(BindError { address: address.clone(), cause }),
    }
}

impl Listeners {
    /// The TCP addresses, with the ports that the system chose for port 0; none of a Unix socket.
    pub fn tcp_addresses(&self) -> Vec<SocketAddr> {
        let tcp = |listener: &Listener| match listener {
            Listener::Tcp(socket) => socket.local_addr().ok(),
            Listener::Unix(..) => None,
        };
        self.sockets.iter().filter_map(tcp).collect()
    }

    /// Changes the permissions of a Unix socket's file, if that is the server's: who may write may connect.
    ///
    /// # Errors
    /// When the file system does not take them.
    pub fn set_mode(&self, mode: u32) -> Result<(), BindError> {
        let mut files = self.sockets.iter().filter_map(|listener| match listener {
            Listener::Unix(_, file) => file.as_ref(),
            Listener::Tcp(_) => None,
        });
        let set = files.try_for_each(|file| file.set_mode(mode));
        set.map_err(|cause| BindError { address: self.address.clone(), cause })
    }

    /// Other descriptors of the sockets, and whose they are for a server that takes them over.
    pub fn lend(&self) -> io::Result<Vec<(OwnedFd, Keeper)>> {
        let lend = |listener: &Listener| match listener {
            Listener::Tcp(socket) => Ok((socket.try_clone()?.into(), Keeper::Server(None))),
            Listener::Unix(socket, file) => {
                let identity = file.as_ref().map(SocketFile::identity);
                Ok((socket.try_clone()?.into(), Keeper::Server(identity)))
            }
        };
        self.sockets.iter().map(lend).collect()
    }
}

fn bind_unix(path: &Path, inherited: &Inherited) -> io::Result<Vec<Listener>> {
    if let Some((listener, file)) = inherited.unix(path)? {
        return Ok(vec![Listener::Unix(listener, file)]);
    }
    let (listener, file) = regent_net::listen_unix(path, SOCKET_MODE)?;
    Ok(vec![Listener::Unix(listener, Some(file))])
}

fn bind_tcp(host: &str, port: u16, inherited: &Inherited) -> io::Result<Vec<Listener>> {
    let mut sockets: Vec<Listener> = Vec::new();
    let mut port = port;
    for ip in addresses(host)? {
        match listen(SocketAddr::new(ip, port), inherited) {
            Ok(socket) => {
                // Of port 0 the system chooses one, which is then that of the others too.
                port = socket.local_addr()?.port();
                sockets.push(Listener::Tcp(socket));
            }
            Err(error) if ip.is_ipv6() && !sockets.is_empty() && lacks_ipv6(&error) => {}
            Err(error) => return Err(error),
        }
    }
    if sockets.is_empty() { Err(io::ErrorKind::AddrNotAvailable.into()) } else { Ok(sockets) }
}

/// IPv4 first. `localhost` is both loopback addresses whatever the resolver knows: a client may try either, and no other
/// program shall answer there.
fn addresses(host: &str) -> io::Result<Vec<IpAddr>> {
    match host {
        "" => Ok(vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]),
        "localhost" => Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
        host => {
            let mut found: Vec<IpAddr> = (host, 0).to_socket_addrs()?.map(|address| address.ip()).collect();
            found.sort_unstable();
            found.dedup();
            Ok(found)
        }
    }
}

fn listen(address: SocketAddr, inherited: &Inherited) -> io::Result<TcpListener> {
    if let Some(socket) = inherited.tcp(address)?.into_iter().next() {
        return Ok(socket);
    }
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // A restart must not wait for the connections of the last run to time out (TIME_WAIT).
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn lacks_ipv6(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT))
}

fn hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::AddrInUse => {
            "; another program or a site of this configuration listens there: stop it, or choose another address with the global option `admin`, or none \
             with `admin off`"
        }
        io::ErrorKind::AlreadyExists => "; remove it, or choose another path with the global option `admin`",
        _ => "; choose another address with the global option `admin`, or none with `admin off`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    fn tcp(text: &str) -> Result<Listeners, BindError> {
        bind(&text.parse().unwrap(), &Inherited::default())
    }

    #[test]
    fn localhost_is_both_loopback_addresses_with_one_port() {
        let addresses = tcp("localhost:0").unwrap().tcp_addresses();
        assert!(addresses.iter().all(|address| address.ip().is_loopback()));
        assert!(addresses.iter().all(|address| address.port() == addresses[0].port()));
        assert_eq!(addresses.len(), if TcpListener::bind("[::1]:0").is_ok() { 2 } else { 1 });
    }

    #[test]
    fn every_interface_is_both_families() {
        let listeners = tcp(":0").unwrap();
        let port = listeners.tcp_addresses()[0].port();
        std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    }

    #[test]
    fn an_address_in_use_says_what_to_do() {
        let first = tcp("127.0.0.1:0").unwrap();
        let error = tcp(&first.tcp_addresses()[0].to_string()).unwrap_err();
        assert_eq!(error.cause.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains("`admin off`"), "{error}");
    }

    #[test]
    fn a_unix_socket_is_private_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("admin.sock");
        let listeners = bind(&Address::Unix(path.clone()), &Inherited::default()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
        listeners.set_mode(0o660).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        drop(listeners);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_in_the_way_is_to_be_removed_by_hand() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("precious");
        std::fs::write(&path, "data").unwrap();
        let error = bind(&Address::Unix(path), &Inherited::default()).unwrap_err();
        assert!(error.to_string().contains("is no socket; remove it"), "{error}");
    }
}
