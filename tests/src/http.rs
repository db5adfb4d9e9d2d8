//! A small HTTP/1.1 client that hides nothing: raw bytes out, parsed responses in.

use crate::{DEADLINE, tcp, until};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

/// One connection. Reads fail after [`DEADLINE`].
pub struct Conn<S = TcpStream> {
    stream: BufReader<S>,
}

/// A response, its body read to the end.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub reason: String,
    /// `HTTP/1.1`
    pub version: String,
    /// In the order of the wire, names as they were written.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The 1xx responses that came before.
    pub informational: Vec<Response>,
}

/// A request to be sent on a connection of its own.
pub struct Request {
    address: SocketAddr,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Conn {
    pub fn open(address: SocketAddr) -> Self {
        Self::try_open(address).unwrap_or_else(|error| panic!("connecting to {address}: {error}"))
    }

    pub fn try_open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Waits until the server has read everything that was sent.
    pub fn wait_until_read(&self) {
        Self::wait_until_all_read(std::slice::from_ref(self));
    }

    /// The same for many connections.
    pub fn wait_until_all_read(conns: &[Self]) {
        let mut left: Vec<_> = conns.iter().map(Self::ends).collect();
        until("the server reads what was sent", || {
            left.retain(|(server, client)| !tcp::has_read_all(*server, *client));
            left.is_empty().then_some(())
        });
    }

    fn ends(&self) -> (SocketAddr, SocketAddr) {
        (self.stream.get_ref().peer_addr().expect("the connection is open"), self.local_address())
    }

    /// Says that nothing more will be sent.
    pub fn finish_sending(&self) {
        // An error is of a server that has closed the connection before, which is no less an end.
        let _ = self.stream.get_ref().shutdown(Shutdown::Write);
    }

    /// The local end's address.
    pub fn local_address(&self) -> SocketAddr {
        self.stream.get_ref().local_addr().expect("the connection is open")
    }
}

impl<S: Read + Write> Conn<S> {
    /// Over a stream that is ready for requests.
    pub fn over(stream: S) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    /// What it goes over.
    pub fn get_ref(&self) -> &S {
        self.stream.get_ref()
    }

    /// Sends these bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the server takes what is sent");
    }

    /// Like [`Self::send`], for a server that may hang up on us.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())
    }

    /// Reads the answer to anything but HEAD.
    pub fn response(&mut self) -> Response {
        self.try_response("GET")
            .expect("a whole response")
            .expect("a response, not the end of the connection")
    }

    /// Reads the answer to a HEAD request.
    pub fn response_to_head(&mut self) -> Response {
        self.try_response("HEAD")
            .expect("a whole response")
            .expect("a response, not the end of the connection")
    }

    /// Reads the answer to a request with this method; `None` when the connection ended instead.
    ///
    /// # Errors
    /// When the connection breaks or ends within the response, or what arrives is not HTTP/1.
    pub fn try_response(&mut self, method: &str) -> io::Result<Option<Response>> {
        let mut informational = Vec::new();
        loop {
            let Some(mut response) = self.head()? else { return Ok(None) };
            if (100..200).contains(&response.status) && response.status != 101 {
                informational.push(response);
                continue;
            }
            if method != "HEAD" && response.status != 204 && response.status != 304 {
                self.body(&mut response)?;
            }
            response.informational = informational;
            return Ok(Some(response));
        }
    }

    /// Reads a response's head, also of a 1xx one, and leaves the body unread; `None` at the end of the connection.
    pub fn head(&mut self) -> io::Result<Option<Response>> {
        let Some(status_line) = self.line()? else { return Ok(None) };
        let mut parts = status_line.splitn(3, ' ');
        let version =
            parts.next().filter(|v| v.starts_with("HTTP/1.")).ok_or_else(|| malformed(&status_line))?;
        let status = parts.next().and_then(|s| s.parse().ok()).ok_or_else(|| malformed(&status_line))?;
        let mut response = Response {
            status,
            version: version.to_owned(),
            reason: parts.next().unwrap_or_default().to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            informational: Vec::new(),
        };
        loop {
            let line = self.line()?.ok_or(ErrorKind::UnexpectedEof)?;
            if line.is_empty() {
                return Ok(Some(response));
            }
            let (name, value) = line.split_once(':').ok_or_else(|| malformed(&line))?;
            response.headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// Reads the body behind a [head](Self::head).
    ///
    /// # Errors
    /// When the connection breaks or ends before the body does.
    pub fn rest_of(&mut self, mut response: Response) -> io::Result<Response> {
        self.body(&mut response)?;
        Ok(response)
    }

    /// Reads until `text` has arrived, and gives everything up to its end; for bodies that come in parts.
    pub fn read_until(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        while !seen.ends_with(text.as_bytes()) {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).unwrap_or_else(|error| {
                panic!("waiting for {text:?}, after {:?}: {error}", String::from_utf8_lossy(&seen))
            });
            seen.push(byte[0]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    }

    /// Reads up to `buffer.len()` bytes as they come; 0 at the end.
    pub fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }

    /// Whether the server has closed the connection with nothing more sent. Waits for one or the other.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.fill_buf() {
            Ok(rest) => rest.is_empty(),
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    fn body(&mut self, response: &mut Response) -> io::Result<()> {
        if response.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return self.chunks(&mut response.body);
        }
        match response.header("content-length") {
            Some(length) => {
                let length = length.parse().map_err(|_| malformed(length))?;
                response.body.resize(length, 0);
                self.stream.read_exact(&mut response.body)
            }
            None => self.stream.read_to_end(&mut response.body).map(drop),
        }
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let line = self.line()?.ok_or(ErrorKind::UnexpectedEof)?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16).map_err(|_| malformed(&line))?;
            let start = body.len();
            body.resize(start + size, 0);
            self.stream.read_exact(&mut body[start..])?;
            // The line end after a chunk's bytes; after the last one, the trailer section up to its empty line.
            while !self.line()?.ok_or(ErrorKind::UnexpectedEof)?.is_empty() {}
            if size == 0 {
                return Ok(());
            }
        }
    }

    /// A line without its end; `None` at the end of the connection.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        match line.pop() {
            None => Ok(None),
            Some(b'\n') => {
                let text = String::from_utf8_lossy(&line);
                Ok(Some(text.strip_suffix('\r').ok_or_else(|| malformed(&text))?.to_owned()))
            }
            Some(_) => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Response {
    /// The first value of a field, the name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// All values of a field, in order.
    pub fn header_all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str()).collect()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; panics with the response when it is not.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    /// Itself when the status is as expected; panics with the whole response otherwise.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:?}\n{}", self.headers, self.text());
        self
    }
}

impl Request {
    pub fn new(address: SocketAddr, method: &str, target: &str) -> Self {
        Self { address, method: method.into(), target: target.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends this body, with its length.
    pub fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.header("Content-Type", content_type).header("Content-Length", length)
    }

    /// Sends these fields as an HTML form does.
    pub fn form(self, fields: &[(&str, &str)]) -> Self {
        let pairs: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("{}={}", percent_encode(name), percent_encode(value)))
            .collect();
        self.body("application/x-www-form-urlencoded", pairs.join("&"))
    }

    /// Sends it on a new connection and reads the answer; panics when there is none.
    pub fn send(&self) -> Response {
        self.try_send().unwrap_or_else(|error| panic!("{} {}: {error}", self.method, self.target))
    }

    /// Sends it on a new connection and reads the answer.
    ///
    /// # Errors
    /// When the connection is refused, breaks, or ends before the answer is whole.
    pub fn try_send(&self) -> io::Result<Response> {
        let mut conn = Conn::try_open(self.address)?;
        conn.try_send(self.to_bytes())?;
        conn.try_response(&self.method)?.ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    /// The bytes of it, as they go over the wire.
    fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "Connection: close\r\n\r\n";
        [head.as_bytes(), &self.body].concat()
    }
}

/// Percent-encodes everything but RFC 3986's unreserved characters.
pub fn percent_encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => out += &format!("%{byte:02X}"),
        }
        out
    })
}

fn malformed(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("not HTTP/1: {text:?}"))
}
