//! Who says whether a name may have a certificate on demand: the URL of `on_demand_tls { ask }`, as Caddy asks it
//! (`caddytls/ondemand.go`, `PermissionByHTTP`).

use crate::clock::{self, Clock};
use crate::recent::Recent;
use crate::{Error, crypto, outgoing, roots};
use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Of a question, from the look-up of the address to the status.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Questions at a time; further ones wait for these.
const QUESTIONS: usize = 16;
/// Names whose verdict is known.
const MOST: usize = 4096;
/// So many seconds a name may have certificates of the local CA after it was allowed.
const ALLOWED_HOLDS: i64 = 3600;
/// So many seconds nobody is asked again for a name that was refused.
const REFUSED_HOLDS: i64 = 60;
/// So many seconds nobody is asked again for a name whose question had no answer.
const UNANSWERED_HOLDS: i64 = 10;

/// Of all names of a configuration.
pub(crate) struct Permission {
    url: Uri,
    /// `None`: the URL is not one of `https`.
    client: Option<TlsConnector>,
    verdicts: Mutex<Recent<Verdict>>,
    questions: Semaphore,
    clock: Arc<dyn Clock>,
}

/// Why a name is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The answer was no.
    Refused,
    /// There was no answer, or one that tells of a failure (5xx).
    Unanswered,
}

#[derive(Debug, Clone, Copy)]
struct Verdict {
    result: Result<(), Denial>,
    /// In seconds since 1970.
    at: i64,
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permission").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Permission {
    /// Blocks: for `https` it reads the system's roots.
    ///
    /// # Errors
    /// If the URL is none of HTTP, or there are no roots.
    pub fn open(url: &str, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let bad = || Error::AskUrl { url: url.to_owned() };
        let url: Uri = url.parse().map_err(|_| bad())?;
        let client = match (url.scheme_str(), url.host()) {
            (Some("http"), Some(_)) => None,
            (Some("https"), Some(_)) => Some(connector()?),
            _ => return Err(bad()),
        };
        let (verdicts, questions) = (Mutex::new(Recent::new(MOST)), Semaphore::new(QUESTIONS));
        Ok(Self { url, client, verdicts, questions, clock })
    }

    /// Whether the name was allowed within the last hour.
    pub fn is_allowed(&self, name: &str) -> bool {
        self.known(name) == Some(Ok(()))
    }

    /// Whether the name was denied so lately that nobody is asked again.
    pub fn is_denied(&self, name: &str) -> bool {
        matches!(self.known(name), Some(Err(_)))
    }

    /// As [`Self::confirm`], unless the name was allowed lately.
    pub async fn allow(&self, name: &str) -> Result<(), Denial> {
        if self.is_allowed(name) { Ok(()) } else { self.confirm(name).await }
    }

    /// Asks, unless the name was denied lately.
    pub async fn confirm(&self, name: &str) -> Result<(), Denial> {
        let _place = self.questions.acquire().await.expect("invariant: the semaphore is never closed");
        // Another handshake may have asked meanwhile.
        if let Some(Err(denial)) = self.known(name) {
            return Err(denial);
        }
        let result = match timeout(TIMEOUT, self.ask(name)).await {
            Ok(Ok(status)) => judge(name, status),
            Ok(Err(error)) => unanswered(name, &error),
            Err(_) => unanswered(name, &format!("no answer within {} s", TIMEOUT.as_secs())),
        };
        let at = clock::unix_seconds(&*self.clock);
        self.verdicts().insert(name, Verdict { result, at });
        result
    }

    fn known(&self, name: &str) -> Option<Result<(), Denial>> {
        let verdict = *self.verdicts().get(name)?;
        let holds = match verdict.result {
            Ok(()) => ALLOWED_HOLDS,
            Err(Denial::Refused) => REFUSED_HOLDS,
            Err(Denial::Unanswered) => UNANSWERED_HOLDS,
        };
        // One of the future is that of a clock that was set back since.
        let age = clock::unix_seconds(&*self.clock) - verdict.at;
        (0..holds).contains(&age).then_some(verdict.result)
    }

    async fn ask(&self, name: &str) -> Result<StatusCode, String> {
        let host = self.url.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.url.port_u16().unwrap_or(if self.client.is_some() { 443 } else { 80 });
        let stream = outgoing::connect(host, port).await.map_err(|error| error.to_string())?;
        let request = self.request(name).map_err(|error| error.to_string())?;
        let Some(client) = &self.client else { return exchange(stream, request).await };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let stream = client.connect(name, stream).await;
        exchange(stream.map_err(|error| format!("cannot shake hands with {host}: {error}"))?, request).await
    }

    fn request(&self, name: &str) -> Result<Request<Empty<Bytes>>, http::Error> {
        let authority = self.url.authority().map(ToString::to_string).unwrap_or_default();
        Request::get(target(&self.url, name))
            .header(HOST, authority)
            .header(USER_AGENT, concat!("Regent/", env!("CARGO_PKG_VERSION")))
            .body(Empty::new())
    }

    fn verdicts(&self) -> MutexGuard<'_, Recent<Verdict>> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Blocks: it reads the roots.
fn connector() -> Result<TlsConnector, Error> {
    let config = ClientConfig::builder_with_provider(crypto::provider())
        .with_safe_default_protocol_versions()
        .expect("invariant: the provider has ciphers for TLS 1.2 and 1.3")
        .with_root_certificates(roots::system()?)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The path with `domain` in its query. (Names have no character that would need to be escaped there.)
fn target(url: &Uri, name: &str) -> String {
    let path = if url.path().is_empty() { "/" } else { url.path() };
    match url.query() {
        Some(query) if !query.is_empty() => format!("{path}?{query}&domain={name}"),
        _ => format!("{path}?domain={name}"),
    }
}

/// Redirects are not followed.
fn judge(name: &str, status: StatusCode) -> Result<(), Denial> {
    if status.is_success() {
        return Ok(());
    }
    if status.is_server_error() {
        return unanswered(name, &format!("status {}", status.as_u16()));
    }
    tracing::info!(name, status = status.as_u16(), "`ask` refused a certificate on demand");
    Err(Denial::Refused)
}

fn unanswered(name: &str, error: &str) -> Result<(), Denial> {
    tracing::warn!(name, error, "`ask` did not say whether a name may have a certificate on demand");
    Err(Denial::Unanswered)
}

async fn exchange<S>(stream: S, request: Request<Empty<Bytes>>) -> Result<StatusCode, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let io = TokioIo::new(stream);
    let shaken = hyper::client::conn::http1::handshake::<_, Empty<Bytes>>(io).await;
    let (mut sender, connection) = shaken.map_err(|error| error.to_string())?;
    let mut response = std::pin::pin!(sender.send_request(request));
    let response = tokio::select! {
        biased;
        response = &mut response => response,
        // Its end, good or bad, is in what the response has still to say.
        _ = connection => response.await,
    };
    // The body says nothing.
    response.map(|response| response.status()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
