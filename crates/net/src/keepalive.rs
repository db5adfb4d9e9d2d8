//! Probes of a silent connection's other end, by which one that is gone without a word is found out.

use rustix::fd::AsFd;
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
use std::io;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence before the first one, in whole seconds, of which it is at least one.
    pub idle: Duration,
    /// Between two, in the same way.
    pub interval: Duration,
    /// So many in a row that are not answered are the end; from 1 to 127.
    pub count: u32,
}

impl Keepalive {
    /// That of connections of which nothing else is said, as Go has it, and with it Caddy.
    pub const USUAL: Self =
        Self { idle: Duration::from_secs(15), interval: Duration::from_secs(15), count: 9 };

    /// Of a connection, or a listening socket, from which connections inherit it.
    ///
    /// # Errors
    /// When it is no socket of TCP.
    pub fn set(self, socket: impl AsFd) -> io::Result<()> {
        set_tcp_keepidle(&socket, self.idle)?;
        set_tcp_keepintvl(&socket, self.interval)?;
        set_tcp_keepcnt(&socket, self.count)?;
        Ok(set_socket_keepalive(socket, true)?)
    }

    pub fn end(socket: impl AsFd) -> io::Result<()> {
        Ok(set_socket_keepalive(socket, false)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::{socket_keepalive, tcp_keepcnt, tcp_keepidle, tcp_keepintvl};
    use std::net::{TcpListener, TcpStream};

    fn of(socket: &TcpStream) -> (bool, u64, u64, u32) {
        let seconds = |duration: Duration| duration.as_secs();
        (
            socket_keepalive(socket).unwrap(),
            seconds(tcp_keepidle(socket).unwrap()),
            seconds(tcp_keepintvl(socket).unwrap()),
            tcp_keepcnt(socket).unwrap(),
        )
    }

    #[test]
    fn connections_inherit_it_and_can_have_another() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Keepalive::USUAL.set(&listener).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(of(&accepted), (true, 15, 15, 9));
        let other = Keepalive { idle: Duration::from_secs(60), interval: Duration::from_secs(5), count: 3 };
        other.set(&accepted).unwrap();
        assert_eq!(of(&accepted), (true, 60, 5, 3));
        Keepalive::end(&accepted).unwrap();
        assert!(!of(&accepted).0);
    }
}
