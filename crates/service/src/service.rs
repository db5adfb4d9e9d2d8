//! One request, from its head to its answer.

mod cached;

use crate::acme_challenge;
use crate::counted::{Counted, HttpFigures};
use crate::departed;
use crate::expected_fields::ExpectedFields;
use crate::head_check::check;
use crate::hub_gateway::HubGateway;
use crate::in_use::InUse;
use crate::refusals::{self, busy, no_websocket};
use crate::scrapes::Scrapes;
use crate::turns::Turns;
use cached::has_body;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use regent_config::SniHost;
use regent_engines::InFlight;
use regent_exchange::{BodyLimits, Connection, EventStream, Informational, RequestBody, ResponseBody};
use regent_gateway::{Completed, Ends, Gateway, IncomingRequest, Logged, NativeGateway};
use regent_handlers::{Action, Exchange, Failure, Sites, Target, caching};
use regent_metrics::{HttpRequest, Outcome};
use regent_proxy::Proxy;
use regent_tls::{ClientAuthClass, SiteTable, Tls};
use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// What access logs have for a request that gets no response, as those of nginx.
const NO_RESPONSE: u16 = 444;

/// Answers the requests of one listening address on one I/O thread.
pub struct Service {
    /// Bytes of a request's head.
    pub max_header_size: usize,
    pub expected_fields: Arc<ExpectedFields>,
    pub limits: BodyLimits,
    pub passwords: Turns,
    pub listings: Turns,
    pub templates: Turns,
    pub sites: Arc<Sites>,
    pub sni_host: SniHost,
    /// Tells clients where HTTP/3 is spoken; `None`: nowhere.
    pub alt_svc: Option<HeaderValue>,
    /// `None`: plain HTTP.
    pub tls: Option<Arc<SiteTable>>,
    /// Has the challenges of public CAs that may be looked for here; `None`: there are never any.
    pub challenges: Option<Tls>,
    pub php: Rc<Gateway>,
    /// `None`: no route of the sites leads to a native service.
    pub native: Option<Rc<NativeGateway>>,
    pub hubs: HubGateway,
    pub proxy: Rc<Proxy>,
    pub scrapes: Scrapes,
    /// Each request holds the service.
    pub in_use: InUse,
    /// Fetches for the cache that are under way.
    pub fetches: Cell<usize>,
    /// `None`: requests are not counted under Caddy's names.
    pub figures: Option<HttpFigures>,
}

/// An accepted connection.
pub struct Accepted {
    pub ends: Ends,
    /// What the client was asked for in the handshake; `None` without TLS.
    pub client_auth: Option<ClientAuthClass>,
}

impl Accepted {
    /// `client_auth`: as in [`Self::client_auth`].
    pub fn new(connection: Connection, client_auth: Option<ClientAuthClass>) -> Self {
        Self { ends: Ends::new(connection), client_auth }
    }
}

/// A script runs to its end then.
pub(crate) async fn read_to_end(mut body: ResponseBody) {
    while let Some(Ok(_)) = body.frame().await {}
}

/// A request that is being answered. What needs no engine is answered at once.
pub enum ResponseFuture {
    /// `None`: taken.
    Ready(Option<Response<Counted>>),
    Later(Pin<Box<dyn Future<Output = Response<Counted>>>>),
}

impl Service {
    /// `head_time`: how long the request's head took to come.
    pub fn answer(
        self: &Rc<Self>,
        mut request: Request<RequestBody>,
        head_time: Duration,
        accepted: &Rc<Accepted>,
        client: Rc<dyn Informational>,
    ) -> ResponseFuture {
        // A look at the clock only if somebody wants to know.
        let is_timed = self.sites.keep_access_logs() || self.figures.is_some();
        let started = is_timed.then(Instant::now);
        match check(&request, self.max_header_size) {
            Ok(are_ambiguous) => self.expected_fields.filter(request.headers_mut(), are_ambiguous),
            Err(status) => {
                let refused = refusals::bad_head(status).plain_page();
                return ResponseFuture::ready(Counted::nowhere(Logged::nowhere(refused)));
            }
        }
        let (head, body) = request.into_parts();
        // Boxed, since it would be the greater part of a future that is moved about.
        let mut exchange = Box::new(Exchange::new(head, accepted.ends.connection.clone()));
        exchange.code = self.php.code();
        let asked = Asked { exchange, body, head_time, started, counted: None };
        let token =
            self.challenges.as_ref().and_then(|tls| Some((tls, acme_challenge::token(&asked.exchange)?)));
        match token {
            None => self.answer_by_sites(asked, accepted, client),
            Some((tls, token)) => {
                let looked_for = acme_challenge::response(tls, &asked.exchange.host, token);
                let (service, accepted) = (Rc::clone(self), Rc::clone(accepted));
                ResponseFuture::Later(Box::pin(async move {
                    match looked_for.await {
                        Some(response) => service.respond(response, asked, &*client),
                        None => service.answer_by_sites(asked, &accepted, client).await,
                    }
                }))
            }
        }
    }

    fn answer_by_sites(
        self: &Rc<Self>,
        mut asked: Asked,
        accepted: &Rc<Accepted>,
        client: Rc<dyn Informational>,
    ) -> ResponseFuture {
        if !self.may_ask_for(&asked.exchange, accepted) {
            let misdirected = Failure::new(StatusCode::MISDIRECTED_REQUEST);
            return ResponseFuture::ready(self.finish(misdirected.plain_page(), asked.ending(None)));
        }
        let action = match self.sites.route(&mut asked.exchange) {
            Action::Forward(target) if asked.exchange.is_cached() => self.looked_up(target, &mut asked),
            action => action,
        };
        if let (Some(figures), Some(started)) = (&self.figures, asked.started) {
            asked.counted = figures.begin(&asked.exchange, &asked.body, started);
        }
        match action {
            Action::Respond(response) => ResponseFuture::ready(self.respond(response, asked, &*client)),
            Action::Abort => ResponseFuture::ready(self.abort(asked.ending(None), &*client)),
            later => {
                let (service, accepted) = (Rc::clone(self), Rc::clone(accepted));
                let goes_on = asked.exchange.runs_departed;
                let answering = service.carry_out(later, asked, accepted, client);
                ResponseFuture::Later(if goes_on {
                    departed::outlived(answering)
                } else {
                    Box::pin(answering)
                })
            }
        }
    }

    /// What the cache has for a request, if that is fresh.
    fn looked_up(&self, target: Target, asked: &mut Asked) -> Action {
        let body = has_body(&asked.body);
        match caching::hit(&mut asked.exchange, &target, body) {
            Some(response) => self.sites.intercept(&mut asked.exchange, response).0,
            None => Action::Forward(target),
        }
    }

    /// A response that needs nothing of the request's body.
    fn respond(
        &self,
        response: Response<ResponseBody>,
        asked: Asked,
        client: &dyn Informational,
    ) -> Response<Counted> {
        // What hyper reads of it to get rid of it may end with trailers, which nobody sees.
        if asked.body.size_hint().exact().is_none() {
            client.close_connection();
        }
        self.finish(response, asked.ending(None))
    }

    /// No response; what is made of it here is for the access log.
    fn abort(&self, ending: Ending, client: &dyn Informational) -> Response<Counted> {
        client.abort();
        let mut response = Response::new(ResponseBody::empty());
        *response.status_mut() = StatusCode::from_u16(NO_RESPONSE).expect("invariant: it has three digits");
        self.finish(response, ending)
    }

    /// Checks passwords, lists directories, and hands a request on, until there is a response: an engine or another server may
    /// have to make the page of an error too.
    ///
    /// What few requests need is boxed: the future is moved into a box of its own, and its size is paid for by each.
    async fn carry_out(
        self: Rc<Self>,
        mut action: Action,
        asked: Asked,
        accepted: Rc<Accepted>,
        client: Rc<dyn Informational>,
    ) -> Response<Counted> {
        let received = Rc::new(Cell::new(0));
        let mut in_flight = None;
        let Asked { mut body, mut head_time, .. } = asked;
        let mut ending = Ending {
            exchange: asked.exchange,
            started: asked.started,
            counted: asked.counted,
            received: Some(Rc::clone(&received)),
        };
        let response = loop {
            let exchange = &mut ending.exchange;
            action = match action {
                Action::Respond(response) => {
                    // As in [`Self::respond`].
                    if body.size_hint().exact().is_none() {
                        client.close_connection();
                    }
                    break self.finish(response, ending);
                }
                Action::Abort => break self.abort(ending, &*client),
                Action::Verify(verification) => {
                    match Box::pin(self.passwords.run(move || verification.run())).await {
                        None => self.sites.resume(exchange, busy()),
                        Some(verified) => {
                            exchange.start_over(verified);
                            self.sites.route(exchange)
                        }
                    }
                }
                Action::List(listing) => match Box::pin(self.listings.run(move || listing.run())).await {
                    None => self.sites.resume(exchange, busy()),
                    Some(Ok(listed)) => self.sites.listed(exchange, listed),
                    Some(Err(status)) => self.sites.resume(exchange, Failure::new(status)),
                },
                Action::Render(rendering) => Box::pin(self.rendered(*rendering, exchange, &accepted)).await,
                Action::Forward(target) => {
                    if let Some(text) = exchange.body.replaced_by.take() {
                        // As in [`Self::respond`].
                        if body.size_hint().exact().is_none() {
                            client.close_connection();
                        }
                        body = RequestBody::new(Full::new(text));
                    }
                    let arrival =
                        Arrival { ends: &accepted.ends, client: &client, head_time, received: &received };
                    let result;
                    (result, in_flight) = match exchange.is_cached() {
                        false => self.hand_on(&target, exchange, &mut body, arrival).await,
                        true => {
                            let cached =
                                self.hand_on_cached(&target, exchange, &mut body, &accepted, arrival);
                            Box::pin(cached).await
                        }
                    };
                    match result {
                        Ok(mut response) => {
                            exchange.note_times(&mut response);
                            self.handled(&target, exchange, response).await
                        }
                        Err(failure) => {
                            // Whoever makes the page reads no body: there may be none left.
                            (body, head_time) = (RequestBody::empty(), Duration::ZERO);
                            self.sites.resume(exchange, failure)
                        }
                    }
                }
            };
        };
        match in_flight {
            Some(in_flight) => response.map(|body| body.map(|body| body.measured(in_flight))),
            None => response,
        }
    }

    async fn hand_on(
        &self,
        target: &Target,
        exchange: &mut Exchange,
        body: &mut RequestBody,
        Arrival { ends, client, head_time, received }: Arrival<'_>,
    ) -> (Result<Response<ResponseBody>, Failure>, Option<Rc<InFlight>>) {
        if exchange.is_websocket_stream && !matches!(target, Target::Proxy(_)) {
            return (Err(no_websocket()), None);
        }
        let limits = exchange.body.over(self.limits);
        let arrived = |exchange| IncomingRequest { exchange, ends, client, head_time, limits };
        match target {
            Target::Php(php) => counted(self.php.run(arrived(exchange), php, body.take(), received).await),
            Target::Native(native) => {
                counted(self.native().run(arrived(exchange), native, body.take(), received).await)
            }
            Target::Mercure(hub) => {
                // As in [`Self::respond`].
                if body.size_hint().exact().is_none() {
                    client.close_connection();
                }
                (Ok(Box::pin(self.hubs.answer(exchange, *hub, body.take(), limits)).await), None)
            }
            Target::Metrics => {
                // As in [`Self::respond`].
                if body.size_hint().exact().is_none() {
                    client.close_connection();
                }
                (Box::pin(self.scrapes.answer(exchange.original_method())).await, None)
            }
            Target::Proxy(proxy) => {
                let arrived = regent_proxy::IncomingRequest { exchange, client, limits };
                (Box::pin(self.proxy.run(arrived, proxy, body, received)).await, None)
            }
        }
    }

    /// What the site makes of a response.
    async fn handled(
        &self,
        target: &Target,
        exchange: &mut Exchange,
        response: Response<ResponseBody>,
    ) -> Action {
        match target {
            Target::Proxy(proxy) if proxy.rules.handles_responses() => {
                self.sites.handle_response(exchange, response)
            }
            _ => {
                let (action, replaced) = self.sites.intercept(exchange, response);
                // A script runs to its end, though nobody sees what it prints.
                if let (Some(body), Target::Php(_) | Target::Native(_)) = (replaced, target) {
                    Box::pin(read_to_end(body)).await;
                }
                action
            }
        }
    }

    /// Whether the request may come over a connection that was made for another name.
    fn may_ask_for(&self, exchange: &Exchange, accepted: &Accepted) -> bool {
        let (Some(tls), Some(class), Some(sites)) =
            (&exchange.connection.tls, accepted.client_auth, self.tls.as_deref())
        else {
            return true;
        };
        let is_named = || tls.server_name.as_deref() == Some(&*exchange.host);
        (self.sni_host == SniHost::Free || is_named()) && sites.may_serve(&exchange.host, class)
    }

    fn native(&self) -> &NativeGateway {
        self.native.as_ref().expect("invariant: routes lead to services that are")
    }

    fn finish(&self, mut response: Response<ResponseBody>, ending: Ending) -> Response<Counted> {
        let Ending { mut exchange, started, received, counted } = ending;
        if exchange.is_websocket_stream && response.status().is_success() {
            response = no_websocket().plain_page();
        }
        let outcome = match counted.is_some() && Sites::is_of_error(&exchange, &response) {
            true => Outcome::Failed,
            false => Outcome::Answered,
        };
        if let Some(alt_svc) = &self.alt_svc
            && exchange.version != Version::HTTP_3
        {
            // Before the filters, which may remove it.
            response.headers_mut().entry(header::ALT_SVC).or_insert_with(|| alt_svc.clone());
        }
        let response = exchange.finish(response);
        let span = exchange.span(&response);
        if response.extensions().get::<EventStream>().is_some() {
            // Its access log has it when it has ended.
            exchange.detach();
        }
        let logged = match started.filter(|_| self.sites.keep_access_logs()) {
            Some(started) => Logged::new(response, &self.sites, exchange, received, started),
            None => Logged::nowhere(response),
        };
        let logged = match span {
            Some(span) => logged.map(|body| body.traced(span)),
            None => logged,
        };
        Counted::new(logged, outcome, counted)
    }
}

/// A response of an engine, whose figures are complete when it has been sent.
fn counted(
    (result, in_flight): Completed,
) -> (Result<Response<ResponseBody>, Failure>, Option<Rc<InFlight>>) {
    (result, Some(in_flight))
}

/// A request that is being answered.
struct Asked {
    exchange: Box<Exchange>,
    body: RequestBody,
    head_time: Duration,
    /// `None`: nobody wants to know.
    started: Option<Instant>,
    /// `None`: no figures are kept, or not yet.
    counted: Option<HttpRequest>,
}

/// What is done with at the end of a request.
struct Ending {
    exchange: Box<Exchange>,
    started: Option<Instant>,
    /// Bytes of the request's body; `None` if it was not read.
    received: Option<Rc<Cell<u64>>>,
    counted: Option<HttpRequest>,
}

impl Asked {
    fn ending(self, received: Option<Rc<Cell<u64>>>) -> Ending {
        Ending { exchange: self.exchange, started: self.started, received, counted: self.counted }
    }
}

/// Of a request that is handed on.
struct Arrival<'a> {
    ends: &'a Ends,
    client: &'a Rc<dyn Informational>,
    head_time: Duration,
    received: &'a Rc<Cell<u64>>,
}

impl ResponseFuture {
    fn ready(response: Response<Counted>) -> Self {
        Self::Ready(Some(response))
    }
}

impl Future for ResponseFuture {
    type Output = Response<Counted>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Counted>> {
        match self.get_mut() {
            Self::Ready(response) => {
                Poll::Ready(response.take().expect("invariant: a future that is done is not polled"))
            }
            Self::Later(answer) => answer.as_mut().poll(context),
        }
    }
}
