//! Names whose certificates are ordered when a handshake asks for them.
//!
//! Handshakes only wait. The task of [`Manager::maintain`](super::Manager::maintain) asks for the permission, reads the
//! storage and orders; there is one of it for each name at a time. A certificate that is due is renewed when a handshake
//! asks for its name, so that names which are no longer used lapse.

use super::authority::Authority;
use super::limit::Limit;
use super::managed::{Common, Managed, Task};
use crate::clock;
use crate::permission::{Denial, Permission};
use crate::recent::Recent;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::timeout;

/// Names that are kept in memory; others are read from the storage again. (Caddy's cache holds 10,000.)
const MOST: usize = 4096;
/// Names that are looked after at a time. Further ones are refused, so that nobody can have the server ask without end.
const MOST_BEGUN: usize = 64;
/// Handshakes that wait for a certificate at a time.
const MOST_WAITING: usize = 512;
/// How long a handshake waits. The order goes on after it.
const WAIT: Duration = Duration::from_secs(60);
/// Names that are shown to those who watch.
const LISTED: usize = 256;

/// Of the sites with the same options.
#[derive(Debug)]
pub(crate) struct OnDemandNames {
    pub(super) authorities: Arc<[Authority]>,
    common: Arc<Common>,
    rules: Rules,
    names: Mutex<Names>,
    waiting: Semaphore,
    /// Wakes who attends to what has begun.
    changed: Arc<Notify>,
}

/// What bounds the orders of all sites.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    /// `None`: all names that come here are allowed.
    pub permission: Option<Arc<Permission>>,
    pub limit: Option<Arc<Limit>>,
}

#[derive(Debug)]
struct Names {
    known: Recent<Arc<Managed>>,
    /// Ends when what is done for the name has ended.
    begun: HashMap<String, watch::Receiver<()>>,
    to_attend: Vec<(String, watch::Sender<()>)>,
}

/// Why a handshake gets no certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unready {
    /// The name is not allowed.
    Refused,
    /// It could not be obtained, or not yet.
    Missing,
}

/// What a handshake finds.
enum Look {
    Ready,
    Unready(Unready),
    Wait(watch::Receiver<()>),
}

/// What is to be done for a name; it has ended when this is dropped.
pub(super) struct Begun {
    pub names: Arc<OnDemandNames>,
    name: String,
    /// Its end wakes those who wait.
    _done: watch::Sender<()>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.names.names().begun.remove(&self.name);
    }
}

impl OnDemandNames {
    pub(super) fn new(
        authorities: Arc<[Authority]>,
        common: Arc<Common>,
        rules: Rules,
        changed: Arc<Notify>,
    ) -> Arc<Self> {
        let names = Names { known: Recent::new(MOST), begun: HashMap::new(), to_attend: Vec::new() };
        Arc::new(Self {
            authorities,
            common,
            rules,
            names: Mutex::new(names),
            waiting: Semaphore::new(MOST_WAITING),
            changed,
        })
    }

    /// Whether a certificate for this name is served now. What is due is begun. `name`: normal.
    pub fn is_ready(&self, name: &str) -> bool {
        matches!(self.look(name), Look::Ready)
    }

    /// What is served for this name.
    pub fn certificate(&self, name: &str) -> Option<Arc<crate::certificate::Certificate>> {
        self.names().known.get(name)?.slot.current()
    }

    /// Waits until a certificate for this name is served, a minute at most. `name`: normal.
    pub async fn prepare(&self, name: &str) -> Result<(), Unready> {
        let mut end = match self.look(name) {
            Look::Ready => return Ok(()),
            Look::Unready(why) => return Err(why),
            Look::Wait(end) => end,
        };
        let Ok(_place) = self.waiting.try_acquire() else {
            tracing::warn!(name, "a handshake was refused: too many wait for certificates on demand");
            return Err(Unready::Missing);
        };
        // Its sender sends nothing: that it is dropped ends this.
        let _ = timeout(WAIT, end.changed()).await;
        match self.look(name) {
            Look::Ready => Ok(()),
            Look::Unready(why) => Err(why),
            Look::Wait(_) => Err(Unready::Missing),
        }
    }

    fn look(&self, name: &str) -> Look {
        let now = self.now();
        let is_denied = self.rules.permission.as_ref().is_some_and(|permission| permission.is_denied(name));
        let mut names = self.names();
        let known = names.known.get(name).cloned();
        let is_served = known.as_ref().is_some_and(|managed| managed.is_served(now));
        let has_work = known.as_ref().is_none_or(|managed| managed.next_task(now).is_some());
        let begun = match names.begun.get(name) {
            Some(end) => Some(end.clone()),
            None if has_work && !is_denied => self.begin(&mut names, name),
            None => None,
        };
        match begun {
            _ if is_served => Look::Ready,
            Some(end) => Look::Wait(end),
            None if is_denied => Look::Unready(Unready::Refused),
            None => Look::Unready(Unready::Missing),
        }
    }

    /// `None`: so much has begun that this has to wait for another handshake.
    fn begin(&self, names: &mut Names, name: &str) -> Option<watch::Receiver<()>> {
        if names.begun.len() >= MOST_BEGUN {
            tracing::debug!(name, "too many certificates on demand are being obtained");
            return None;
        }
        let (done, end) = watch::channel(());
        names.begun.insert(name.to_owned(), end.clone());
        names.to_attend.push((name.to_owned(), done));
        self.changed.notify_one();
        Some(end)
    }

    /// What has begun since the last call.
    pub(super) fn to_attend(self: &Arc<Self>) -> Vec<Begun> {
        let new = std::mem::take(&mut self.names().to_attend);
        let begun = |(name, done)| Begun { names: Arc::clone(self), name, _done: done };
        new.into_iter().map(begun).collect()
    }

    /// What a new configuration has to know of this: what has failed, so that it is not tried more often.
    pub(super) fn failed(&self) -> Vec<(String, Arc<Managed>)> {
        let names = self.names();
        let failed = names.known.iter().filter(|(_, managed)| managed.has_failed());
        failed.map(|(name, managed)| (name.clone(), Arc::clone(managed))).collect()
    }

    /// Blocks: it reads what is stored.
    pub(super) fn continue_from(&self, previous: &Self) {
        for (name, before) in previous.failed() {
            let managed = self.load(&name);
            managed.continue_from(&before);
            self.names().known.insert(&name, managed);
        }
    }

    /// Some of those that are known.
    pub(super) fn listed(&self) -> Vec<Arc<Managed>> {
        self.names().known.iter().take(LISTED).map(|(_, managed)| Arc::clone(managed)).collect()
    }

    /// Blocks: it reads what is stored.
    fn load(&self, name: &str) -> Arc<Managed> {
        Managed::load(name, Arc::clone(&self.authorities), Arc::clone(&self.common))
    }

    fn known(&self, name: &str) -> Option<Arc<Managed>> {
        self.names().known.get(name).cloned()
    }

    fn now(&self) -> i64 {
        clock::unix_seconds(&*self.common.clock)
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Begun {
    /// Nothing is ordered for a name that is not allowed now. If nobody says whether it is, what is stored is served: it was
    /// allowed once.
    pub async fn attend(self) {
        let known = self.names.known(&self.name);
        let orders =
            known.as_ref().is_none_or(|managed| managed.next_task(self.names.now()) == Some(Task::Order));
        let allowed = if orders { self.confirm().await } else { Ok(()) };
        if allowed == Err(Denial::Refused) {
            return;
        }
        let Some(managed) = self.managed(known).await else { return };
        if allowed.is_ok() && self.is_within_limit(&managed) {
            self.work(&managed).await;
        }
    }

    async fn work(self, managed: &Managed) {
        if let Some(task) = managed.begin(self.names.now()) {
            managed.attend(task).await;
        }
        // Handshakes need not wait for what else there is to be asked.
        let names = Arc::clone(&self.names);
        drop(self);
        if managed.next_task(names.now()) == Some(Task::AskRenewal)
            && let Some(task) = managed.begin(names.now())
        {
            managed.attend(task).await;
        }
    }

    async fn confirm(&self) -> Result<(), Denial> {
        match &self.names.rules.permission {
            Some(permission) => permission.confirm(&self.name).await,
            None => Ok(()),
        }
    }

    async fn managed(&self, known: Option<Arc<Managed>>) -> Option<Arc<Managed>> {
        if known.is_some() {
            return known;
        }
        let (names, name) = (Arc::clone(&self.names), self.name.clone());
        let loaded = tokio::task::spawn_blocking(move || names.load(&name)).await.ok()?;
        self.names.names().known.insert(&self.name, Arc::clone(&loaded));
        Some(loaded)
    }

    fn is_within_limit(&self, managed: &Managed) -> bool {
        let orders = managed.next_task(self.names.now()) == Some(Task::Order);
        match &self.names.rules.limit {
            Some(limit) if orders => limit.admits(&self.name),
            _ => true,
        }
    }
}
