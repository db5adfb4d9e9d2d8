//! The collector, as seen from here: one connection, one request at a time.

use crate::message::ExportResponse;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use prost::Message;
use regent_config::{OtlpCollector, OtlpCompression, OtlpEndpoint};
use regent_tls::{Alpn, Client, ClientOptions, KeyPairFiles, Verification};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Bytes of an answer that are looked at.
const LONGEST_ANSWER: usize = 64 * 1024;
/// Bytes of it that are shown.
const LONGEST_REASON: usize = 256;

/// What it said of a request.
pub(crate) enum Answer {
    /// It has taken it, but for so many spans or points of metrics, for a reason.
    Taken { rejected: u64, reason: String },
    /// It does not want it, now or later.
    Refused(String),
    /// It may take it later, but not before that.
    Later { why: String, after: Option<Duration> },
}

pub(crate) struct Collector {
    endpoint: OtlpEndpoint,
    /// `None`: it speaks plain HTTP.
    tls: Option<Client>,
    head: HeaderMap,
    timeout: Duration,
    /// Of a request that was answered.
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Collector {
    /// Blocks: it reads certificates.
    pub fn new(config: &OtlpCollector, version: &str) -> Result<Self, regent_tls::Error> {
        let tls = config.endpoint.is_https.then(|| Client::new(&client_options(config))).transpose()?;
        let head = head(config, version);
        Ok(Self { endpoint: config.endpoint.clone(), tls, head, timeout: config.timeout, connection: None })
    }

    /// For messages.
    pub fn name(&self) -> String {
        let OtlpEndpoint { is_https, host, port, path } = &self.endpoint;
        format!("{}://{}{}", if *is_https { "https" } else { "http" }, authority(host, *port), path)
    }

    pub async fn send(&mut self, body: &Bytes) -> Answer {
        let timeout = self.timeout;
        let answer = tokio::time::timeout(timeout, self.ask(body)).await;
        answer.unwrap_or_else(|_| {
            let why = format!("it did not answer within {} ms", timeout.as_millis());
            Answer::Later { why, after: None }
        })
    }

    async fn ask(&mut self, body: &Bytes) -> Answer {
        // A connection that was used before may have been closed in the same moment.
        if let Some(connection) = self.connection.take()
            && let Ok(answer) = self.ask_over(connection, body).await
        {
            return answer;
        }
        let answer = match self.connect().await {
            Ok(connection) => self.ask_over(connection, body).await,
            Err(why) => Err(why),
        };
        answer.unwrap_or_else(|why| Answer::Later { why, after: None })
    }

    async fn ask_over(
        &mut self,
        mut connection: SendRequest<Full<Bytes>>,
        body: &Bytes,
    ) -> Result<Answer, String> {
        let mut request = Request::post(self.endpoint.path.as_str())
            .body(Full::new(body.clone()))
            .map_err(|error| error.to_string())?;
        *request.headers_mut() = self.head.clone();
        connection.ready().await.map_err(|error| causes(&error))?;
        let response = connection.send_request(request).await.map_err(|error| causes(&error))?;
        let (head, body) = response.into_parts();
        let text = match Limited::new(body, LONGEST_ANSWER).collect().await {
            Ok(body) => {
                self.connection = Some(connection);
                body.to_bytes()
            }
            // What is left of it is of no interest; the connection ends.
            Err(_) => Bytes::new(),
        };
        Ok(answer(head.status, &head.headers, &text))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let OtlpEndpoint { host, port, .. } = &self.endpoint;
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(|error| error.to_string())?;
        // Otherwise it is only slower.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => shake_hands(stream).await,
            Some(tls) => {
                shake_hands(tls.connect(host, stream).await.map_err(|error| error.to_string())?).await
            }
        }
    }
}

async fn shake_hands<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| causes(&error))?;
    // What is wrong with it shows in the request.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn client_options(config: &OtlpCollector) -> ClientOptions {
    let verification = match &config.certificate {
        None => Verification::SystemRoots,
        Some(file) => Verification::Roots(vec![file.clone()]),
    };
    let certificate = config
        .client
        .as_ref()
        .map(|pair| KeyPairFiles { certificate: pair.certificate.clone(), key: pair.key.clone() });
    ClientOptions { verification, certificate, alpn: Alpn::Http1, curves: Vec::new() }
}

/// Names and values have been checked when they were read.
fn head(config: &OtlpCollector, version: &str) -> HeaderMap {
    let mut head = HeaderMap::new();
    let agent = HeaderValue::try_from(format!("Regent/{version} OTLP"));
    agent.into_iter().for_each(|agent| drop(head.insert(USER_AGENT, agent)));
    for (name, value) in &config.headers {
        if let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(&value.0)) {
            value.set_sensitive(true);
            head.insert(name, value);
        }
    }
    let OtlpEndpoint { host, port, .. } = &config.endpoint;
    let authority = HeaderValue::try_from(authority(host, *port));
    authority.into_iter().for_each(|authority| drop(head.insert(HOST, authority)));
    head.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    if config.compression == OtlpCompression::Gzip {
        head.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    head
}

fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// By the protocol's rules (§ OTLP/HTTP Response).
fn answer(status: StatusCode, head: &HeaderMap, text: &Bytes) -> Answer {
    if status.is_success() {
        let partial = ExportResponse::decode(text.clone()).ok().and_then(|read| read.partial_success);
        let partial = partial.unwrap_or_default();
        let rejected = u64::try_from(partial.rejected).unwrap_or(0);
        return Answer::Taken { rejected, reason: shown(partial.error_message.as_bytes()) };
    }
    let why = format!("it answered {status} {}", shown(text)).trim_end().to_owned();
    match status.as_u16() {
        429 | 502 | 503 | 504 => Answer::Later { why, after: retry_after(head, SystemTime::now()) },
        _ => Answer::Refused(why),
    }
}

fn retry_after(head: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = head.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).ok(),
    }
}

/// An answer may be a message in protobuf: what can be read of it.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(LONGEST_REASON)]);
    text.chars().filter(|character| !character.is_control() && *character != '\u{fffd}').collect()
}

/// hyper's errors say little of what is behind them.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    fn of(status: u16, text: &'static [u8]) -> Answer {
        answer(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), &Bytes::from_static(text))
    }

    #[test]
    fn what_may_be_sent_again_is() {
        for status in [429, 502, 503, 504] {
            assert!(matches!(of(status, b""), Answer::Later { after: None, .. }), "{status}");
        }
        for status in [301, 400, 401, 404, 413, 500, 501] {
            assert!(matches!(of(status, b""), Answer::Refused(_)), "{status}");
        }
        let Answer::Refused(why) = of(400, b"\x08\x03\x12\x08bad span") else { panic!() };
        assert_eq!(why, "it answered 400 Bad Request bad span");
    }

    #[test]
    fn some_spans_may_be_refused() {
        for status in [200, 202] {
            assert!(matches!(of(status, b""), Answer::Taken { rejected: 0, .. }));
        }
        let Answer::Taken { rejected, reason } = of(200, b"\x0a\x08\x08\x02\x12\x04late") else { panic!() };
        assert_eq!((rejected, reason.as_str()), (2, "late"));
        assert!(matches!(of(200, b"\xff\xff"), Answer::Taken { rejected: 0, .. }), "it has taken them");
    }

    #[test]
    fn how_long_it_wants_to_be_left_alone() {
        let after = |text: &str| {
            let head = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::try_from(text).unwrap())]);
            retry_after(&head, UNIX_EPOCH + Duration::from_secs(784_111_770))
        };
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!([after("soon"), after("-1"), after("Sun, 06 Nov 1984 08:49:37 GMT")], [None; 3]);
    }
}
