//! Connections that leave HTTP: WebSocket and what else an upstream agrees to.

use crate::fields;
use crate::pool::Lease;
use crate::request::Upgrade;
use crate::state::InFlight;
use crate::trouble::Trouble;
use http::{HeaderValue, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use regent_exchange::{Duplex, Informational, ResponseBody};
use std::time::Duration;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::sync::watch;
use tokio::time::sleep;

/// Bounds on a tunnel.
pub(crate) struct Limits {
    /// How long it may last. 0: no limit.
    pub time: Duration,
    /// Bytes that are on their way, in each direction.
    pub buffer: usize,
    /// How long it goes on when its directive is gone or has changed; `None`: to its end.
    pub close_delay: Option<Duration>,
    /// Closed with the directive.
    pub directive: watch::Receiver<()>,
}

/// Joins the client's connection with the upstream's behind a 101.
///
/// `wanted`: what the client has asked to change to.
pub(crate) fn switch(
    mut response: Response<Incoming>,
    lease: Lease,
    in_flight: InFlight,
    wanted: Option<&Upgrade>,
    limits: Limits,
    client: &dyn Informational,
) -> Result<Response<ResponseBody>, Trouble> {
    let chosen = fields::upgrade(response.headers());
    let is_same = |chosen: &HeaderValue, wanted: &Upgrade| {
        wanted.protocol.as_bytes().eq_ignore_ascii_case(chosen.as_bytes())
    };
    let (Some(protocol), Some(wanted)) = (chosen, wanted) else { return Err(switched(&lease)) };
    if !is_same(&protocol, wanted) {
        return Err(switched(&lease));
    }
    if wanted.key.as_ref().is_some_and(|key| !key.is_answered_by(response.headers())) {
        return Err(Trouble::Handshake { upstream: lease.upstream().to_owned() });
    }
    let upgrade = hyper::upgrade::on(&mut response);
    let ends_with_it = (in_flight, lease.let_go());
    client.hand_over(Box::new(move |client| {
        Box::pin(async move {
            join(client, upgrade, limits).await;
            drop(ends_with_it);
        })
    }));
    let mut head = std::mem::take(response.headers_mut());
    fields::remove_hop_by_hop(&mut head);
    head.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    head.insert(header::UPGRADE, protocol);
    let mut switched = Response::new(ResponseBody::empty());
    *switched.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *switched.headers_mut() = head;
    Ok(switched)
}

fn switched(lease: &Lease) -> Trouble {
    Trouble::Switched { upstream: lease.upstream().to_owned() }
}

/// Ends when both sides have; one that has only finished sending still gets what the other sends.
async fn join(mut client: Box<dyn Duplex>, upstream: OnUpgrade, limits: Limits) {
    let buffer = limits.buffer;
    let joined = async {
        let mut upstream = TokioIo::new(upstream.await.map_err(std::io::Error::other)?);
        copy_bidirectional_with_sizes(&mut client, &mut upstream, buffer, buffer).await
    };
    let is_over = over(limits.time, limits.close_delay, limits.directive);
    tokio::select! {
        joined = joined => {
            if let Err(error) = joined {
                tracing::debug!(%error, "a tunnel through the server broke off");
            }
        }
        () = is_over => tracing::debug!("a tunnel through the server has had its time"),
    }
}

/// When a tunnel has had its time, or its directive's.
async fn over(time: Duration, close_delay: Option<Duration>, mut directive: watch::Receiver<()>) {
    let has_had_its_time = async {
        match time.is_zero() {
            true => std::future::pending().await,
            false => sleep(time).await,
        }
    };
    let is_of_no_directive = async {
        let Some(delay) = close_delay else { return std::future::pending().await };
        // Nothing is ever sent: it ends with the sender.
        while directive.changed().await.is_ok() {}
        sleep(delay).await;
    };
    tokio::select! {
        () = has_had_its_time => {}
        () = is_of_no_directive => {}
    }
}
