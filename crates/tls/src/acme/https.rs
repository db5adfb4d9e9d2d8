//! Requests to the CA: each on a connection of its own, with a time-out, and with a bound on the response. A CA is talked
//! to a dozen times in weeks, so there is no pool that could hold a dead connection.

use super::error::{OrderError, io_error};
use super::options::Acme;
use crate::outgoing::Proxies;
use crate::{crypto, roots};
use bytes::Bytes;
use http::header::{HOST, HeaderValue, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Limited};
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, HttpClient};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Of one request, from the look-up of the CA's address to the last byte.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Of a response. A chain of certificates has some ten kilobytes.
const RESPONSE_LIMIT: usize = 1 << 20;
/// RFC 8555 §6.1 asks for both the client and its library.
const AGENT: &str = concat!("Regent/", env!("CARGO_PKG_VERSION"), " instant-acme");

#[derive(Clone)]
pub(super) struct HttpsClient {
    connector: TlsConnector,
    proxies: Arc<Proxies>,
}

impl HttpsClient {
    /// Blocks: it reads the roots.
    pub fn new(acme: &Acme) -> Result<Self, OrderError> {
        let roots = match acme.trusted_roots.as_slice() {
            [] => roots::system()?,
            files => roots::of_files(files)?,
        };
        let mut config = ClientConfig::builder_with_provider(crypto::provider())
            .with_safe_default_protocol_versions()
            .expect("invariant: the provider has ciphers for TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { connector, proxies: Arc::new(Proxies::of_environment()) })
    }

    async fn send(
        self,
        mut request: Request<BodyWrapper<Bytes>>,
    ) -> Result<Response<Bytes>, instant_acme::Error> {
        let (host, port) = target(request.uri())?;
        prepare(&mut request)?;
        let name = ServerName::try_from(host.clone()).map_err(io_error)?;
        let stream = self.proxies.connect(&host, port).await.map_err(io_error)?;
        let stream = self
            .connector
            .connect(name, stream)
            .await
            .map_err(|error| io_error(format!("cannot shake hands with {host}: {error}")))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io_error)?;
        let mut exchange = pin!(async move {
            let (parts, body) = sender.send_request(request).await.map_err(io_error)?.into_parts();
            let body = Limited::new(body, RESPONSE_LIMIT).collect().await.map_err(io_error)?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        });
        tokio::select! {
            biased;
            response = &mut exchange => response,
            // Its end, good or bad, is in what the exchange has still to read.
            _ = connection => exchange.await,
        }
    }
}

type Received = Result<BytesResponse, instant_acme::Error>;

impl HttpClient for HttpsClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Received> + Send>> {
        let client = self.clone();
        Box::pin(async move {
            let host = request.uri().host().unwrap_or_default().to_owned();
            let late = || io_error(format!("{host} did not respond within {} s", REQUEST_TIMEOUT.as_secs()));
            let response = timeout(REQUEST_TIMEOUT, client.send(request)).await.map_err(|_| late())??;
            let (parts, body) = response.into_parts();
            Ok(BytesResponse { parts, body: Box::new(body) })
        })
    }
}

/// URLs come from the CA too, and all have to be `https` (RFC 8555 §6.1).
fn target(uri: &Uri) -> Result<(String, u16), instant_acme::Error> {
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(host)) => {
            Ok((host.trim_matches(['[', ']']).to_owned(), uri.port_u16().unwrap_or(443)))
        }
        _ => Err(io_error(format!("{uri} is not an https URL"))),
    }
}

/// The form of the request target for a server that is no proxy (RFC 9112 §3.2.1).
fn prepare(request: &mut Request<BodyWrapper<Bytes>>) -> Result<(), instant_acme::Error> {
    let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    *request.uri_mut() = path.parse()?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(&authority).map_err(io_error)?);
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    Ok(())
}
