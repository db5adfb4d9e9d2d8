//! HTTP/2 without TLS, by prior knowledge (RFC 9113 §3.3): a client begins with the preface, which no HTTP/1.1 request is.

use crate::h1::Settings;
use crate::h2::frames::PREFACE;
use bytes::BytesMut;
use regent_net::{CoarseInstant, Drain, Prefixed};
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that are read at first, as many as hyper reads: an HTTP/1.1 request comes with the same system calls as without this.
const FIRST_READ: usize = 8 * 1024;

/// What a client speaks.
pub enum Sniffed<S> {
    Http1(Prefixed<S>),
    Http2(Prefixed<S>),
    /// Nothing: it has said too little, and then closed, or was silent for too long, or the server drains.
    Nothing,
}

/// What some bytes are the beginning of.
#[derive(Debug, PartialEq, Eq)]
enum Beginning {
    Http1,
    Http2,
    /// Of either.
    Unknown,
}

/// Finds out what the client of a stream without TLS speaks. An HTTP/1.1 request waits for no more than its first bytes: those
/// of all methods in use differ from the preface by the third.
///
/// An error is one of the stream.
pub async fn sniff<S>(stream: S, settings: &Settings, drain: &Drain) -> io::Result<Sniffed<S>>
where
    S: AsyncRead + Unpin,
{
    let mut stream = stream;
    let mut read = BytesMut::with_capacity(FIRST_READ);
    let mut end = pin!(drain.begun_for_client_of(CoarseInstant::now(), settings.last_request));
    loop {
        let limit = if read.is_empty() { settings.idle } else { settings.read_header };
        if read_more(&mut stream, &mut read, limit, end.as_mut()).await? == 0 {
            return Ok(Sniffed::Nothing);
        }
        let beginning = Beginning::of(&read);
        let prefixed = |stream, read: BytesMut| Prefixed::new(read.freeze(), stream);
        match beginning {
            Beginning::Http1 => return Ok(Sniffed::Http1(prefixed(stream, read))),
            Beginning::Http2 => return Ok(Sniffed::Http2(prefixed(stream, read))),
            Beginning::Unknown => {}
        }
    }
}

/// Says how many bytes have come; none if no more will be waited for.
async fn read_more<S>(
    stream: &mut S,
    read: &mut BytesMut,
    limit: Duration,
    end: Pin<&mut impl Future<Output = ()>>,
) -> io::Result<usize>
where
    S: AsyncRead + Unpin,
{
    tokio::select! {
        biased;
        count = stream.read_buf(read) => count,
        () = tokio::time::sleep(limit) => Ok(0),
        () = end => Ok(0),
    }
}

impl Beginning {
    fn of(bytes: &[u8]) -> Self {
        match bytes.len().min(PREFACE.len()) {
            length if bytes[..length] != PREFACE[..length] => Self::Http1,
            length if length < PREFACE.len() => Self::Unknown,
            _ => Self::Http2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    const SETTINGS: Settings = Settings {
        read_header: Duration::from_secs(10),
        idle: Duration::from_secs(100),
        last_request: Duration::from_secs(2),
        write: Duration::from_secs(60),
        max_header_size: 16 * 1024,
    };

    /// What a client speaks that sends these parts and then waits, and what of it a reader gets.
    async fn sniffed(parts: &[&[u8]]) -> (&'static str, Vec<u8>) {
        // One part fits, so that the next is not read with it.
        let (mut client, server) = tokio::io::duplex(parts.iter().map(|part| part.len()).max().unwrap_or(1));
        let drain = Drain::default();
        let sending = async {
            for part in parts {
                client.write_all(part).await.unwrap();
            }
            std::future::pending::<()>().await;
        };
        let sniffed = tokio::select! {
            sniffed = sniff(server, &SETTINGS, &drain) => sniffed.unwrap(),
            () = sending => unreachable!(),
        };
        let (kind, prefixed) = match sniffed {
            Sniffed::Http1(prefixed) => ("HTTP/1.1", prefixed),
            Sniffed::Http2(prefixed) => ("HTTP/2", prefixed),
            Sniffed::Nothing => return ("nothing", Vec::new()),
        };
        let (mut reader, mut read) = (prefixed, Vec::new());
        drop(client);
        reader.read_to_end(&mut read).await.unwrap();
        (kind, read)
    }

    #[tokio::test(start_paused = true)]
    async fn the_preface_is_told_from_requests() {
        let with_frame = [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
        assert_eq!(sniffed(&[&with_frame]).await, ("HTTP/2", with_frame.clone()));
        assert_eq!(
            sniffed(&[&PREFACE[..1], &PREFACE[1..9], &PREFACE[9..]]).await,
            ("HTTP/2", PREFACE.to_vec())
        );
        for request in
            ["GET / HTTP/1.1\r\n", "PUT ", "PO", "PRO", "PRI * HTTP/1.1\r\n", "\r\n", "\u{16}\u{3}"]
        {
            assert_eq!(sniffed(&[request.as_bytes()]).await, ("HTTP/1.1", request.as_bytes().to_vec()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_or_too_little_is_not_waited_for_for_ever() {
        assert_eq!(sniffed(&[]).await.0, "nothing");
        assert_eq!(sniffed(&[b"PRI"]).await.0, "nothing");
    }
}
