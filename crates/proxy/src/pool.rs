//! The connections of an I/O thread to one upstream.

use crate::caller::Caller;
use crate::connect::{Version, connect};
use crate::connection::{Sender, Task, begin};
use crate::idle::{Idle, Shelf, Waiting};
use crate::limit::{Limit, Place};
use crate::resolve::Resolver;
use crate::transports::{Purpose, Transport};
use crate::trouble::Trouble;
use crate::upload::Upload;
use hyper::client::conn::{http1, http2};
use regent_config::{UpstreamAddress, UpstreamVersions};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::Instant;

/// Of upstreams that requests or DNS name. Who names thousands gets no connection that is kept for long.
const MOST_POOLS: usize = 1024;

/// Keeps connections for the next request, the one that was used last first.
pub(crate) struct Pool {
    /// For people to read.
    pub name: String,
    pub address: UpstreamAddress,
    transport: Arc<Transport>,
    pub resolver: Rc<Resolver>,
    /// How long connections are kept for a next request. `None`: each is closed after its own.
    keepalive: Option<Duration>,
    shelf: Rc<Shelf>,
    idle: Rc<Waiting>,
    /// Takes any number of requests.
    shared: RefCell<Option<http2::SendRequest<Upload>>>,
    /// Held by whoever makes a connection that all others will share.
    sharing: tokio::sync::Mutex<()>,
    /// What the upstream has chosen in TLS.
    speaks_h2: Cell<bool>,
    /// A task ends connections that nobody uses.
    is_reaped: Cell<bool>,
    /// `None`: there may be any number of connections.
    limit: Option<Queue>,
}

/// Requests of this I/O thread that wait for a place, or for a connection that comes back.
struct Queue {
    limit: Arc<Limit>,
    waiting: Cell<usize>,
    returned: tokio::sync::Notify,
    /// Whether the last connection that came back while others waited too was given to them.
    gave_up: Cell<bool>,
}

/// Of upstreams that come and go.
#[derive(Default)]
pub(crate) struct Pools(RefCell<HashMap<UpstreamAddress, Rc<Pool>>>);

/// A connection that is a request's own until its response has ended; of HTTP/2, its part of one. Dropped before that, what
/// is under way is cancelled.
pub(crate) struct Lease {
    pub sender: Sender,
    task: Option<Task>,
    pool: Rc<Pool>,
    /// It has had a request before: the upstream may be about to close it.
    pub is_used: bool,
}

/// Whether a connection may be one that was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    Any,
    New,
}

impl Pool {
    pub fn new(
        address: UpstreamAddress,
        transport: &Arc<Transport>,
        resolver: &Rc<Resolver>,
        shelf: &Rc<Shelf>,
    ) -> Rc<Self> {
        let config = &transport.config.transport;
        let limit = config.max_conns_per_host.map(|most| Queue::new(transport.limits.of(&address, most)));
        Rc::new(Self {
            limit,
            name: address.to_string(),
            address,
            // A connection that has been announced as one client's is no other's.
            keepalive: config.keepalive.filter(|_| config.proxy_protocol.is_none()),
            idle: shelf.place(),
            shelf: Rc::clone(shelf),
            transport: Arc::clone(transport),
            resolver: Rc::clone(resolver),
            shared: RefCell::default(),
            sharing: tokio::sync::Mutex::default(),
            speaks_h2: Cell::new(config.versions == UpstreamVersions::H2c),
            is_reaped: Cell::new(false),
        })
    }

    /// A connection for a request.
    pub async fn lease(
        self: &Rc<Self>,
        purpose: Purpose,
        freshness: Freshness,
        caller: Caller,
    ) -> Result<Lease, Trouble> {
        if freshness == Freshness::Any
            && let Some(lease) = self.take(purpose)
        {
            return Ok(lease);
        }
        let is_shared = purpose == Purpose::Requests && self.speaks_h2.get() && self.keepalive.is_some();
        if !is_shared {
            return self.open_in_turn(purpose, freshness, caller).await;
        }
        let _sharing = self.sharing.lock().await;
        match self.take(purpose).filter(|_| freshness == Freshness::Any) {
            Some(lease) => Ok(lease),
            None => self.open(purpose, caller, None).await,
        }
    }

    /// Waits for a place, or for a connection that has become free.
    async fn open_in_turn(
        self: &Rc<Self>,
        purpose: Purpose,
        freshness: Freshness,
        caller: Caller,
    ) -> Result<Lease, Trouble> {
        let Some(queue) = &self.limit else { return self.open(purpose, caller, None).await };
        loop {
            match queue.wait(freshness).await {
                Some(place) => return self.open(purpose, caller, Some(place)).await,
                None => match self.take(purpose) {
                    Some(lease) => return Ok(lease),
                    None => continue,
                },
            }
        }
    }

    /// Whether nobody uses it and nothing would be lost with it.
    fn is_unused(self: &Rc<Self>) -> bool {
        Rc::strong_count(self) == 1 && self.idle.is_empty()
    }

    fn take(self: &Rc<Self>, purpose: Purpose) -> Option<Lease> {
        if purpose == Purpose::Requests {
            let mut shared = self.shared.borrow_mut();
            shared.take_if(|sender| sender.is_closed());
            if let Some(sender) = shared.as_ref() {
                return Some(self.leased(Sender::Http2(sender.clone()), None, true));
            }
        }
        let Idle { sender, task, .. } = self.idle.take(self.keepalive?)?;
        Some(self.leased(Sender::Http1(sender), Some(task), true))
    }

    async fn open(
        self: &Rc<Self>,
        purpose: Purpose,
        caller: Caller,
        place: Option<Place>,
    ) -> Result<Lease, Trouble> {
        let dial = |cause: io::Error| Trouble::Dial { upstream: self.name.clone(), cause };
        let connecting = connect(&self.address, &self.transport, purpose, &self.resolver, caller);
        let connected = connecting.await.map_err(dial)?;
        let speaks_h2 = connected.version == Version::Http2;
        let (sender, task) =
            begin(connected, &self.transport, place).await.map_err(|error| dial(io::Error::other(error)))?;
        if purpose == Purpose::Requests {
            self.speaks_h2.set(speaks_h2);
        }
        if let Sender::Http2(sender) = &sender
            && self.keepalive.is_some()
        {
            self.shared.replace(Some(sender.clone()));
        }
        Ok(self.leased(sender, task, false))
    }

    fn leased(self: &Rc<Self>, sender: Sender, task: Option<Task>, is_used: bool) -> Lease {
        Lease { sender, task, pool: Rc::clone(self), is_used }
    }

    fn put(self: &Rc<Self>, sender: http1::SendRequest<Upload>, task: Task) {
        let Some(keepalive) = self.keepalive else { return };
        if self.limit.as_ref().is_some_and(Queue::gives_up) {
            return;
        }
        let most = self.transport.config.transport.keepalive_idle_conns_per_host;
        self.idle.put(Idle { sender, task, since: Instant::now() }, usize::from(most));
        self.shelf.tidy();
        self.limit.iter().for_each(|queue| queue.returned.notify_one());
        if !self.is_reaped.replace(true) {
            let limit = self.limit.as_ref().map(|queue| Arc::clone(&queue.limit));
            spawn_local(reap(Rc::downgrade(self), keepalive, limit));
        }
    }

    /// Closes what has waited for too long; how long until more has, if there is more.
    fn close_expired(&self, keepalive: Duration) -> Option<Duration> {
        let left = self.idle.close_expired(keepalive);
        self.is_reaped.set(left.is_some());
        left
    }
}

impl Pools {
    /// The one of this address; `new` makes it.
    pub fn get(&self, address: &UpstreamAddress, new: impl FnOnce() -> Rc<Pool>) -> Rc<Pool> {
        let mut pools = self.0.borrow_mut();
        if !pools.contains_key(address) && pools.len() >= MOST_POOLS {
            pools.retain(|_, pool| !pool.is_unused());
            if pools.len() >= MOST_POOLS {
                pools.clear();
            }
        }
        Rc::clone(pools.entry(address.clone()).or_insert_with(new))
    }
}

impl Queue {
    fn new(limit: Arc<Limit>) -> Self {
        Self { limit, waiting: Cell::new(0), returned: tokio::sync::Notify::new(), gave_up: Cell::new(false) }
    }

    /// `None`: a connection has come back. Who wants a new one has no use for that.
    async fn wait(&self, freshness: Freshness) -> Option<Place> {
        struct Waiter<'a>(&'a Cell<usize>);
        impl Drop for Waiter<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() - 1);
            }
        }
        if freshness == Freshness::New {
            return Some(self.limit.place().await);
        }
        self.waiting.set(self.waiting.get() + 1);
        let _waiter = Waiter(&self.waiting);
        tokio::select! {
            biased;
            place = self.limit.place() => Some(place),
            () = self.returned.notified() => None,
        }
    }

    /// Whether a connection that comes back is closed, for those who have none: other threads, whose requests wait too, get every other
    /// one.
    fn gives_up(&self) -> bool {
        let (all, own) = (self.limit.waiting(), self.waiting.get());
        let gives_up = all > own && (own == 0 || !self.gave_up.get());
        if all > own {
            self.gave_up.set(gives_up);
        }
        gives_up
    }
}

/// Ends with the pool, or when it has nothing.
async fn reap(pool: Weak<Pool>, keepalive: Duration, limit: Option<Arc<Limit>>) {
    let mut left = keepalive;
    loop {
        let wanted = async {
            match &limit {
                Some(limit) => limit.wanted().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = tokio::time::sleep(left) => {}
            () = wanted => {
                pool.upgrade().into_iter().for_each(|pool| pool.idle.close_oldest());
                // Whoever has waited for it has a turn before it is asked again.
                tokio::task::yield_now().await;
            }
        }
        match pool.upgrade().and_then(|pool| pool.close_expired(keepalive)) {
            Some(next) => left = next,
            None => return,
        }
    }
}

impl Lease {
    pub fn upstream(&self) -> &str {
        &self.pool.name
    }

    /// Request and response have come to their end: the connection is free for the next ones.
    pub fn finish(self) {
        let Self { sender, task, pool, .. } = self;
        let (Sender::Http1(mut sender), Some(task)) = (sender, task) else { return };
        if sender.is_ready() {
            return pool.put(sender, task);
        }
        // The connection has not noticed yet.
        let pool = Rc::downgrade(&pool);
        spawn_local(async move {
            if sender.ready().await.is_ok()
                && let Some(pool) = pool.upgrade()
            {
                pool.put(sender, task);
            }
        });
    }

    /// The connection leaves HTTP. Its place is to be kept as long as it is there.
    pub fn let_go(self) -> Option<Place> {
        self.task.and_then(Task::let_go)
    }
}
