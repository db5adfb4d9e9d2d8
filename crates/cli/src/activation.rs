//! Sockets that systemd has bound for this service: sd_listen_fds(3).

use anyhow::{Context, Result};
use listenfd::ListenFd;
use regent_server::{Inherited, InheritedSocket, Keeper};
use rustix::fd::OwnedFd;
use std::io;

/// All of them. They are closed when another program is started. To be called before there is a second thread: it removes
/// variables from the environment, so that nobody takes the sockets twice.
///
/// # Errors
/// When one is of a kind that nothing is served at.
pub fn sockets() -> Result<Inherited> {
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut passed = ListenFd::from_env();
    let mut sockets = Vec::new();
    for index in 0..passed.len() {
        let name = names.next().filter(|name| !name.is_empty()).unwrap_or("unknown");
        let keeper = Keeper::ServiceManager(name.to_owned());
        let socket = take(&mut passed, index).and_then(|socket| InheritedSocket::new(socket, keeper));
        sockets.push(socket.with_context(|| {
            format!(
                "the socket `{name}` that the service manager has passed cannot be used: a socket unit for Regent has \
                 ListenStream=, and ListenDatagram= for HTTP/3"
            )
        })?);
    }
    Ok(Inherited::new(sockets))
}

fn take(passed: &mut ListenFd, index: usize) -> io::Result<OwnedFd> {
    if let Ok(Some(socket)) = passed.take_tcp_listener(index) {
        return Ok(socket.into());
    }
    if let Ok(Some(socket)) = passed.take_unix_listener(index) {
        return Ok(socket.into());
    }
    let socket = passed.take_udp_socket(index)?;
    socket.map(OwnedFd::from).ok_or_else(|| io::ErrorKind::NotFound.into())
}
