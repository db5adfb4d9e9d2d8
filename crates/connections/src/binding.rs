//! What stands behind a listening address.

use crate::proxy_headers::ProxyHeaders;
use crate::terms::Terms;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use regent_config::{self as config, ServerOptions, timeout};
use regent_exchange::{Connection, Informational, RequestBody};
use regent_http::Settings;
use regent_tls::{Acceptor, ClientAuthClass, PlainHttp};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Answers the requests of one listening address.
pub trait Service: Clone + 'static {
    /// What it knows of a connection.
    type Accepted: 'static;
    type Body: Body<Data = Bytes, Error = io::Error> + Unpin + 'static;
    type ResponseFuture: Future<Output = Response<Self::Body>> + Unpin;

    /// A connection begins. `client_auth`: what the client was asked for in the handshake; `None` without TLS.
    fn accept(connection: Connection, client_auth: Option<ClientAuthClass>) -> Self::Accepted;

    /// `head_time`: how long the request's head took to come.
    fn answer(
        &self,
        request: Request<RequestBody>,
        head_time: Duration,
        accepted: &Rc<Self::Accepted>,
        client: Rc<dyn Informational>,
    ) -> Self::ResponseFuture;
}

/// By the number of the listening address.
pub type Bindings<S> = [(usize, Rc<Binding<S>>)];

/// What stands behind a listening address.
pub struct Binding<S> {
    pub service: S,
    pub conditions: Rc<Conditions>,
}

/// What a connection is accepted with, and keeps.
pub struct Conditions {
    /// Connections of equal terms can go on under the next configuration.
    pub terms: Arc<Terms>,
    pub settings: Settings,
    /// `None`: connections begin with TLS or HTTP.
    pub proxy_protocol: Option<Arc<ProxyHeaders>>,
    /// `None`: plain HTTP.
    pub tls: Option<Acceptor>,
}

/// Of the connections of a listening address.
pub fn settings(options: &ServerOptions) -> Settings {
    Settings {
        read_header: timeout(options.timeouts.read_header),
        idle: timeout(options.timeouts.idle),
        last_request: timeout(options.timeouts.last_request),
        write: timeout(options.timeouts.write),
        max_header_size: options.limits.max_header_size,
    }
}

/// For clients that speak HTTP where TLS is expected.
pub fn plain_http(options: &ServerOptions) -> PlainHttp {
    match options.plain_http {
        config::PlainHttp::Refused => PlainHttp::Refused,
        config::PlainHttp::Redirected => PlainHttp::Redirected,
    }
}
