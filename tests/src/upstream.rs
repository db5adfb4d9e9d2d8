//! Servers behind the server: whatever a test wants them to say, to the byte.

use crate::DEADLINE;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// At a port of the system's choice.
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server of a test. Dropped, it takes no more connections.
pub struct Upstream {
    address: SocketAddr,
    seen: Arc<Seen>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    stopping: AtomicBool,
    connections: AtomicUsize,
    requests: Mutex<Vec<Received>>,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Received {
    /// The request line and the fields, as they were written.
    pub head: String,
    pub body: Vec<u8>,
    /// Fields behind a chunked body.
    pub trailers: String,
    /// Which connection it came over, from 0.
    pub connection: usize,
}

impl Upstream {
    /// Answers each request with these bytes, and goes on with the connection unless they say `Connection: close`.
    pub fn answering(answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::answering_at(ANYWHERE, answer)
    }

    /// The same at a certain address.
    pub fn answering_at(
        address: SocketAddr,
        answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::<Seen>::default();
        let noted = Arc::clone(&seen);
        Self::serve(address, seen, move |stream, connection| {
            let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
            while let Some(request) = receive(&mut reader, connection) {
                let response = answer(&request);
                noted.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                let closes = String::from_utf8_lossy(&response).contains("Connection: close\r\n");
                if (&stream).write_all(&response).is_err() || closes {
                    return;
                }
            }
        })
    }

    /// Gives each connection to `talk`, with its number.
    pub fn talking(talk: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        Self::serve(ANYWHERE, Arc::default(), talk)
    }

    fn serve(
        address: SocketAddr,
        seen: Arc<Seen>,
        talk: impl Fn(TcpStream, usize) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let talk = Arc::new(talk);
        let counted = Arc::clone(&seen);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if counted.stopping.load(Ordering::SeqCst) {
                    return;
                }
                let number = counted.connections.fetch_add(1, Ordering::SeqCst);
                stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
                stream.set_write_timeout(Some(DEADLINE)).expect("a time-out");
                let talk = Arc::clone(&talk);
                std::thread::spawn(move || talk(stream, number));
            }
        });
        Self { address, seen, accepting: Some(accepting) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections were made to it.
    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// The requests of [`Self::answering`] so far.
    pub fn requests(&self) -> Vec<Received> {
        self.seen.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last of them.
    #[track_caller]
    pub fn last(&self) -> Received {
        self.requests().pop().expect("a request")
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.seen.stopping.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        self.accepting.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Received {
    /// The values of a field, joined with `|`; empty if there is none.
    pub fn field(&self, name: &str) -> String {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let values = lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
        values.collect::<Vec<_>>().join("|")
    }

    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }
}

/// What a server of WebSocket answers to a key (RFC 6455 §4.2.2).
pub fn websocket_answer(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

/// Reads a request. `None`: the connection has ended.
pub fn receive(reader: &mut impl BufRead, connection: usize) -> Option<Received> {
    let head = section(reader)?;
    let mut request = Received { head, body: Vec::new(), trailers: String::new(), connection };
    if request.field("transfer-encoding") == "chunked" {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            if size == 0 {
                request.trailers = section(reader)?;
                return Some(request);
            }
            let start = request.body.len();
            request.body.resize(start + size, 0);
            reader.read_exact(&mut request.body[start..]).ok()?;
            reader.read_exact(&mut [0; 2]).ok()?;
        }
    }
    request.body.resize(request.field("content-length").parse().unwrap_or(0), 0);
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// Lines up to an empty one.
fn section(reader: &mut impl BufRead) -> Option<String> {
    let mut text = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim_end().is_empty() {
            return Some(text);
        }
        text.push_str(&line);
    }
}

/// A response with this body and its length.
pub fn ok(fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
