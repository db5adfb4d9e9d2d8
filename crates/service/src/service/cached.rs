//! Requests that the cache has to do with: they are answered, wait for another, or fetch the response for all.

use super::{Accepted, Arrival, Service};
use http::{HeaderMap, Response, StatusCode, Version};
use http_body::Body;
use regent_engines::InFlight;
use regent_exchange::{Informational, RequestBody, ResponseBody, Tunnel};
use regent_handlers::caching::{
    self, Arrived, Boarding, Consulted, Fetch, Fetched, HasBody, OnDisk, Outcome, Waiting,
};
use regent_handlers::{Exchange, Failure, Proxied, Target};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_local};

/// Fetches of an I/O thread that go on though the client has left that asked; one that is beyond that ends with its client.
const MOST_LEFT: usize = 64;

/// How often a request waits for others.
const MOST_WAITS: u32 = 2;

/// What has come of a request that was handed on.
type Handed = (Result<Response<ResponseBody>, Failure>, Option<Rc<InFlight>>);

/// What a client gets of a fetch.
struct Brought {
    fetched: Fetched,
    /// `None`: its figures are complete.
    in_flight: Option<Rc<InFlight>>,
    proxied: Option<Box<Proxied>>,
}

/// Whether a request has a body, which none for the cache has.
pub(super) fn has_body(body: &RequestBody) -> HasBody {
    if body.is_end_stream() { HasBody::No } else { HasBody::Yes }
}

impl Service {
    /// Hands a request on by way of the cache. `None`: the cache has nothing to do with it.
    pub(super) async fn hand_on_cached(
        self: &Rc<Self>,
        target: &Target,
        exchange: &mut Exchange,
        body: &mut RequestBody,
        accepted: &Rc<Accepted>,
        arrival: Arrival<'_>,
    ) -> Handed {
        let (mut boarding, mut disk, mut waits) = (Boarding::Together, OnDisk::NotAsked, 0);
        loop {
            if waits == MOST_WAITS {
                boarding = Boarding::Alone;
            }
            let known = std::mem::take(&mut disk);
            match caching::consult(exchange, target, has_body(body), boarding, known) {
                Consulted::Uncached => return self.hand_on(target, exchange, body, arrival).await,
                Consulted::Passed(passing) => {
                    let (mut result, in_flight) = self.hand_on(target, exchange, body, arrival).await;
                    if let Ok(response) = &mut result {
                        passing.finish(exchange, response);
                    }
                    return (result, in_flight);
                }
                Consulted::Answered(response) => return (Ok(response), None),
                Consulted::Refreshing(response, fetch) => {
                    drop(self.fetch(fetch, accepted, Rc::new(Nobody), Duration::ZERO));
                    return (Ok(response), None);
                }
                Consulted::Refused(failure) => return (Err(failure), None),
                Consulted::Fetch(fetch) => {
                    let (fetching, brought) =
                        self.fetch(fetch, accepted, Rc::clone(arrival.client), arrival.head_time);
                    let leaving = Leaving { service: self, fetching };
                    let brought = brought.await;
                    drop(leaving);
                    return brought.map_or_else(|_| (Err(lost()), None), |brought| brought.to(exchange));
                }
                // It is not asked again, and who is alone waits for nobody: that has an end.
                Consulted::Load(loading) => {
                    // Others wait for it too: it goes on when this client leaves.
                    disk = spawn_local(loading.load()).await.unwrap_or(OnDisk::Nothing);
                }
                Consulted::Wait(waiting) => match wait(waiting, exchange).await {
                    Arrived::Answered(result) => return (result, None),
                    Arrived::GoesOn(how, known) => {
                        (boarding, disk) = (how, known);
                        waits += 1;
                    }
                },
            }
        }
    }

    /// Fetches a response, whether its client stays or not.
    fn fetch(
        self: &Rc<Self>,
        mut fetch: Box<Fetch>,
        accepted: &Rc<Accepted>,
        client: Rc<dyn Informational>,
        head_time: Duration,
    ) -> (JoinHandle<()>, oneshot::Receiver<Brought>) {
        let (bring, brought) = oneshot::channel();
        let (service, accepted) = (Rc::clone(self), Rc::clone(accepted));
        let fetching = spawn_local(Box::pin(async move {
            let _under_way = Counted::new(&service);
            let received = Rc::default();
            loop {
                let arrival =
                    Arrival { ends: &accepted.ends, client: &client, head_time, received: &received };
                let (target, mut none) = (fetch.target.clone(), RequestBody::empty());
                let handed = service.hand_on(&target, &mut fetch.exchange, &mut none, arrival);
                let (result, in_flight) = handed.await;
                let proxied = fetch.exchange.proxied.take();
                let (fetched, rest) = match fetch.answered(result) {
                    Outcome::Again(again) => {
                        fetch = again;
                        continue;
                    }
                    Outcome::Done(fetched) => (fetched, None),
                    Outcome::Storing(copying) => copying.begin().await,
                };
                // A client that has left gets nothing.
                drop(bring.send(Brought { fetched, in_flight: in_flight.clone(), proxied }));
                if let Some(rest) = rest {
                    rest.read().await;
                }
                return;
            }
        }));
        (fetching, brought)
    }
}

/// Until the other has its response, or for as long as it may take.
async fn wait(mut waiting: Waiting, exchange: &mut Exchange) -> Arrived {
    match tokio::time::timeout(waiting.patience(), waiting.landed()).await {
        Ok(landed) => waiting.arrived(landed, exchange),
        Err(_) => Arrived::GoesOn(Boarding::Alone, OnDisk::NotAsked),
    }
}

fn lost() -> Failure {
    Failure::new(StatusCode::BAD_GATEWAY)
}

impl Brought {
    fn to(self, exchange: &mut Exchange) -> Handed {
        if self.proxied.is_some() {
            exchange.proxied = self.proxied;
        }
        let result = match self.fetched {
            Fetched::Stored(answer) => Ok(answer.to(exchange)),
            Fetched::Response(response) => Ok(response),
            Fetched::Failed(failure) => Err(failure),
        };
        (result, self.in_flight)
    }
}

/// A client that waits for its own fetch, and may leave. Others wait for it too: it goes on, unless strangers have left that way
/// too often.
struct Leaving<'a> {
    service: &'a Service,
    fetching: JoinHandle<()>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if !self.fetching.is_finished() && self.service.fetches.get() > MOST_LEFT {
            self.fetching.abort();
        }
    }
}

/// A fetch that is under way.
struct Counted<'a>(&'a Service);

impl<'a> Counted<'a> {
    fn new(service: &'a Service) -> Self {
        service.fetches.set(service.fetches.get() + 1);
        Self(service)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetches.set(self.0.fetches.get() - 1);
    }
}

/// The client of a request that nobody waits for.
struct Nobody;

impl Informational for Nobody {
    fn send(&self, _: Version, _: StatusCode, _: &HeaderMap) {}

    fn close_connection(&self) {}

    fn hand_over(&self, _: Tunnel) {}

    fn abort(&self) {}
}
