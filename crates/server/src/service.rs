//! One request, from its head to its answer.

use crate::answer::{Answer, plain};
use crate::logged::Logged;
use crate::php::PhpGateway;
use crate::variables::Peer;
use http::{Method, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use regent_handlers::{Action, Exchange, Sites};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// Answers the requests of one listening address on one I/O thread.
pub(crate) struct Service {
    /// Bytes of a request's head.
    pub max_header_size: usize,
    pub sites: Arc<Sites>,
    pub php: Rc<PhpGateway>,
}

/// The two ends of a connection.
pub(crate) struct Ends {
    pub remote: Option<SocketAddr>,
    pub local: Option<SocketAddr>,
    pub peer: Peer,
}

impl Service {
    pub async fn answer(&self, request: Request<Incoming>, ends: &Ends) -> Response<Logged> {
        let started = Instant::now();
        if let Err(status) = check(&request, self.max_header_size) {
            return Logged::nowhere(plain(status, &[(header::CONNECTION, "close")]));
        }
        let (head, body) = request.into_parts();
        // Boxed, since it would be the greater part of a future that is moved about.
        let mut exchange = Box::new(Exchange::new(
            head.method,
            head.uri,
            head.version,
            head.headers,
            ends.remote,
            ends.local,
        ));
        let received = Rc::new(Cell::new(0));
        let mut response = match self.sites.route(&mut exchange) {
            Action::Respond(response) => response.map(Answer::Static),
            Action::Php(target) => self.php.run(&exchange, &target, &ends.peer, body, &received).await,
        };
        let mut status = response.status();
        exchange.finish(&mut status, response.headers_mut());
        *response.status_mut() = status;
        Logged::new(response, &self.sites, exchange, received, started)
    }
}

/// What HTTP forbids and hyper lets through.
fn check(request: &Request<Incoming>, max_header_size: usize) -> Result<(), StatusCode> {
    let headers = request.headers();
    // hyper looks at the size only while a head is not complete.
    let fields: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if fields > max_header_size {
        return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    // RFC 9112 §3.2: exactly one Host field, but for HTTP/1.0.
    let hosts = headers.get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        return Err(StatusCode::BAD_REQUEST);
    }
    // RFC 9112 §6.1: both together are how requests are smuggled past a proxy that believes the other one.
    if headers.contains_key(header::TRANSFER_ENCODING) && headers.contains_key(header::CONTENT_LENGTH) {
        return Err(StatusCode::BAD_REQUEST);
    }
    if request.method() == Method::CONNECT {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    Ok(())
}
