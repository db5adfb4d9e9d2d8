//! Clients that speak HTTP where TLS is expected.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What they get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// A response that says what is wrong.
    #[default]
    Refused,
    /// The same place with `https://` (Caddy's listener wrapper `http_redirect`).
    Redirected,
}

/// As Go's net/http has it (`tlsRecordHeaderLooksLikeHTTP` and its caller in server.go).
const REFUSAL: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// As much is read of such a request before the connection is closed: what is left unread then would make the system
/// reset the connection, and the response would be lost.
const DISCARDED: u64 = 64 * 1024;

/// Bytes of a head that is looked at.
const HEAD: usize = 16 * 1024;

/// Whether a connection begins so.
pub(crate) fn is_http(begin: &[u8]) -> bool {
    matches!(begin, b"GET /" | b"HEAD " | b"POST " | b"PUT /" | b"OPTIO" | b"PATCH" | b"DELET")
}

/// Answers, as far as the client listens. `begin`: what has been read.
pub(crate) async fn answer<S>(stream: &mut S, begin: Vec<u8>, plain: PlainHttp)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let told = async {
        let redirect = match plain {
            PlainHttp::Refused => None,
            PlainHttp::Redirected => read_head(stream, begin).await?.as_deref().and_then(redirect),
        };
        stream.write_all(redirect.as_ref().map_or(REFUSAL, |text| text.as_bytes())).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(DISCARDED), &mut tokio::io::sink()).await
    };
    // A client that has gone needs no response.
    let _: io::Result<u64> = told.await;
}

/// `None`: it is too long, or no text.
async fn read_head<S: AsyncRead + Unpin>(stream: &mut S, mut head: Vec<u8>) -> io::Result<Option<String>> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            head.truncate(end);
            return Ok(String::from_utf8(head).ok());
        }
        if head.len() > HEAD {
            return Ok(None);
        }
        match stream.read(&mut buffer).await? {
            0 => return Ok(None),
            count => head.extend_from_slice(&buffer[..count]),
        }
    }
}

/// The response. `None`: the request does not say where it is to go.
fn redirect(head: &str) -> Option<String> {
    let mut lines = head.split("\r\n");
    let target = lines.next()?.split(' ').nth(1).filter(|target| target.starts_with('/'))?;
    let fields = lines.filter_map(|line| line.split_once(':'));
    let mut hosts =
        fields.filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, value)| value.trim());
    // Two of them are two sites.
    let host = hosts.next().filter(|_| hosts.next().is_none())?;
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    let is_plain =
        !host.is_empty() && host.bytes().all(is_host) && target.bytes().all(|byte| byte.is_ascii_graphic());
    is_plain.then(|| {
        format!(
            "HTTP/1.0 308 Permanent Redirect\r\nLocation: https://{host}{target}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_place_with_https() {
        let to = |head: &str| redirect(head)?.lines().nth(1).map(str::to_owned);
        let location = |place: &str| Some(format!("Location: https://{place}"));
        assert_eq!(to("GET /a?b HTTP/1.1\r\nX: y\r\nhost:  a.example:8443 "), location("a.example:8443/a?b"));
        assert_eq!(to("POST / HTTP/1.1\r\nHost: [::1]:1"), location("[::1]:1/"));
        for head in [
            "GET / HTTP/1.0",
            "GET / HTTP/1.1\r\nHost: ",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b",
            "GET / HTTP/1.1\r\nHost: a/b",
            "GET / HTTP/1.1\r\nHost: a@b",
            "GET /\u{e9} HTTP/1.1\r\nHost: a",
            "OPTIONS * HTTP/1.1\r\nHost: a",
            "GET //\u{1} HTTP/1.1\r\nHost: a",
            "GET",
        ] {
            assert_eq!(to(head), None, "{head}");
        }
    }
}
