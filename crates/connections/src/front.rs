//! The connections of an I/O thread: each from its socket to its end.

mod handshakes;
mod quic;
mod secured;

use crate::binding::{Binding, Bindings, Conditions, Service};
use crate::datagrams::Receiving;
use crate::dealt::Dealt;
use crate::proxy_headers::ProxyHeaders;
use regent_config::{self as config, HttpProtocol};
use regent_exchange::{Connection, Informational};
use regent_http::h2::{self, Sniffed};
use regent_http::h3::Arriving;
use regent_http::{Interim, Settings};
use regent_metrics::{ConnectionMeter, HandshakeTransport, Protocol};
use regent_net::{
    Arrival, BusyPoll, CoarseInstant, Cork, Drain, Keepalive, Socket, Sockets, Stream, Transport,
    local_address,
};
use regent_tls::Acceptor;
use rustix::fd::OwnedFd;
use secured::secured;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::spawn_local;

/// What all connections of a thread share.
pub struct Front<S> {
    /// By the number of the listening address.
    ports: RefCell<Vec<(usize, Rc<Port<S>>)>>,
    /// That of all of them.
    drain: Drain,
    pub sockets: Rc<Sockets>,
    pub busy_poll: Rc<BusyPoll>,
    pub meter: Rc<ConnectionMeter>,
    open: Cell<usize>,
    /// Whether connections may come that were accepted already.
    is_dealt_to: Cell<bool>,
    closed: Notify,
}

/// The connections of a listening address that were accepted under equal terms.
struct Port<S> {
    /// What stands behind it now.
    binding: RefCell<Rc<Binding<S>>>,
    /// The next request is a connection's last; in HTTP/2 and HTTP/3 the client is told at once.
    leave: Drain,
    drain: Drain,
}

impl<S: Service> Front<S> {
    pub fn new(bindings: &Bindings<S>, busy_poll: BusyPoll, meter: ConnectionMeter) -> Self {
        Self {
            ports: RefCell::new(ports(bindings, &[])),
            drain: Drain::default(),
            sockets: Rc::default(),
            busy_poll: Rc::new(busy_poll),
            meter: Rc::new(meter),
            open: Cell::new(0),
            is_dealt_to: Cell::new(true),
            closed: Notify::new(),
        }
    }

    /// Requests that come now are answered behind these bindings. Connections to addresses that have none, or that connections are
    /// taken at under other terms, end with the request that they are at.
    pub fn change_to(&self, bindings: &Bindings<S>) {
        let next = ports(bindings, &self.ports.borrow());
        let before = self.ports.replace(next);
        let ports = self.ports.borrow();
        let is_left =
            |port: &&(usize, Rc<Port<S>>)| !ports.iter().any(|(_, other)| Rc::ptr_eq(other, &port.1));
        before.iter().filter(is_left).for_each(|(_, port)| port.drain());
    }

    /// All connections end with their next request. Those that bring none go on until [`Self::drain`].
    pub fn leave(&self) {
        self.ports.borrow().iter().for_each(|(_, port)| port.leave.begin());
    }

    /// How long clients that keep their connections may take to their last requests once it leaves. Whose request is on its way
    /// while the connection is closed would lose it.
    pub fn patience(&self) -> Duration {
        let ports = self.ports.borrow();
        let of = |(_, port): &(usize, Rc<Port<S>>)| port.conditions().settings.last_request;
        ports.iter().map(of).max().unwrap_or_default()
    }

    /// All connections end with the request that they are at, and those of clients that have just come with their first.
    pub fn drain(&self) {
        self.drain.begin();
        self.ports.borrow().iter().for_each(|(_, port)| port.drain());
    }

    /// Ends when no connection is left, nor on its way here.
    pub async fn none_left(&self) {
        while self.open.get() > 0 || self.is_dealt_to.get() {
            self.closed.notified().await;
        }
    }

    pub fn take(self: &Rc<Self>, dealt: Dealt) {
        match dealt {
            Dealt::Stream(socket, arrival) => self.serve(socket, arrival),
            Dealt::Datagrams(arriving, number, receiving) => {
                self.serve_datagrams(arriving, number, receiving)
            }
            Dealt::Nothing => {
                self.is_dealt_to.set(false);
                self.closed.notify_one();
            }
        }
    }

    /// Serves a connection to its end, in a task of its own.
    fn serve(self: &Rc<Self>, socket: OwnedFd, arrival: Arrival) {
        // Its address has been closed meanwhile.
        let Some(port) = self.port(arrival.listener) else { return };
        let remote = arrival.remote;
        // Only ends of TCP connections have addresses.
        let transport = if remote.is_some() { Transport::Tcp } else { Transport::Unix };
        let local = arrival.local.or_else(|| remote.and_then(|_| local_address(&socket)));
        let connection = Connection { remote, local, tls: None };
        let (front, conditions) = (Rc::clone(self), port.conditions());
        if transport == Transport::Tcp {
            probe(&socket, conditions.terms.keepalive);
        }
        let open = OpenConnection::new(&front);
        front.busy_poll.event();
        let (socket, cork) = Socket::new(socket, transport, &front.sockets);
        // Boxed: the runtime would move it about, when it starts and when it ends.
        spawn_local(Box::pin(async move {
            let stop = &front.drain;
            let (busy_poll, meter) = (&*front.busy_poll, &*front.meter);
            let speaker = Speaker { busy_poll, meter, port: &port, conditions: &conditions, stop };
            match &conditions.proxy_protocol {
                None => speaker.begin(socket, cork, connection).await,
                Some(headers) => {
                    Box::pin(speaker.converse_behind_header(headers, socket, cork, connection)).await;
                }
            }
            drop(open);
        }));
    }

    /// Serves a connection of HTTP/3 to its end, in a task of its own. One that is not served is refused.
    fn serve_datagrams(self: &Rc<Self>, arriving: Box<Arriving>, number: usize, receiving: Receiving) {
        let Some(port) = self.port(number) else { return self.meter.quic_refused() };
        let (front, conditions) = (Rc::clone(self), port.conditions());
        if front.drain.has_begun() || !conditions.terms.protocols.contains(&HttpProtocol::H3) {
            return self.meter.quic_refused();
        }
        let open = OpenConnection::new(&front);
        front.busy_poll.event();
        spawn_local(Box::pin(async move {
            let stop = &front.drain;
            let (busy_poll, meter) = (&*front.busy_poll, &*front.meter);
            let speaker = Speaker { busy_poll, meter, port: &port, conditions: &conditions, stop };
            speaker.converse_by_quic(*arriving).await;
            drop((open, receiving));
        }));
    }

    fn port(&self, number: usize) -> Option<Rc<Port<S>>> {
        let ports = self.ports.borrow();
        ports.iter().find(|(own, _)| *own == number).map(|(_, port)| Rc::clone(port))
    }
}

/// Counted as long as it lives, also by a task that ends in a panic: a drain waits for all of them.
struct OpenConnection<S>(Rc<Front<S>>);

impl<S> OpenConnection<S> {
    fn new(front: &Rc<Front<S>>) -> Self {
        front.open.set(front.open.get() + 1);
        Self(Rc::clone(front))
    }
}

impl<S> Drop for OpenConnection<S> {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.closed.notify_one();
    }
}

/// Those with these bindings. One whose connections can go on stays, and gets a new binding.
fn ports<S>(bindings: &Bindings<S>, before: &[(usize, Rc<Port<S>>)]) -> Vec<(usize, Rc<Port<S>>)> {
    let port = |(number, binding): &(usize, Rc<Binding<S>>)| {
        let goes_on = |(own, port): &&(usize, Rc<Port<S>>)| {
            own == number && port.binding.borrow().conditions.terms == binding.conditions.terms
        };
        let port = match before.iter().find(goes_on) {
            Some((_, port)) => {
                port.binding.replace(Rc::clone(binding));
                Rc::clone(port)
            }
            None => Rc::new(Port {
                binding: RefCell::new(Rc::clone(binding)),
                leave: Drain::default(),
                drain: Drain::default(),
            }),
        };
        (*number, port)
    };
    bindings.iter().map(port).collect()
}

impl<S> Port<S> {
    fn drain(&self) {
        self.leave.begin();
        self.drain.begin();
    }

    /// For the next request.
    fn service(&self) -> S
    where
        S: Clone,
    {
        self.binding.borrow().service.clone()
    }

    /// For the next connection. (It must not keep the binding: an idle one would keep an engine.)
    fn conditions(&self) -> Rc<Conditions> {
        Rc::clone(&self.binding.borrow().conditions)
    }
}

/// Speaks with the client of one connection.
struct Speaker<'a, S> {
    busy_poll: &'a BusyPoll,
    meter: &'a ConnectionMeter,
    port: &'a Port<S>,
    conditions: &'a Conditions,
    /// The server's.
    stop: &'a Drain,
}

/// How long a connection goes on.
#[derive(Clone, Copy)]
struct Conduct<'a> {
    settings: &'a Settings,
    leave: &'a Drain,
    drain: &'a Drain,
    requests: Requests,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Requests {
    Many,
    /// Its terms have changed while it shook hands.
    One,
}

/// Of a connection whose terms have changed while it shook hands.
struct Late {
    settings: Settings,
    until_then: Drain,
}

impl Late {
    /// Most clients send their request with the end of the handshake.
    fn new(settings: &Settings) -> Self {
        let settings = Settings { idle: settings.idle.min(settings.last_request), ..*settings };
        Self { settings, until_then: Drain::default() }
    }
}

impl Conduct<'_> {
    /// `client`: who has sent it.
    fn request_came(&self, client: &dyn Informational) {
        if self.requests == Requests::One {
            client.close_connection();
            self.drain.begin();
        } else if self.leave.has_begun() {
            client.close_connection();
        }
    }
}

impl<S: Service> Speaker<'_, S> {
    /// All but plain HTTP/1.1 is boxed, so that such a connection keeps no room for the rest.
    async fn begin(&self, stream: impl Stream + 'static, cork: Rc<Cork>, connection: Connection) {
        match &self.conditions.tls {
            Some(acceptor) => Box::pin(self.converse_by_tls(acceptor, stream, cork, connection)).await,
            None if self.conditions.terms.protocols.contains(&HttpProtocol::H2c) => {
                Box::pin(self.converse_by_preface(stream, cork, connection)).await;
            }
            None => self.converse(stream, cork, plain::<S>(connection), self.conduct()).await,
        }
    }

    /// A balancer may have said who the client is.
    async fn converse_behind_header(
        &self,
        headers: &ProxyHeaders,
        socket: Socket,
        cork: Rc<Cork>,
        mut connection: Connection,
    ) {
        let (remote, patience) = (connection.remote, self.conditions.settings.last_request);
        match headers.take(socket, &mut connection, &self.port.drain, patience).await {
            Ok(Some(stream)) => self.begin(stream, cork, connection).await,
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, ?remote, "a connection ended with its PROXY header"),
        }
    }

    async fn converse_by_tls(
        &self,
        acceptor: &Acceptor,
        socket: impl Stream + 'static,
        cork: Rc<Cork>,
        connection: Connection,
    ) {
        let local = connection.local.map(|local| local.ip());
        let came = CoarseInstant::now();
        let accepted = tokio::select! {
            accepted = acceptor.accept(socket, local) => accepted,
            // A client whose handshake takes so long has asked for nothing yet. (Other terms for those to come are no
            // reason to cut it: it would not know that it may try again.)
            () = self.stop.begun_for_client_of(came, self.conditions.settings.last_request) => return,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                self.count_failure(HandshakeTransport::Tcp, &error);
                tracing::debug!(%error, remote = ?connection.remote, "a client could not be served by TLS");
                return;
            }
        };
        let facts = Arc::clone(stream.facts());
        self.count_handshake(HandshakeTransport::Tcp, &facts);
        let accepted = secured::<S>(connection, &facts);
        let late = Late::new(&self.conditions.settings);
        let conduct = self.conduct_after_handshake(&late);
        match facts.alpn.as_deref() {
            Some(b"h2") => self.converse_by_h2(stream, accepted, conduct).await,
            _ => self.converse(stream, cork, accepted, conduct).await,
        }
    }

    fn conduct(&self) -> Conduct<'_> {
        let Port { leave, drain, .. } = self.port;
        Conduct { settings: &self.conditions.settings, leave, drain, requests: Requests::Many }
    }

    fn conduct_after_handshake<'a>(&'a self, late: &'a Late) -> Conduct<'a> {
        match self.port.leave.has_begun() {
            false => self.conduct(),
            true => {
                let own = &late.until_then;
                Conduct { settings: &late.settings, leave: own, drain: own, requests: Requests::One }
            }
        }
    }

    /// HTTP/2 without TLS begins with its preface (RFC 9113 §3.3); what begins otherwise is HTTP/1.1.
    async fn converse_by_preface(
        &self,
        socket: impl Stream + 'static,
        cork: Rc<Cork>,
        connection: Connection,
    ) {
        match h2::sniff(socket, &self.conditions.settings, &self.port.drain).await {
            Ok(Sniffed::Http1(stream)) => {
                self.converse(stream, cork, plain::<S>(connection), self.conduct()).await
            }
            Ok(Sniffed::Http2(stream)) => {
                self.converse_by_h2(stream, plain::<S>(connection), self.conduct()).await
            }
            Ok(Sniffed::Nothing) => {}
            Err(error) => tracing::debug!(%error, "a connection ended before its first request"),
        }
    }

    async fn converse_by_h2(&self, stream: impl Stream, accepted: S::Accepted, conduct: Conduct<'_>) {
        let accepted = Rc::new(accepted);
        let open = self.meter.open(Protocol::H2);
        let answer = |request, head_time, client: Rc<dyn Informational>| {
            self.busy_poll.event();
            open.request();
            conduct.request_came(&*client);
            self.port.service().answer(request, head_time, &accepted, client)
        };
        let served = h2::serve(stream, conduct.settings, conduct.leave, conduct.drain, answer);
        if let Err(failure) = served.await {
            tracing::debug!(error = %failure, blame = ?failure.blame(), "an HTTP/2 connection ended with an error");
        }
    }

    async fn converse(
        &self,
        stream: impl Stream + 'static,
        cork: Rc<Cork>,
        accepted: S::Accepted,
        conduct: Conduct<'_>,
    ) {
        let interim = Rc::new(Interim::default());
        let client: Rc<dyn Informational> = Rc::clone(&interim) as _;
        let accepted = Rc::new(accepted);
        let open = self.meter.open(Protocol::H1);
        let answer = |request, head_time| {
            self.busy_poll.event();
            open.request();
            conduct.request_came(&*client);
            self.port.service().answer(request, head_time, &accepted, Rc::clone(&client))
        };
        let Conduct { settings, drain, .. } = conduct;
        let served = regent_http::serve(stream, cork, settings, drain, interim, answer);
        if let Err(error) = served.await {
            tracing::debug!(%error, "a connection ended with an error");
        }
    }
}

/// Says how a silent client is looked after, if that is not what its connection has inherited.
fn probe(socket: &OwnedFd, keepalive: Option<config::Keepalive>) {
    let set = match keepalive {
        None => Keepalive::end(socket),
        Some(usual) if usual == config::Keepalive::default() => return,
        Some(config::Keepalive { idle, interval, count }) => Keepalive { idle, interval, count }.set(socket),
    };
    if let Err(error) = set {
        tracing::debug!(%error, "a connection has no probes of its own");
    }
}

fn plain<S: Service>(connection: Connection) -> S::Accepted {
    S::accept(connection, None)
}
