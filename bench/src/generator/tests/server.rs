//! Servers that misbehave as they are told: a thread for each connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// A server on a free port of 127.0.0.1; dropping it ends the accepting, and each connection ends with its client.
pub struct Server {
    pub address: SocketAddr,
    accepted: Arc<AtomicU32>,
    ending: Arc<AtomicBool>,
}

/// The server's side of a connection.
pub struct Peer {
    input: BufReader<TcpStream>,
}

impl Server {
    /// Calls `serve` with each connection.
    pub fn start(serve: impl Fn(Peer) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (accepted, ending) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let (counter, end, serve) = (Arc::clone(&accepted), Arc::clone(&ending), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                counter.fetch_add(1, Ordering::Relaxed);
                let serve = Arc::clone(&serve);
                thread::spawn(move || serve(Peer::new(stream)));
            }
        });
        Self { address, accepted, ending }
    }

    /// Answers every request of every connection with these bytes.
    pub fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |mut peer| while peer.request().is_some() && peer.send(&answer).is_some() {})
    }

    /// So many connections so far.
    pub fn accepted(&self) -> u32 {
        self.accepted.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

impl Peer {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("TCP");
        Self { input: BufReader::new(stream) }
    }

    /// The head of the next request; `None` when the client has closed.
    pub fn request(&mut self) -> Option<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            self.input.read_line(&mut head).ok().filter(|length| *length > 0)?;
        }
        Some(head)
    }

    /// So many bytes of the request's body, if they come.
    pub fn body(&mut self, length: u64) -> Option<()> {
        let read = std::io::copy(&mut self.input.by_ref().take(length), &mut std::io::sink()).ok()?;
        (read == length).then_some(())
    }

    pub fn send(&mut self, bytes: &[u8]) -> Option<()> {
        self.input.get_mut().write_all(bytes).ok()
    }

    /// Where the connection comes from.
    pub fn source(&self) -> IpAddr {
        self.input.get_ref().peer_addr().expect("it is connected").ip()
    }

    /// Sends an answer and its connection's end in one segment.
    pub fn send_and_close(self, bytes: &[u8]) {
        let mut stream = self.input.into_inner();
        rustix::net::sockopt::set_tcp_cork(&stream, true).expect("TCP");
        stream.write_all(bytes).expect("the client reads");
    }

    /// Waits until the client has closed.
    pub fn wait_for_end(&mut self) {
        let _ = std::io::copy(&mut self.input, &mut std::io::sink());
    }
}
