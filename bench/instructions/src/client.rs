//! A connection on which one request follows another, or that is for one alone.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// Under callgrind an answer takes a millisecond, and the first one as long as PHP's start.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// A connection to this port of 127.0.0.1.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn connect(port: u16) -> std::io::Result<Self> {
        let stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// `GET path`, and the body of the answer.
    ///
    /// # Errors
    /// When the answer is not 200 with a `Content-Length`, or does not come.
    pub fn get(&mut self, path: &str) -> Result<String> {
        self.ask(path, "").with_context(|| format!("GET {path}"))
    }

    /// The same as the last request of the connection; waits for the server to close it.
    ///
    /// # Errors
    /// Also when something else follows the answer.
    pub fn get_last(mut self, path: &str) -> Result<String> {
        let body = self.ask(path, "Connection: close\r\n").with_context(|| format!("GET {path}"))?;
        ensure!(self.stream.fill_buf()?.is_empty(), "GET {path}: more than one answer came");
        Ok(body)
    }

    fn ask(&mut self, path: &str, fields: &str) -> Result<String> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        read_answer(&mut self.stream)
    }
}

fn read_answer(input: &mut impl BufRead) -> Result<String> {
    let status = read_line(input)?;
    ensure!(status.starts_with("HTTP/1.1 200 "), "the answer is {status:?}");
    let mut length = None;
    loop {
        let line = read_line(input)?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse::<usize>()?);
        }
    }
    let mut body = vec![0; length.context("the answer has no Content-Length")?];
    input.read_exact(&mut body)?;
    Ok(String::from_utf8(body)?)
}

/// A line without its end.
fn read_line(input: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => bail!("the connection ended within an answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_the_length_that_the_head_says() {
        let mut input = &b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabHTTP/1.1"[..];
        assert_eq!(read_answer(&mut input).expect("it is well-formed"), "ab");
        assert_eq!(input, b"HTTP/1.1");
    }

    #[test]
    fn anything_but_a_whole_200_is_an_error() {
        for text in [
            "",
            "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nno length",
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\ncontent-le",
        ] {
            assert!(read_answer(&mut text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
