//! The connections of an I/O thread: each from its socket to its end.

use crate::service::{Accepted, Service};
use crate::vigil::Vigil;
use regent_config::HttpProtocol;
use regent_exchange::{Connection, Informational};
use regent_gateway::Ends;
use regent_http::h2::{self, Sniffed};
use regent_http::{Interim, Settings};
use regent_net::{Arrival, Cork, Drain, Socket, Sockets, Stream, Transport, local_address};
use regent_tls::Acceptor;
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::task::spawn_local;

/// What all connections of a thread share.
pub(crate) struct Front {
    /// By listening address.
    doors: Vec<Rc<Door>>,
    settings: Settings,
    pub drain: Drain,
    pub sockets: Rc<Sockets>,
    pub vigil: Rc<Vigil>,
    open: Cell<usize>,
    closed: Notify,
}

/// What stands behind a listening address.
pub(crate) struct Door {
    pub service: Rc<Service>,
    /// `None`: plain HTTP.
    pub tls: Option<Acceptor>,
    pub protocols: Vec<HttpProtocol>,
}

impl Front {
    pub fn new(doors: Vec<Rc<Door>>, settings: Settings, vigil: Vigil) -> Self {
        Self {
            doors,
            settings,
            drain: Drain::default(),
            sockets: Rc::default(),
            vigil: Rc::new(vigil),
            open: Cell::new(0),
            closed: Notify::new(),
        }
    }

    /// Serves a connection to its end, in a task of its own.
    pub fn serve(self: &Rc<Self>, socket: OwnedFd, arrival: Arrival) {
        let remote = arrival.remote;
        // Only ends of TCP connections have addresses.
        let transport = if remote.is_some() { Transport::Tcp } else { Transport::Unix };
        let local = arrival.local.or_else(|| remote.and_then(|_| local_address(&socket)));
        let connection = Connection { remote, local, tls: None };
        let (front, door) = (Rc::clone(self), Rc::clone(&self.doors[arrival.listener]));
        front.open.set(front.open.get() + 1);
        front.vigil.event();
        let (socket, cork) = Socket::new(socket, transport, &front.sockets);
        // Boxed: the runtime would move it about, when it starts and when it ends.
        spawn_local(Box::pin(async move {
            let service = &door.service;
            // All but plain HTTP/1.1 is boxed, so that such a connection keeps no room for the rest.
            match &door.tls {
                Some(acceptor) => {
                    Box::pin(front.converse_by_tls(acceptor, socket, cork, connection, service)).await;
                }
                None if door.protocols.contains(&HttpProtocol::H2c) => {
                    Box::pin(front.converse_by_preface(socket, cork, connection, service)).await;
                }
                None => front.converse(socket, cork, plain(connection), service).await,
            }
            front.open.set(front.open.get() - 1);
            front.closed.notify_one();
        }));
    }

    /// Ends when no connection is left.
    pub async fn none_left(&self) {
        while self.open.get() > 0 {
            self.closed.notified().await;
        }
    }

    async fn converse_by_tls(
        &self,
        acceptor: &Acceptor,
        socket: Socket,
        cork: Rc<Cork>,
        connection: Connection,
        service: &Rc<Service>,
    ) {
        let local = connection.local.map(|local| local.ip());
        let accepted = tokio::select! {
            accepted = acceptor.accept(socket, local) => accepted,
            // A client whose handshake is not through has asked for nothing yet.
            () = self.drain.begun() => return,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%error, remote = ?connection.remote, "a client could not be served by TLS");
                return;
            }
        };
        let facts = Arc::clone(stream.facts());
        let tls = regent_exchange::Tls {
            protocol: facts.protocol,
            cipher: facts.cipher,
            server_name: facts.server_name.as_deref().map(Into::into),
        };
        let ends = Ends::new(Connection { tls: Some(Arc::new(tls)), ..connection });
        let accepted = Accepted { ends, client_auth: Some(facts.client_auth) };
        match facts.alpn.as_deref() {
            Some(b"h2") => self.converse_by_h2(stream, accepted, service).await,
            _ => self.converse(stream, cork, accepted, service).await,
        }
    }

    /// HTTP/2 without TLS begins with its preface (RFC 9113 §3.3); what begins otherwise is HTTP/1.1.
    async fn converse_by_preface(
        &self,
        socket: Socket,
        cork: Rc<Cork>,
        connection: Connection,
        service: &Rc<Service>,
    ) {
        match h2::sniff(socket, &self.settings, &self.drain).await {
            Ok(Sniffed::Http1(stream)) => self.converse(stream, cork, plain(connection), service).await,
            Ok(Sniffed::Http2(stream)) => self.converse_by_h2(stream, plain(connection), service).await,
            Ok(Sniffed::Nothing) => {}
            Err(error) => tracing::debug!(%error, "a connection ended before its first request"),
        }
    }

    async fn converse_by_h2(&self, stream: impl Stream, accepted: Accepted, service: &Rc<Service>) {
        let accepted = Rc::new(accepted);
        let answer = |request, head_time, client| {
            self.vigil.event();
            service.answer(request, head_time, &accepted, client)
        };
        if let Err(failure) = h2::serve(stream, &self.settings, &self.drain, answer).await {
            tracing::debug!(error = %failure, blame = ?failure.blame(), "an HTTP/2 connection ended with an error");
        }
    }

    async fn converse(&self, stream: impl Stream, cork: Rc<Cork>, accepted: Accepted, service: &Rc<Service>) {
        let interim = Rc::new(Interim::default());
        let client: Rc<dyn Informational> = Rc::clone(&interim) as _;
        let accepted = Rc::new(accepted);
        let answer = |request, head_time| {
            self.vigil.event();
            service.answer(request, head_time, &accepted, Rc::clone(&client))
        };
        let served = regent_http::serve(stream, cork, &self.settings, &self.drain, interim, answer);
        if let Err(error) = served.await {
            tracing::debug!(%error, "a connection ended with an error");
        }
    }
}

fn plain(connection: Connection) -> Accepted {
    Accepted { ends: Ends::new(connection), client_auth: None }
}
