//! Proxies between this server and upstreams (`network_proxy`).

use crate::timed::Stream;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use regent_config::{ForwardProxy, UpstreamAddress};
use std::io;
use tokio::task::{JoinHandle, spawn_local};

/// Bytes that the head of a proxy's response may have.
const MOST_HEAD: usize = 16 * 1024;

/// Ends with its owner.
struct Driven(JoinHandle<()>);

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A way through the proxy that `socket` leads to, to the upstream (RFC 9110 §9.3.6): what follows is between the two ends.
pub(crate) async fn open(
    socket: Box<dyn Stream>,
    upstream: &UpstreamAddress,
    proxy: &ForwardProxy,
) -> io::Result<Box<dyn Stream>> {
    let mut builder = http1::Builder::new();
    let handshake = builder.max_buf_size(MOST_HEAD).handshake(TokioIo::new(socket));
    let (mut sender, connection) = handshake.await.map_err(io::Error::other)?;
    let driven = Driven(spawn_local(async { drop(connection.with_upgrades().await) }));
    let request = request(upstream, proxy).map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let status = response.status();
    if !status.is_success() {
        let proxy = &proxy.address;
        return Err(io::Error::other(format!("the proxy {proxy} does not lead there, and says {status}")));
    }
    let opened = hyper::upgrade::on(response).await.map_err(io::Error::other)?;
    drop(driven);
    Ok(Box::new(TokioIo::new(opened)))
}

fn request(upstream: &UpstreamAddress, proxy: &ForwardProxy) -> Result<Request<Empty<Bytes>>, http::Error> {
    let authority = upstream.to_string();
    let mut request = Request::new(Empty::new());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = Uri::try_from(&authority)?;
    request.headers_mut().insert(header::HOST, HeaderValue::try_from(authority)?);
    request.headers_mut().extend(authorization(proxy));
    Ok(request)
}

/// What the proxy wants to know of us.
pub(crate) fn authorization(proxy: &ForwardProxy) -> Option<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::try_from(&proxy.authorization.as_ref()?.0).ok()?;
    value.set_sensitive(true);
    Some((header::PROXY_AUTHORIZATION, value))
}
