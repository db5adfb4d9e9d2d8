//! The PROXY protocol, versions 1 and 2 (haproxy's doc/proxy-protocol.txt): a balancer that passes a connection on says first
//! whose it is.

mod v1;
mod v2;

use bytes::{Buf, BytesMut};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that are read at first: a header without much beside the addresses, and a request behind it.
const FIRST_READ: usize = 8 * 1024;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyHeader {
    /// `None`: the balancer speaks for itself, or does not know, or the addresses are none of IP.
    pub addresses: Option<Addresses>,
}

/// Of the connection that the client has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    pub client: SocketAddr,
    pub local: SocketAddr,
}

/// What bytes at the beginning of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// A header may become of them.
    Incomplete,
    /// Something else.
    Absent,
    /// A header of so many bytes.
    Header(ProxyHeader, usize),
}

/// What begins as a header and is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadHeader;

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the PROXY header is not well-formed")
    }
}

impl std::error::Error for BadHeader {}

/// Looks for a header at the beginning of `bytes`.
///
/// # Errors
/// If they begin with a header that is not well-formed.
pub fn parse_proxy_header(bytes: &[u8]) -> Result<Parsed, BadHeader> {
    match bytes.first() {
        None => Ok(Parsed::Incomplete),
        Some(b'P') => v1::parse(bytes),
        Some(_) => v2::parse(bytes),
    }
}

/// Reads a header, if there is one. What was read behind it, or instead of it, is left in `read`; so is everything if the future
/// is dropped before its end.
///
/// # Errors
/// Those of the stream; `UnexpectedEof` if it ends before it is known; `InvalidData` with a [`BadHeader`].
pub async fn read_proxy_header<S>(stream: &mut S, read: &mut BytesMut) -> io::Result<Option<ProxyHeader>>
where
    S: AsyncRead + Unpin,
{
    loop {
        match parse_proxy_header(read) {
            Ok(Parsed::Absent) => return Ok(None),
            Ok(Parsed::Header(header, length)) => {
                read.advance(length);
                return Ok(Some(header));
            }
            Ok(Parsed::Incomplete) => {}
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
        read.reserve(FIRST_READ);
        if stream.read_buf(read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Whether `bytes` begin with `start`; `None`: they are too few to tell.
fn begin_with(bytes: &[u8], start: &[u8]) -> Option<bool> {
    let length = bytes.len().min(start.len());
    match bytes[..length] == start[..length] {
        true if length < start.len() => None,
        is_start => Some(is_start),
    }
}

#[cfg(test)]
mod tests;
