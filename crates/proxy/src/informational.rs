//! Informational responses of upstreams.

use http::{HeaderMap, Request, StatusCode};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::fields;
use regent_handlers::Exchange;

/// Those that may wait for the client's task; what comes on top is dropped.
const MOST_WAITING: usize = 16;

/// An informational response.
pub(crate) type Early = (StatusCode, HeaderMap);

/// What comes before the final response of this request goes to the receiver.
pub(crate) fn listen<B>(request: &mut Request<B>) -> Receiver<Early> {
    let (sender, receiver): (Sender<Early>, _) = channel(MOST_WAITING);
    hyper::ext::on_informational(request, move |response| {
        let mut headers = response.headers().clone();
        fields::remove_hop_by_hop(&mut headers);
        // The receiver is full or gone.
        let _ = sender.try_send((response.status(), headers));
    });
    receiver
}

/// Hands them on until the final one is there.
pub(crate) async fn pass<T>(
    receiver: &mut Receiver<Early>,
    exchange: &Exchange,
    client: &dyn regent_exchange::Informational,
    last: impl Future<Output = T>,
) -> T {
    let send = |(status, headers): Early| client.send(exchange.version, status, &headers);
    let mut last = std::pin::pin!(last);
    let response = loop {
        tokio::select! {
            biased;
            Some(early) = receiver.recv() => send(early),
            response = &mut last => break response,
        }
    };
    while let Ok(early) = receiver.try_recv() {
        send(early);
    }
    response
}
