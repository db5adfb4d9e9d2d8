//! `health_uri`: a request to PHP that no client has sent, for `/regent/ready`. It takes the way of all others, through the sites'
//! routes and the pool's queue, so that an answer says that clients get one.

use crate::service::{Service, read_to_end};
use http::{HeaderMap, Request, StatusCode, Version, header};
use regent_config::HealthCheck;
use regent_exchange::{Connection, Informational, RequestBody, Tls, Tunnel};
use regent_gateway::{Ends, IncomingRequest};
use regent_handlers::{Action, Exchange, Failure, Target};
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const AGENT: &str = "Regent (health_uri)";

/// Asks at the first of these where the request leads to PHP; an error says why PHP is not ready.
pub async fn probe<'a>(
    services: impl Iterator<Item = &'a Service>,
    check: &HealthCheck,
) -> Result<(), String> {
    let HealthCheck { host, path, timeout } = check;
    match tokio::time::timeout(*timeout, ask(services, host, path)).await {
        Ok(Some(status)) if status.is_success() || status.is_redirection() => Ok(()),
        Ok(Some(status)) => Err(format!("PHP answers {status} for {host}{path} (`health_uri`)")),
        Ok(None) => Err(format!("no site hands {host}{path} to PHP (`health_uri`)")),
        Err(_) => {
            Err(format!("PHP did not answer {host}{path} within {} ms (`health_uri`)", timeout.as_millis()))
        }
    }
}

async fn ask<'a>(services: impl Iterator<Item = &'a Service>, host: &str, path: &str) -> Option<StatusCode> {
    for service in services {
        if let Some(status) = service.ask_php(host, path).await {
            return Some(status);
        }
    }
    None
}

impl Service {
    /// `None`: something else than a script of PHP would answer.
    async fn ask_php(&self, host: &str, path: &str) -> Option<StatusCode> {
        let request = Request::get(path).version(Version::HTTP_11).header(header::HOST, host);
        let (head, ()) = request.header(header::USER_AGENT, AGENT).body(()).ok()?.into_parts();
        let connection = self.local_connection(host);
        let mut exchange = Exchange::new(head, connection.clone());
        exchange.code = self.php.code();
        let Action::Forward(Target::Php(script)) = self.sites.route(&mut exchange) else { return None };
        let (ends, client): (_, Rc<dyn Informational>) = (Ends::new(connection), Rc::new(Nobody));
        let arrived = IncomingRequest {
            exchange: &exchange,
            ends: &ends,
            client: &client,
            head_time: Duration::ZERO,
            limits: self.limits,
        };
        let received = Rc::new(Cell::new(0));
        let (result, in_flight) = self.php.run(arrived, &script, RequestBody::empty(), &received).await;
        let status = result.as_ref().map_or_else(Failure::status, http::Response::status);
        if let Ok(response) = result {
            // To its end: the script is not to be cut off.
            read_to_end(response.into_body()).await;
        }
        drop(in_flight);
        Some(status)
    }

    /// As if a client on this machine had come, with TLS where that is spoken.
    fn local_connection(&self, host: &str) -> Connection {
        let tls = self.tls.is_some().then(|| {
            let server_name = Some(host.into());
            Arc::new(Tls {
                protocol: "TLSv1.3",
                cipher: "TLS_AES_128_GCM_SHA256",
                cipher_suite: "TLS_AES_128_GCM_SHA256",
                server_name,
                ..Tls::default()
            })
        });
        let at = |port| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        Connection { remote: at(0), local: at(if tls.is_some() { 443 } else { 80 }), tls }
    }
}

/// There is no client.
struct Nobody;

impl Informational for Nobody {
    fn send(&self, _: Version, _: StatusCode, _: &HeaderMap) {}

    fn close_connection(&self) {}

    fn hand_over(&self, _: Tunnel) {}

    fn abort(&self) {}
}
