//! Sockets that somebody else has bound: systemd, which keeps them while the server is not there, or the server whose place
//! this one takes.

use crate::listen::BACKLOG;
use crate::udp;
use crate::unix::{FileIdentity, SocketFile};
use rustix::fd::OwnedFd;
use rustix::net::sockopt::set_tcp_quickack;
use socket2::{SockRef, Type};
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Whose a socket is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keeper {
    /// systemd's, by the name that it has given it: it stays open there, and nobody else can bind its address.
    ServiceManager(String),
    /// The server's own, with the file of a Unix socket.
    Server(Option<FileIdentity>),
}

/// A socket that was bound elsewhere.
#[derive(Debug)]
pub struct InheritedSocket {
    socket: OwnedFd,
    place: Place,
    keeper: Keeper,
}

/// What a socket is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Tcp(SocketAddr),
    Udp(SocketAddr),
    Unix(PathBuf),
}

/// All sockets that were bound elsewhere. What is taken are other descriptors of them.
#[derive(Debug, Default)]
pub struct Inherited(Vec<InheritedSocket>);

impl InheritedSocket {
    /// # Errors
    /// When it is neither a socket that listens, of TCP or Unix, nor one for UDP, or is bound to nothing that has a name.
    pub fn new(socket: OwnedFd, keeper: Keeper) -> io::Result<Self> {
        let place = place(&socket)?;
        Ok(Self { socket, place, keeper })
    }

    /// Another descriptor of it.
    pub fn try_clone(&self) -> io::Result<Self> {
        let Self { socket, place, keeper } = self;
        Ok(Self { socket: socket.try_clone()?, place: place.clone(), keeper: keeper.clone() })
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// Whether it is open elsewhere for as long as the server runs.
    pub fn is_kept(&self) -> bool {
        matches!(self.keeper, Keeper::ServiceManager(_))
    }
}

impl Inherited {
    pub fn new(sockets: Vec<InheritedSocket>) -> Self {
        Self(sockets)
    }

    pub fn iter(&self) -> impl Iterator<Item = &InheritedSocket> {
        self.0.iter()
    }

    /// What the service manager has passed as this descriptor, from 3 on (sd_listen_fds(3)). A successor has them in the same order.
    pub fn passed(&self, descriptor: u16) -> Option<&InheritedSocket> {
        let index = descriptor.checked_sub(3)?;
        self.0.iter().filter(|own| own.is_kept()).nth(index.into())
    }

    /// Closes those that nobody else keeps open.
    pub fn keep_only_kept(&mut self) {
        self.0.retain(InheritedSocket::is_kept);
    }

    /// Those that listen on this address, non-blocking; none: there are none. Where only IPv4's wildcard was bound, it stands for
    /// that of IPv6, as for [`crate::listen`].
    pub fn tcp(&self, address: SocketAddr) -> io::Result<Vec<TcpListener>> {
        self.at(Place::Tcp, address).map(|own| listener(own.socket.try_clone()?)).collect()
    }

    /// The one for datagrams to this address, non-blocking; as above.
    pub fn udp(&self, address: SocketAddr) -> io::Result<Option<UdpSocket>> {
        let Some(found) = self.at(Place::Udp, address).next() else { return Ok(None) };
        udp::prepare(SockRef::from(&found.socket))?;
        Ok(Some(found.socket.try_clone()?.into()))
    }

    fn at(
        &self,
        kind: fn(SocketAddr) -> Place,
        address: SocketAddr,
    ) -> impl Iterator<Item = &InheritedSocket> {
        let bound = move |address| {
            let place = kind(address);
            self.0.iter().filter(move |own| own.place == place)
        };
        match bound(address).next() {
            None if address.ip().is_unspecified() => bound(SocketAddr::from(([0, 0, 0, 0], address.port()))),
            _ => bound(address),
        }
    }

    /// The one that listens at this path, non-blocking, with its file if that is the server's. One whose file has gone, so that
    /// nobody could connect to it, counts as none.
    pub fn unix(&self, path: &Path) -> io::Result<Option<(UnixListener, Option<SocketFile>)>> {
        for own in self.0.iter().filter(|own| own.place == Place::Unix(path.to_owned())) {
            let file = match &own.keeper {
                Keeper::ServiceManager(_) => None,
                Keeper::Server(None) => continue,
                Keeper::Server(Some(identity)) => {
                    match SocketFile::take_over(path, *identity, own.socket.try_clone()?) {
                        Some(file) => Some(file),
                        None => continue,
                    }
                }
            };
            let socket = UnixListener::from(own.socket.try_clone()?);
            socket.set_nonblocking(true)?;
            return Ok(Some((socket, file)));
        }
        Ok(None)
    }
}

/// With what [`crate::listen`] sets.
fn listener(socket: OwnedFd) -> io::Result<TcpListener> {
    let own = SockRef::from(&socket);
    own.set_nonblocking(true)?;
    own.set_tcp_nodelay(true)?;
    own.listen(BACKLOG)?;
    // A system that cannot do this serves with a packet more.
    let _ = set_tcp_quickack(&socket, false);
    Ok(socket.into())
}

fn place(socket: &OwnedFd) -> io::Result<Place> {
    let own = SockRef::from(socket);
    let (kind, address) = (own.r#type()?, own.local_addr()?);
    let listens = kind == Type::STREAM && own.is_listener()?;
    match (address.as_socket(), address.as_pathname()) {
        (Some(address), _) if listens => Ok(Place::Tcp(address)),
        (Some(address), _) if kind == Type::DGRAM => Ok(Place::Udp(address)),
        (_, Some(path)) if listens => Ok(Place::Unix(path.to_owned())),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is neither a socket that listens, of TCP or Unix, nor one for UDP",
        )),
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "{address}"),
            Self::Udp(address) => write!(formatter, "UDP {address}"),
            Self::Unix(path) => write!(formatter, "unix/{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    fn manager(socket: impl Into<OwnedFd>) -> InheritedSocket {
        InheritedSocket::new(socket.into(), Keeper::ServiceManager("a.socket".into())).unwrap()
    }

    #[test]
    fn a_socket_is_found_by_its_address_and_stays() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inherited = Inherited::new(vec![manager(listener)]);
        for _ in 0..2 {
            let taken = inherited.tcp(address).unwrap();
            let _client = TcpStream::connect(address).unwrap();
            assert!(taken[0].accept().unwrap().0.nodelay().unwrap());
            assert_eq!(taken[0].accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
        let other = SocketAddr::from(([127, 0, 0, 2], address.port()));
        assert!(inherited.tcp(other).unwrap().is_empty());
        assert!(inherited.udp(address).unwrap().is_none());
    }

    #[test]
    fn what_is_passed_is_counted_from_three_on() {
        let [one, other, own] = [0, 1, 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let places = [&one, &other].map(|socket| Place::Tcp(socket.local_addr().unwrap()));
        let own = InheritedSocket::new(own.into(), Keeper::Server(None)).unwrap();
        let inherited = Inherited::new(vec![manager(one), own, manager(other)]);
        let found = [3, 4].map(|descriptor| inherited.passed(descriptor).unwrap().place().clone());
        assert_eq!(found, places);
        assert!([0, 2, 5].iter().all(|descriptor| inherited.passed(*descriptor).is_none()));
    }

    #[test]
    fn the_wildcard_of_ipv4_stands_for_all() {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let inherited = Inherited::new(vec![manager(listener)]);
        assert_eq!(inherited.tcp(format!("[::]:{port}").parse().unwrap()).unwrap().len(), 1);
    }

    #[test]
    fn the_file_of_a_unix_socket_is_taken_over_or_left() {
        let directory = tempfile::tempdir().unwrap();
        let (ours, managed) = (directory.path().join("ours"), directory.path().join("managed"));
        let (socket, file) = crate::listen_unix(&ours, 0o600).unwrap();
        let server = Keeper::Server(Some(file.identity()));
        let ours_inherited = InheritedSocket::new(socket.into(), server).unwrap();
        let inherited = Inherited::new(vec![ours_inherited, manager(UnixListener::bind(&managed).unwrap())]);
        file.leave();
        let (_socket, file) = inherited.unix(&ours).unwrap().unwrap();
        UnixStream::connect(&ours).unwrap();
        drop(file);
        assert!(!ours.exists());
        assert!(inherited.unix(&ours).unwrap().is_none(), "nobody can connect to it any more");
        let (_socket, file) = inherited.unix(&managed).unwrap().unwrap();
        assert!(file.is_none());
    }

    #[test]
    fn what_is_no_server_socket_is_an_error() {
        let (one, _other) = UnixStream::pair().unwrap();
        let keeper = || Keeper::ServiceManager(String::new());
        assert!(InheritedSocket::new(one.into(), keeper()).is_err());
        assert!(InheritedSocket::new(tempfile::tempfile().unwrap().into(), keeper()).is_err());
    }
}
