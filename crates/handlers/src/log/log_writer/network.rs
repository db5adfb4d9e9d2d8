//! A collector that log lines are sent to, over TCP, a Unix socket or UDP.

use super::LogKind;
use regent_config::{LogAddress, LogNet, LogNetStart};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

/// Between two tries to connect: at first, and at most.
const RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_secs(5);
/// How long a collector may take nothing before its connection is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The same, and of the last try to connect, when the log is being closed.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(1);
/// What a datagram can carry over IPv4.
const MAX_DATAGRAM: usize = 65_507;
/// A collector that takes connections only to close them is not told of each time.
const TELL_AGAIN: Duration = Duration::from_secs(10);

/// The sending end of a connection that is made again whenever it breaks.
pub(super) struct Network {
    config: LogNet,
    kind: LogKind,
    connection: Option<Connection>,
    /// Is disconnected when the log is being closed.
    closing: Receiver<()>,
    /// Before the next try to connect; zero after one that worked.
    delay: Duration,
    last_told: Option<Instant>,
    trouble: Trouble,
    /// Lines, and not told of yet.
    lost: u64,
    last_loss: Option<Instant>,
    /// After the last try of a log that is being closed.
    is_given_up: bool,
}

enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
    Udp(UdpSocket),
}

/// Whether the collector can be reached, as far as was told.
#[derive(PartialEq)]
enum Trouble {
    None,
    Untold,
    Told,
}

impl Network {
    /// Connects, unless the first line is soon enough for that: a soft start waits for nobody.
    pub(super) fn open(config: &LogNet, kind: LogKind, closing: Receiver<()>) -> io::Result<Self> {
        let connection = match config.start {
            LogNetStart::Fails => Some(connect(config, config.dial_timeout)?),
            LogNetStart::GoesOn => None,
        };
        Ok(Self {
            config: config.clone(),
            kind,
            connection,
            closing,
            delay: Duration::ZERO,
            last_told: None,
            trouble: Trouble::None,
            lost: 0,
            last_loss: None,
            is_given_up: false,
        })
    }

    pub(super) fn name(&self) -> String {
        self.config.address.to_string()
    }

    /// Sends lines, and waits for as long as the collector cannot be reached: others wait in the queue meanwhile. When the
    /// log is closed, there is one last try.
    pub(super) fn send(&mut self, lines: &[u8]) {
        self.lost += self.deliver(lines);
        if self.lost > 0 && self.last_loss.is_none_or(|told| told.elapsed() >= TELL_AGAIN) {
            self.last_loss = Some(Instant::now());
            self.tell_loss();
        }
    }

    /// How many lines could not be sent.
    fn deliver(&mut self, lines: &[u8]) -> u64 {
        if self.is_given_up {
            return count(lines);
        }
        let (mut rest, mut lost) = (lines, 0);
        loop {
            let was_closing = self.is_closing_within(Duration::ZERO);
            match self.try_send(&mut rest, &mut lost, was_closing) {
                Ok(()) => {
                    self.delay = Duration::ZERO;
                    self.tell_recovery();
                    return lost;
                }
                Err(error) => {
                    self.connection = None;
                    self.tell_trouble(&error);
                }
            }
            if was_closing {
                self.is_given_up = true;
                return lost + count(rest);
            }
            // Should it be closed meanwhile, the next round is the last.
            self.is_closing_within(self.delay);
            self.delay = (self.delay * 2).clamp(RETRY, MAX_RETRY);
        }
    }

    /// Moves `rest` to the first line that was not sent as a whole.
    fn try_send(&mut self, rest: &mut &[u8], lost: &mut u64, is_closing: bool) -> io::Result<()> {
        if self.connection.as_ref().is_some_and(Connection::is_gone) {
            self.connection = None;
        }
        let limit = if is_closing { CLOSING_TIMEOUT } else { self.config.dial_timeout };
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.config, limit.min(self.config.dial_timeout))?,
        };
        let connection = self.connection.insert(connection);
        connection.limit(if is_closing { CLOSING_TIMEOUT } else { WRITE_TIMEOUT })?;
        match connection {
            Connection::Tcp(stream) => send_stream(stream, rest),
            Connection::Unix(stream) => send_stream(stream, rest),
            Connection::Udp(socket) => send_datagrams(socket, rest, lost),
        }
    }

    /// Waits that long at most.
    fn is_closing_within(&self, limit: Duration) -> bool {
        if limit.is_zero() {
            return self.closing.try_recv() == Err(TryRecvError::Disconnected);
        }
        self.closing.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected)
    }

    fn tell_trouble(&mut self, error: &io::Error) {
        if self.trouble == Trouble::Told {
            return;
        }
        self.trouble = Trouble::Untold;
        if self.last_told.is_none_or(|told| told.elapsed() >= TELL_AGAIN) {
            self.last_told = Some(Instant::now());
            self.trouble = Trouble::Told;
            let name = self.name();
            self.kind.tell(&format!(
                "cannot send log lines to {name}: {error}; lines wait until it can be reached, and those that find no room are lost"
            ));
        }
    }

    fn tell_loss(&mut self) {
        let (lost, name) = (std::mem::take(&mut self.lost), self.name());
        self.kind.tell(&format!("{lost} log lines for {name} are lost: they could not be sent"));
    }

    fn tell_recovery(&mut self) {
        if self.trouble == Trouble::Told {
            self.kind.tell(&format!("log lines are sent to {} again", self.name()));
        }
        self.trouble = Trouble::None;
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if self.lost > 0 {
            self.tell_loss();
        }
    }
}

impl Connection {
    /// Whether the collector has closed it: what is sent into a closed connection of TCP is lost without an error.
    fn is_gone(&self) -> bool {
        let Self::Tcp(stream) = self else { return false };
        let found = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
        let is_open = match found {
            Ok(read) => read > 0,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        !is_open || stream.set_nonblocking(false).is_err()
    }

    fn limit(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_write_timeout(Some(timeout)),
            Self::Unix(stream) => stream.set_write_timeout(Some(timeout)),
            Self::Udp(socket) => socket.set_write_timeout(Some(timeout)),
        }
    }
}

/// Asks the system's resolver each time: a collector may have moved.
fn connect(config: &LogNet, limit: Duration) -> io::Result<Connection> {
    let end = Instant::now() + limit;
    match &config.address {
        LogAddress::Unix(path) => UnixStream::connect(path).map(Connection::Unix),
        LogAddress::Tcp { host, port } => first((host.as_str(), *port).to_socket_addrs()?, |address| {
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            TcpStream::connect_timeout(&address, left).map(Connection::Tcp)
        }),
        LogAddress::Udp { host, port } => first((host.as_str(), *port).to_socket_addrs()?, |address| {
            let any = match address {
                SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            };
            let socket = UdpSocket::bind(any)?;
            socket.connect(address)?;
            Ok(Connection::Udp(socket))
        }),
    }
}

/// The first address that works; if none does, what was wrong with the last.
fn first(
    addresses: impl Iterator<Item = SocketAddr>,
    mut connect: impl FnMut(SocketAddr) -> io::Result<Connection>,
) -> io::Result<Connection> {
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match connect(address) {
            Ok(connection) => return Ok(connection),
            Err(failed) => error = failed,
        }
    }
    Err(error)
}

fn send_stream(stream: &mut impl Write, rest: &mut &[u8]) -> io::Result<()> {
    let lines = *rest;
    let mut sent = 0;
    while sent < lines.len() {
        match stream.write(&lines[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => sent += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        // A line that was cut is sent as a whole over the next connection.
        let whole = lines[..sent].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        *rest = &lines[whole..];
    }
    Ok(())
}

fn send_datagrams(socket: &UdpSocket, rest: &mut &[u8], lost: &mut u64) -> io::Result<()> {
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        let (line, others) = rest.split_at(end);
        if line.len() > MAX_DATAGRAM {
            *lost += 1;
        } else {
            send_datagram(socket, line)?;
        }
        *rest = others;
    }
    Ok(())
}

/// That an earlier datagram was refused is no reason to keep this one. Nobody tells of the others that are lost.
fn send_datagram(socket: &UdpSocket, line: &[u8]) -> io::Result<()> {
    let is_refusal = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    match socket.send(line) {
        Err(error) if is_refusal(&error) => match socket.send(line) {
            Err(error) if !is_refusal(&error) => Err(error),
            _ => Ok(()),
        },
        sent => sent.map(drop),
    }
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::super::LogWriter;
    use super::*;
    use regent_config::LogOutput;
    use std::io::{BufRead, BufReader, Read};
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;
    use std::sync::atomic::{AtomicU16, Ordering};

    fn net(address: LogAddress, start: LogNetStart) -> LogOutput {
        LogOutput::Net(LogNet { address, dial_timeout: Duration::from_secs(5), start })
    }

    fn tcp(address: SocketAddr) -> LogAddress {
        LogAddress::Tcp { host: address.ip().to_string(), port: address.port() }
    }

    fn start(output: &LogOutput) -> LogWriter {
        LogWriter::start(output, LogKind::Access).unwrap().unwrap()
    }

    /// An address that nobody else has, and at which nobody listens: all of 127/8 is this machine.
    fn own_address() -> SocketAddr {
        static PORTS: AtomicU16 = AtomicU16::new(12_000);
        let byte = |number: u32| u8::try_from(number).unwrap();
        let process = std::process::id();
        let ip = Ipv4Addr::new(127, byte(1 + process / 256 % 255), byte(process % 256), 1);
        SocketAddr::from((ip, PORTS.fetch_add(1, Ordering::Relaxed)))
    }

    #[test]
    fn lines_reach_a_collector_of_tcp_before_the_log_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let writer = start(&net(tcp(listener.local_addr().unwrap()), LogNetStart::Fails));
        for i in 0..1000 {
            writer.write(format!("{i}\n").into_bytes());
        }
        let (mut stream, _) = listener.accept().unwrap();
        drop(writer);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("0\n1\n") && text.ends_with("\n999\n"), "{text}");
    }

    #[test]
    fn a_collector_that_comes_back_gets_what_waited() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("collector.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let writer = start(&net(LogAddress::Unix(path.clone()), LogNetStart::Fails));
        let (stream, _) = listener.accept().unwrap();
        writer.write(b"first\n".to_vec());
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        assert_eq!(line, "first\n");
        drop((stream, listener));
        std::fs::remove_file(&path).unwrap();
        writer.write(b"second\n".to_vec());
        writer.write(b"third\n".to_vec());
        let listener = UnixListener::bind(&path).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        drop(writer);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "second\nthird\n");
    }

    #[test]
    fn a_connection_of_tcp_that_was_closed_swallows_no_line() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let writer = start(&net(tcp(listener.local_addr().unwrap()), LogNetStart::Fails));
        drop(listener.accept().unwrap());
        writer.write(b"kept\n".to_vec());
        let (mut stream, _) = listener.accept().unwrap();
        drop(writer);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "kept\n");
    }

    #[test]
    fn nobody_who_listens_is_an_error_unless_the_start_is_soft() {
        let address = own_address();
        let error = LogWriter::start(&net(tcp(address), LogNetStart::Fails), LogKind::Access).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let writer = start(&net(tcp(address), LogNetStart::GoesOn));
        writer.write(b"early\n".to_vec());
        let listener = TcpListener::bind(address).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        drop(writer);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "early\n");
    }

    #[test]
    fn a_log_without_a_collector_can_be_closed() {
        let (open, closing) = std::sync::mpsc::channel();
        let LogOutput::Net(config) = net(tcp(own_address()), LogNetStart::GoesOn) else { unreachable!() };
        let mut network = Network::open(&config, LogKind::Access, closing).unwrap();
        drop(open);
        assert_eq!(network.deliver(b"one\ntwo\n"), 2, "they are counted");
        assert_eq!(network.deliver(b"three\n"), 1, "nothing else is tried");
    }

    #[test]
    fn a_line_is_a_datagram() {
        let address = own_address();
        let socket = UdpSocket::bind(address).unwrap();
        let (_open, closing) = std::sync::mpsc::channel();
        let address = LogAddress::Udp { host: address.ip().to_string(), port: address.port() };
        let LogOutput::Net(config) = net(address, LogNetStart::Fails) else { unreachable!() };
        let mut network = Network::open(&config, LogKind::Access, closing).unwrap();
        let long = vec![b'x'; MAX_DATAGRAM];
        let lines = [b"one\n", &long[..], b"\ntwo\n"].concat();
        assert_eq!(network.deliver(&lines), 1, "one was too long");
        let mut buffer = [0; 100];
        for expected in ["one\n", "two\n"] {
            let read = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..read], expected.as_bytes());
        }
        drop(socket);
        for _ in 0..3 {
            assert_eq!(network.deliver(b"nobody listens\n"), 0);
        }
    }

    #[test]
    fn a_line_that_was_cut_is_kept_whole() {
        struct Cut(Vec<u8>);
        impl Write for Cut {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let room = 6 - self.0.len();
                if room == 0 {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                self.0.extend_from_slice(&bytes[..room.min(bytes.len())]);
                Ok(room.min(bytes.len()))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut rest: &[u8] = b"one\ntwo\nthree\n";
        assert!(send_stream(&mut Cut(Vec::new()), &mut rest).is_err());
        assert_eq!(rest, b"two\nthree\n");
    }
}
