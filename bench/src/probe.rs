//! One request over a fresh connection, sent as wrk sends it, to check who answers what.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Time for the whole answer of a check, and its largest size.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER: u64 = 16 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The `Server` header, empty without one.
    pub server: String,
    pub body: String,
    /// Bytes of the answer on the wire: head and body, framing included.
    pub wire_bytes: u64,
}

/// Whether something accepts connections there.
pub fn accepts(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

/// `GET path`, keep-alive.
pub fn get(address: SocketAddr, path: &str) -> Result<Answer> {
    exchange(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
        .with_context(|| format!("GET {path} on {address}"))
}

/// `POST path` with a body that is no form, keep-alive.
pub fn post(address: SocketAddr, path: &str, body: &[u8]) -> Result<Answer> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    exchange(address, &[head.as_bytes(), body].concat()).with_context(|| format!("POST {path} on {address}"))
}

fn exchange(address: SocketAddr, request: &[u8]) -> Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(request)?;
    read_answer(BufReader::new(stream.take(MAX_ANSWER)))
}

/// RFC 9112, sections 4, 6 and 7.1, as far as the measured servers use them.
fn read_answer(mut input: impl BufRead) -> Result<Answer> {
    let mut wire_bytes = 0;
    let status_line = read_line(&mut input, &mut wire_bytes)?;
    let status = status_line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3)?.parse().ok())
        .with_context(|| format!("not an HTTP/1.1 answer: {status_line:?}"))?;
    let (mut server, mut length, mut chunked) = (String::new(), None, false);
    loop {
        let line = read_line(&mut input, &mut wire_bytes)?;
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { bail!("not a header: {line:?}") };
        match name.to_ascii_lowercase().as_str() {
            "server" => value.trim().clone_into(&mut server),
            "content-length" => length = Some(value.trim().parse::<u64>()?),
            "transfer-encoding" => chunked = value.trim().eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let body = match length {
        _ if chunked => read_chunks(&mut input, &mut wire_bytes)?,
        Some(length) => read_exactly(&mut input, length, &mut wire_bytes)?,
        None => {
            bail!("the answer has neither Content-Length nor chunks, so the connection cannot be kept alive")
        }
    };
    Ok(Answer { status, server, body: String::from_utf8_lossy(&body).into_owned(), wire_bytes })
}

fn read_chunks(input: &mut impl BufRead, wire_bytes: &mut u64) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(input, wire_bytes)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).with_context(|| format!("not a chunk size: {line:?}"))?;
        body.extend(read_exactly(input, size, wire_bytes)?);
        let end = read_line(input, wire_bytes)?;
        if !end.is_empty() {
            bail!("a chunk is longer than its size, or a trailer follows: {end:?}");
        }
        if size == 0 {
            return Ok(body);
        }
    }
}

/// A line without its end.
fn read_line(input: &mut impl BufRead, wire_bytes: &mut u64) -> Result<String> {
    let mut line = String::new();
    *wire_bytes += input.read_line(&mut line)? as u64;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.trim_end_matches('\r').to_owned()),
        None => bail!("the connection was closed in the middle of the answer"),
    }
}

fn read_exactly(input: &mut impl BufRead, length: u64, wire_bytes: &mut u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = input.take(length).read_to_end(&mut bytes)? as u64;
    *wire_bytes += read;
    if read < length {
        bail!("the connection was closed after {read} of {length} bytes");
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_with_a_length() {
        let text = "HTTP/1.1 200 OK\r\nServer: nginx/1.22\r\nContent-Length: 5\r\n\r\nhellorest";
        let answer = read_answer(text.as_bytes()).expect("valid");
        assert_eq!(
            (answer.status, answer.server.as_str(), answer.body.as_str()),
            (200, "nginx/1.22", "hello")
        );
        assert_eq!(answer.wire_bytes, text.len() as u64 - 4);
    }

    #[test]
    fn an_answer_in_chunks() {
        let text =
            "HTTP/1.1 502 Bad\r\ntransfer-encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let answer = read_answer(text.as_bytes()).expect("valid");
        assert_eq!((answer.status, answer.body.as_str()), (502, "abcde"));
        assert_eq!(answer.wire_bytes, text.len() as u64);
    }

    #[test]
    fn broken_answers_are_errors() {
        for text in [
            "",
            "SSH-2.0\r\n",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\n\r\nno length",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        ] {
            assert!(read_answer(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
