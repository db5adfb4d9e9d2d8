//! Listening addresses: their sockets, from one configuration to the next.

use crate::http3;
use crate::listen_error::ListenError;
use regent_config::{Listen, Server, UnixSocket};
use regent_net::{Inherited, InheritedSocket, Keeper, Neighbours, Place, SocketFile};
use rustix::fd::OwnedFd;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

/// The listening addresses of a server.
#[derive(Default)]
pub struct Addresses {
    open: Vec<Address>,
    /// Of those to come, sockets that are bound already.
    inherited: Inherited,
    /// That of the next one. No two of a server's life have the same.
    next: usize,
}

/// A listening address.
struct Address {
    number: usize,
    /// As it was configured.
    listen: Listen,
    /// With the port that the system chose for port 0.
    actual: Listen,
    /// Whether there is a socket for HTTP/3 beside those of TCP. Once there, it stays.
    has_udp: bool,
    /// Removed when it is dropped.
    file: Option<SocketFile>,
}

/// New sockets of an address, which connections are to be taken from under its number.
pub enum Opened {
    /// To be accepted from.
    Stream(usize, Vec<OwnedFd>),
    /// For HTTP/3.
    Udp(usize, UdpSocket),
}

impl Opened {
    pub fn number(&self) -> usize {
        match self {
            Self::Stream(number, _) | Self::Udp(number, _) => *number,
        }
    }
}

/// An address of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenedOn {
    pub number: usize,
    /// Where it speaks HTTP/3; `None`: nowhere.
    pub udp_port: Option<u16>,
}

/// What a configuration changes of the addresses. Dropped, it closes what it opened.
pub struct AddressChange {
    opened: Vec<Address>,
    pub sockets: Vec<Opened>,
    /// By number.
    pub closed: Vec<usize>,
    /// Numbers of addresses that have got a UDP socket.
    with_udp: Vec<usize>,
    /// The configuration's addresses, in its order.
    pub addresses: Vec<ListenedOn>,
}

impl Addresses {
    /// None yet. Sockets of these addresses are used where they are wanted.
    pub fn inheriting(inherited: Inherited) -> Self {
        Self { inherited, ..Self::default() }
    }

    /// The first configuration has taken what it wants. What remains is what the service manager keeps, for later ones.
    pub fn has_started(&mut self, admin: &[InheritedSocket]) {
        self.inherited.keep_only_kept();
        for kept in self.inherited.iter() {
            let is_used = self.open.iter().any(|address| address.is_at(kept.place()))
                || admin.iter().any(|admin| admin.place() == kept.place());
            if !is_used {
                tracing::warn!(
                    "the service manager listens on {}, which nothing is served at: clients wait there for nothing",
                    kept.place()
                );
            }
        }
    }

    /// What a server that takes this one's place needs. `lent`: descriptors of all sockets that connections come from.
    pub fn hand_over(&self, lent: Vec<(usize, OwnedFd)>) -> io::Result<Vec<InheritedSocket>> {
        let mut sockets: Vec<_> =
            self.inherited.iter().map(InheritedSocket::try_clone).collect::<Result<_, _>>()?;
        let kept: Vec<_> = sockets.iter().map(|kept| kept.place().clone()).collect();
        for (number, socket) in lent {
            let file = self.open.iter().find(|own| own.number == number).and_then(|own| own.file.as_ref());
            let socket = InheritedSocket::new(socket, Keeper::Server(file.map(SocketFile::identity)))?;
            if !kept.contains(socket.place()) {
                sockets.push(socket);
            }
        }
        Ok(sockets)
    }

    /// The files of Unix sockets stay: another server has taken them over.
    pub fn leave_files(&mut self) {
        self.open.iter_mut().filter_map(|address| address.file.take()).for_each(SocketFile::leave);
    }

    pub fn has(&self, number: usize) -> bool {
        self.open.iter().any(|address| address.number == number)
    }

    /// Opens what these servers listen on and nothing here does yet.
    pub fn change_to(&self, servers: &[Server]) -> Result<AddressChange, ListenError> {
        let mut change = AddressChange {
            opened: Vec::new(),
            sockets: Vec::new(),
            closed: Vec::new(),
            with_udp: Vec::new(),
            addresses: Vec::with_capacity(servers.len()),
        };
        for server in servers {
            let (number, actual, had_udp) = match self.find(&server.listen) {
                Some(kept) => (kept.number, kept.actual.clone(), kept.has_udp),
                None => {
                    self.open(&server.listen, &mut change).map(|(number, actual)| (number, actual, false))?
                }
            };
            let wanted = http3::address(server, &actual);
            let udp = match wanted {
                Some(address) if !had_udp => http3::bind(
                    address,
                    self.udp_neighbours(address, &change),
                    server.options.udp_port,
                    &self.inherited,
                )?,
                _ => None,
            };
            let udp_port = wanted.filter(|_| had_udp || udp.is_some()).map(|address| address.port());
            if let Some(socket) = udp {
                change.with_udp.push(number);
                change.sockets.push(Opened::Udp(number, socket));
            }
            change.addresses.push(ListenedOn { number, udp_port });
        }
        let is_left =
            |address: &&Address| !change.addresses.iter().any(|other| other.number == address.number);
        change.closed = self.open.iter().filter(is_left).map(|address| address.number).collect();
        Ok(change)
    }

    /// To be called when the sockets have been handed over, and the others closed. Says in the log what is new.
    pub fn apply(&mut self, change: AddressChange, servers: &[Server]) {
        self.next += change.opened.len();
        for address in self.open.extract_if(.., |address| change.closed.contains(&address.number)) {
            tracing::info!(address = name(&address.actual), "not serving this address any more");
        }
        self.open.extend(change.opened);
        for address in &mut self.open {
            address.has_udp |= change.with_udp.contains(&address.number);
        }
        for server in servers {
            self.set_mode(&server.listen);
        }
        let place = |number| change.addresses.iter().position(|address| address.number == number);
        self.open.sort_by_key(|address| place(address.number));
    }

    /// With the ports that the system chose for port 0, in the order of the configuration.
    pub fn actual(&self) -> Vec<Listen> {
        self.open.iter().map(|address| address.actual.clone()).collect()
    }

    fn find(&self, listen: &Listen) -> Option<&Address> {
        self.open.iter().find(|address| is_same(&address.listen, listen))
    }

    fn open(&self, listen: &Listen, change: &mut AddressChange) -> Result<(usize, Listen), ListenError> {
        let number = self.next + change.opened.len();
        let (actual, sockets, file) = match listen {
            Listen::Tcp(address) => {
                let (actual, sockets) =
                    listen_tcp(*address, self.neighbours(*address, change), &self.inherited)
                        .map_err(|cause| ListenError::Tcp { address: address.to_string(), cause })?;
                (actual, sockets, None)
            }
            Listen::Unix(UnixSocket { path, mode }) => {
                let (socket, file) = listen_unix(path, *mode, &self.inherited)
                    .map_err(|cause| ListenError::Unix { path: path.clone(), cause })?;
                (listen.clone(), vec![socket], file)
            }
            Listen::Descriptor(number) => {
                let (actual, sockets) = listen_passed(*number, &self.inherited)?;
                (actual, sockets, None)
            }
        };
        // Connections would come to the one site or to the other.
        let other = self.open.iter().chain(&change.opened).find(|own| is_same(&own.actual, &actual));
        let is_passed = |listen: &Listen| matches!(listen, Listen::Descriptor(_));
        if let Some(other) = other
            && is_passed(listen) != is_passed(&other.listen)
        {
            return Err(ListenError::Twice { one: name(listen), other: name(&other.listen) });
        }
        let address =
            Address { number, listen: listen.clone(), actual: actual.clone(), has_udp: false, file };
        change.opened.push(address);
        change.sockets.push(Opened::Stream(number, sockets));
        Ok((number, actual))
    }

    /// `:8080` can be opened before `127.0.0.1:8080` is closed, and both may be listened on.
    fn neighbours(&self, address: SocketAddr, change: &AddressChange) -> Neighbours {
        neighbours(self.open.iter().chain(&change.opened).any(|own| own.overlaps(address)))
    }

    fn udp_neighbours(&self, address: SocketAddr, change: &AddressChange) -> Neighbours {
        let has_udp = |own: &&Address| own.has_udp || change.with_udp.contains(&own.number);
        neighbours(self.open.iter().chain(&change.opened).filter(has_udp).any(|own| own.overlaps(address)))
    }

    fn set_mode(&mut self, listen: &Listen) {
        let Listen::Unix(socket) = listen else { return };
        let address = self.open.iter_mut().find(|address| is_same(&address.listen, listen));
        let Some(address) = address.filter(|address| address.listen != *listen) else { return };
        let changed = address.file.as_ref().map(|file| file.set_mode(socket.mode));
        if let Some(Err(error)) = changed {
            tracing::error!(%error, socket = %socket.path.display(), "the mode of the socket could not be changed");
        }
        address.listen = listen.clone();
    }
}

impl Address {
    fn is_at(&self, place: &Place) -> bool {
        match (&self.actual, place) {
            (Listen::Tcp(own), Place::Tcp(address)) => own == address,
            (Listen::Tcp(own), Place::Udp(address)) => self.has_udp && own == address,
            (Listen::Unix(own), Place::Unix(path)) => own.path == *path,
            _ => false,
        }
    }

    /// Whether a connection to the one may be one to the other.
    fn overlaps(&self, address: SocketAddr) -> bool {
        match &self.actual {
            Listen::Tcp(own) => {
                let is_wide = own.ip().is_unspecified() || address.ip().is_unspecified();
                own.port() != 0 && own.port() == address.port() && (is_wide || own.ip() == address.ip())
            }
            Listen::Unix(_) | Listen::Descriptor(_) => false,
        }
    }
}

fn neighbours(are_own: bool) -> Neighbours {
    if are_own { Neighbours::Own } else { Neighbours::None }
}

/// Whether the same sockets do for both: the mode of a Unix socket's file can be changed.
fn is_same(one: &Listen, other: &Listen) -> bool {
    match (one, other) {
        (Listen::Unix(one), Listen::Unix(other)) => one.path == other.path,
        _ => one == other,
    }
}

fn name(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(socket) => socket.path.display().to_string(),
        Listen::Descriptor(number) => format!("fd/{number}"),
    }
}

/// What the service manager has passed, and where it is bound.
fn listen_passed(number: u16, inherited: &Inherited) -> Result<(Listen, Vec<OwnedFd>), ListenError> {
    let place =
        inherited.passed(number).map(InheritedSocket::place).ok_or(ListenError::NotPassed { number })?;
    match place {
        Place::Tcp(address) => {
            let sockets = inherited.tcp(*address);
            let sockets =
                sockets.map_err(|cause| ListenError::Tcp { address: address.to_string(), cause })?;
            Ok((Listen::Tcp(*address), sockets.into_iter().map(OwnedFd::from).collect()))
        }
        Place::Unix(path) => match inherited.unix(path) {
            // The mode is the service manager's.
            Ok(Some((socket, _))) => {
                Ok((Listen::Unix(UnixSocket { path: path.clone(), mode: 0 }), vec![socket.into()]))
            }
            Ok(None) => Err(ListenError::NotPassed { number }),
            Err(cause) => Err(ListenError::Unix { path: path.clone(), cause }),
        },
        Place::Udp(_) => Err(ListenError::Datagrams { number }),
    }
}

fn listen_tcp(
    address: SocketAddr,
    neighbours: Neighbours,
    inherited: &Inherited,
) -> io::Result<(Listen, Vec<OwnedFd>)> {
    let mut sockets = inherited.tcp(address)?;
    if sockets.is_empty() {
        sockets = regent_net::listen(address, neighbours)?;
    }
    Ok((Listen::Tcp(sockets[0].local_addr()?), sockets.into_iter().map(OwnedFd::from).collect()))
}

fn listen_unix(path: &Path, mode: u32, inherited: &Inherited) -> io::Result<(OwnedFd, Option<SocketFile>)> {
    if let Some((socket, file)) = inherited.unix(path)? {
        file.iter().try_for_each(|file| file.set_mode(mode))?;
        return Ok((socket.into(), file));
    }
    let (socket, file) = regent_net::listen_unix(path, mode)?;
    Ok((socket.into(), Some(file)))
}
