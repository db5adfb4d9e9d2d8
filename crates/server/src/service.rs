//! One request, from its head to its answer.

use crate::answer::{Answer, OwnAnswer, plain};
use crate::gateway::{Answered, Arrived, Gateway};
use crate::head_check::check;
use crate::logged::Logged;
use crate::native::NativeGateway;
use crate::variables::Peer;
use http::{Request, Response, header};
use http_body::Body;
use hyper::body::Incoming;
use regent_handlers::{Action, Exchange, Sites};
use regent_http::Interim;
use std::cell::{Cell, OnceCell};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Answers the requests of one listening address on one I/O thread.
pub(crate) struct Service {
    /// Bytes of a request's head.
    pub max_header_size: usize,
    pub sites: Arc<Sites>,
    pub php: Rc<Gateway>,
    /// `None`: no route of the sites leads to a native service.
    pub native: Option<Rc<NativeGateway>>,
}

/// The two ends of a connection.
pub(crate) struct Ends {
    pub remote: Option<SocketAddr>,
    pub local: Option<SocketAddr>,
    pub interim: Rc<Interim>,
    peer: OnceCell<Peer>,
}

/// A request that is being answered. What needs no engine is answered at once.
pub(crate) enum Answering {
    /// `None`: taken.
    Ready(Option<Response<Logged>>),
    Later(Pin<Box<dyn Future<Output = Response<Logged>>>>),
}

impl Ends {
    pub fn new(remote: Option<SocketAddr>, local: Option<SocketAddr>, interim: &Rc<Interim>) -> Self {
        Self { remote, local, interim: Rc::clone(interim), peer: OnceCell::new() }
    }

    /// What engines are told of the connection.
    pub fn peer(&self) -> &Peer {
        self.peer.get_or_init(|| Peer::new(self.remote, self.local))
    }
}

impl Service {
    /// `head_time`: how long the request's head took to come.
    pub fn answer(
        self: &Rc<Self>,
        request: Request<Incoming>,
        head_time: Duration,
        ends: &Rc<Ends>,
    ) -> Answering {
        // A look at the clock only if somebody wants to know.
        let started = self.sites.keep_access_logs().then(Instant::now);
        if let Err(status) = check(&request, self.max_header_size) {
            return Answering::ready(Logged::nowhere(plain(status, &[(header::CONNECTION, "close")])));
        }
        let (head, body) = request.into_parts();
        // Boxed, since it would be the greater part of a future that is moved about.
        let mut exchange = Box::new(Exchange::new(head, ends.remote, ends.local));
        match self.sites.route(&mut exchange) {
            Action::Respond(response) => {
                // What hyper reads of it to get rid of it may end with trailers, which nobody sees.
                if body.size_hint().exact().is_none() {
                    ends.interim.close_connection();
                }
                Answering::ready(self.finish(response.map(Answer::Static), exchange, started, None))
            }
            Action::Php(target) => {
                let (service, ends) = (Rc::clone(self), Rc::clone(ends));
                Answering::Later(Box::pin(async move {
                    let received = Rc::new(Cell::new(0));
                    let arrived = Arrived { exchange: &exchange, ends: &ends, head_time };
                    let answered = service.php.run(arrived, &target, body, &received).await;
                    service.finish_measured(answered, exchange, started, received)
                }))
            }
            Action::Native(target) => {
                let (service, ends) = (Rc::clone(self), Rc::clone(ends));
                Answering::Later(Box::pin(async move {
                    let received = Rc::new(Cell::new(0));
                    let arrived = Arrived { exchange: &exchange, ends: &ends, head_time };
                    let native =
                        service.native.as_ref().expect("invariant: routes lead to services that are");
                    let answered = native.run(arrived, &target, body, &received).await;
                    service.finish_measured(answered, exchange, started, received)
                }))
            }
        }
    }

    fn finish_measured(
        &self,
        (response, passage): Answered,
        mut exchange: Box<Exchange>,
        started: Option<Instant>,
        received: Rc<Cell<u64>>,
    ) -> Response<Logged> {
        let response = self.with_error_page(response, &mut exchange);
        self.finish(response, exchange, started, Some(received)).map(|body| body.measured(passage))
    }

    /// Where an engine could not answer, what `handle_errors` has for that takes the place of the server's own words.
    fn with_error_page(&self, mut response: Response<Answer>, exchange: &mut Exchange) -> Response<Answer> {
        if response.extensions_mut().remove::<OwnAnswer>().is_none() {
            return response;
        }
        let mut fields = response.headers().clone();
        fields.remove(header::CONTENT_TYPE);
        match self.sites.error_page(exchange, response.status(), fields) {
            Some(page) => page.map(Answer::Static),
            None => response,
        }
    }

    /// `received`: bytes of the request's body; `None` if it was not read.
    fn finish(
        &self,
        mut response: Response<Answer>,
        mut exchange: Box<Exchange>,
        started: Option<Instant>,
        received: Option<Rc<Cell<u64>>>,
    ) -> Response<Logged> {
        let mut status = response.status();
        exchange.finish(&mut status, response.headers_mut());
        *response.status_mut() = status;
        match started {
            Some(started) => Logged::new(response, &self.sites, exchange, received, started),
            None => Logged::nowhere(response),
        }
    }
}

impl Answering {
    fn ready(response: Response<Logged>) -> Self {
        Self::Ready(Some(response))
    }
}

impl Future for Answering {
    type Output = Response<Logged>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Logged>> {
        match self.get_mut() {
            Self::Ready(response) => {
                Poll::Ready(response.take().expect("invariant: a future that is done is not polled"))
            }
            Self::Later(answer) => answer.as_mut().poll(context),
        }
    }
}
