//! One name: what it is served with, and what is to be done about it.

use super::authority::{Authority, Preferred};
use super::ca::{self, Ca};
use super::challenges::Challenges;
use super::dns::Turns;
use super::error::OrderError;
use super::schedule::{ARI_RETRY, Failures, LATEST_QUESTION, RenewalInfo, Window};
use super::slot::AcmeSlot;
use super::stored::{self, Issued, Stored};
use crate::certificate::Certificate;
use crate::clock::{self, Clock};
use crate::crypto;
use crate::store::Store;
use instant_acme::CertificateIdentifier;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// The CA that Caddy takes after Let's Encrypt: a certificate that it obtained there is used until it is due.
const ZEROSSL: &str = "acme.zerossl.com-v2-dv90";

/// What all names have in common.
#[derive(Debug)]
pub(super) struct Common {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub challenges: Arc<Challenges>,
    pub dns_turns: Arc<Turns>,
    /// How many names may be talked about with CAs at a time.
    pub places: Semaphore,
    /// Of a whole try, whatever hangs.
    pub order_timeout: Duration,
}

#[derive(Debug)]
pub(super) struct Managed {
    pub name: String,
    /// One at least, in the order in which they are asked.
    pub authorities: Arc<[Authority]>,
    pub slot: Arc<AcmeSlot>,
    common: Arc<Common>,
    preferred: Preferred,
    state: Mutex<State>,
}

/// Times are in seconds since 1970.
#[derive(Debug, Default)]
struct State {
    stored: Option<Stored>,
    activity: Activity,
    failures: Failures,
    /// No order before.
    not_before: i64,
    last_error: Option<String>,
    /// When the CA is asked next when to renew.
    ask_at: i64,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Activity {
    #[default]
    Idle,
    /// One task at a time.
    Busy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Order,
    /// Ask the CA when to renew.
    AskRenewal,
}

/// For those who watch.
#[derive(Debug)]
pub(super) struct Outlook {
    pub stored: Option<Stored>,
    pub last_error: Option<String>,
    pub next_try: i64,
}

/// Ends the activity, also when the task is dropped. One that panics has failed, and so is not tried again at once.
struct Busy<'a> {
    managed: &'a Managed,
    task: Task,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let now = self.managed.now();
        let mut state = self.managed.state();
        state.activity = Activity::Idle;
        if std::thread::panicking() {
            match self.task {
                Task::Order => {
                    state.not_before = state.failures.add(now);
                    state.last_error = Some("the order was given up by a bug; the log has more".to_owned());
                }
                Task::AskRenewal => state.ask_at = now + ARI_RETRY,
            }
        }
    }
}

impl Managed {
    /// Blocks: it reads what is stored.
    pub fn load(name: &str, authorities: Arc<[Authority]>, common: Arc<Common>) -> Arc<Self> {
        let managed = Self {
            name: name.to_owned(),
            authorities,
            slot: Arc::default(),
            common,
            preferred: Preferred::default(),
            state: Mutex::default(),
        };
        let issuer_keys = managed.issuer_keys();
        if let Some(stored) = stored::load_newest(&managed.common.store, &issuer_keys, name) {
            managed.serve(stored);
        }
        Arc::new(managed)
    }

    /// What has failed before is not tried earlier than it was to be, and a certificate that could not be stored goes on
    /// being served.
    pub fn continue_from(&self, previous: &Self) {
        let (failures, not_before, last_error, stored) = {
            let before = previous.state();
            (before.failures, before.not_before, before.last_error.clone(), before.stored.clone())
        };
        let from = |stored: &Stored| stored.certificate.validity.from;
        let own = self.state().stored.as_ref().map(from);
        if let Some(newer) = stored.filter(|stored| own.is_none_or(|own| own < from(stored))) {
            self.serve(newer);
        }
        self.preferred.continue_from(&previous.preferred);
        let mut state = self.state();
        (state.failures, state.not_before, state.last_error) = (failures, not_before, last_error);
    }

    /// What is due. Whoever gets it has to [`Self::attend`] to it.
    pub fn begin(&self, now: i64) -> Option<Task> {
        let mut state = self.state();
        if state.activity == Activity::Busy {
            return None;
        }
        // The clock may have been set back since.
        state.not_before = state.not_before.min(now + state.failures.pause(now));
        state.ask_at = state.ask_at.min(now + LATEST_QUESTION);
        let task = self.due(&state, now)?;
        state.activity = Activity::Busy;
        Some(task)
    }

    /// What [`Self::begin`] would begin.
    pub fn next_task(&self, now: i64) -> Option<Task> {
        let state = self.state();
        if state.activity == Activity::Busy { None } else { self.due(&state, now) }
    }

    fn due(&self, state: &State, now: i64) -> Option<Task> {
        let is_due = state.stored.as_ref().is_none_or(|stored| stored.renewal_time() <= now);
        if is_due && state.not_before <= now {
            Some(Task::Order)
        } else if state.stored.as_ref().is_some_and(|stored| self.issuer(stored).is_some())
            && state.ask_at <= now
        {
            Some(Task::AskRenewal)
        } else {
            None
        }
    }

    /// Whether there is a certificate that has not run out. (One of the future is that of a CA whose clock is ahead.)
    pub fn is_served(&self, now: i64) -> bool {
        self.slot.current().is_some_and(|certificate| now <= certificate.validity.until)
    }

    pub fn has_failed(&self) -> bool {
        self.state().failures.count() > 0
    }

    pub async fn attend(&self, task: Task) {
        let _busy = Busy { managed: self, task };
        match task {
            Task::Order => self.obtain().await,
            Task::AskRenewal => self.ask_renewal().await,
        }
    }

    pub fn outlook(&self) -> Outlook {
        let state = self.state();
        let renewal = state.stored.as_ref().map_or(state.not_before, Stored::renewal_time);
        Outlook {
            stored: state.stored.clone(),
            last_error: state.last_error.clone(),
            next_try: renewal.max(state.not_before),
        }
    }

    /// Of the CA that has issued what is served, otherwise of the first.
    pub fn directory(&self) -> &str {
        let state = self.state();
        let issuer = state.stored.as_ref().and_then(|stored| self.issuer(stored));
        issuer.unwrap_or(&self.authorities[0]).ca.directory()
    }

    async fn obtain(&self) {
        let _place = self.place().await;
        let outcome = match ca::lock(&self.common.store, &format!("issue_cert_{}", self.name)).await {
            Ok(_lock) => tokio::time::timeout(self.common.order_timeout, self.try_to_obtain()).await,
            Err(error) => Ok(Err(error)),
        };
        match outcome.unwrap_or(Err(OrderError::TimedOut(self.common.order_timeout))) {
            Ok(()) => {
                let mut state = self.state();
                state.failures = Failures::default();
                state.last_error = None;
                state.not_before = self.next_order(&state);
            }
            Err(error) => self.note_failure(&error),
        }
    }

    /// After a success. A certificate that lives no longer than hours is renewed in time all the same.
    fn next_order(&self, state: &State) -> i64 {
        let lifetime = |stored: &Stored| stored.certificate.validity.until - stored.certificate.validity.from;
        let third = state.stored.as_ref().map_or(0, lifetime) / 3;
        self.now() + state.failures.pause(self.now()).min(third)
    }

    async fn place(&self) -> SemaphorePermit<'_> {
        self.common.places.acquire().await.expect("invariant: the semaphore is never closed")
    }

    fn note_failure(&self, error: &OrderError) {
        let now = self.now();
        let mut state = self.state();
        state.not_before = state.failures.add(now);
        state.last_error = Some(error.to_string());
        let (failures, wait) = (state.failures.count(), state.not_before - now);
        drop(state);
        let ca = self.authorities[0].ca.directory();
        tracing::error!(name = self.name, ca, %error, failures, next_try_in_s = wait, "no certificate was obtained");
    }

    /// Under the lock of the name, so that of several processes only one orders.
    async fn try_to_obtain(&self) -> Result<(), OrderError> {
        let (store, name, issuer_keys) = (self.common.store.clone(), self.name.clone(), self.issuer_keys());
        let newest = tokio::task::spawn_blocking(move || stored::load_newest(&store, &issuer_keys, &name));
        if let Some(stored) = newest.await?
            && stored.renewal_time() > self.now()
        {
            tracing::info!(name = self.name, "loaded a certificate that another process has obtained");
            self.serve(stored);
            return Ok(());
        }
        let end = Instant::now() + self.common.order_timeout;
        let mut refusals = Vec::new();
        for authority in &*self.authorities {
            let ca = authority.ca.directory();
            let (left, is_last) = (end - Instant::now(), refusals.len() + 1 == self.authorities.len());
            // One that hangs leaves the next ones as much as it has had.
            match self.order_from(authority, if is_last { left } else { left / 2 }).await {
                Ok(issued) => return self.keep(issued, &authority.ca).await,
                Err(error) => {
                    if !is_last {
                        tracing::warn!(name = self.name, ca, %error, "no certificate was obtained; the next CA is asked");
                    }
                    refusals.push((ca, error));
                }
            }
        }
        Err(OrderError::of_all(refusals))
    }

    async fn order_from(&self, authority: &Authority, limit: Duration) -> Result<Issued, OrderError> {
        let is_retry = self.has_failed();
        // A CA that does not say when to renew does not take what is replaced either.
        let says_when = self.state().stored.as_ref().is_some_and(|stored| stored.renewal_info.is_some());
        let replaces = if says_when && !is_retry { self.identifier_at(authority) } else { None };
        let order = authority.order(&self.name, &self.common, &self.preferred, is_retry, replaces);
        tokio::time::timeout(limit, order).await.unwrap_or(Err(OrderError::TimedOut(limit)))
    }

    /// Serves it, even if it cannot be stored.
    async fn keep(&self, issued: Issued, ca: &Ca) -> Result<(), OrderError> {
        let (store, issuer_key) = (self.common.store.clone(), ca.issuer_key());
        let (directory, name) = (ca.directory().to_owned(), self.name.clone());
        let chain = (Path::new("from the CA"), issued.chain.as_bytes());
        let certificate = Certificate::from_pem(chain, (Path::new("new key"), issued.key.as_bytes()))?;
        self.serve(Stored {
            certificate: Arc::new(certificate),
            issuer_key: issuer_key.clone(),
            renewal_info: None,
        });
        tracing::info!(name, ca = directory, "obtained a certificate");
        let saved = tokio::task::spawn_blocking(move || {
            stored::save(&store, &issuer_key, &directory, &name, &issued)
        });
        if let Err(error) = saved.await? {
            tracing::error!(name = self.name, %error, "a new certificate is served but not stored; it is lost at the next start");
        }
        Ok(())
    }

    fn serve(&self, stored: Stored) {
        let mut state = self.state();
        self.slot.replace(Arc::clone(&stored.certificate));
        state.ask_at = stored.renewal_info.as_ref().map_or(0, RenewalInfo::ask_at);
        state.stored = Some(stored);
    }

    /// A CA that does not say when to renew leaves the lifetime to count.
    async fn ask_renewal(&self) {
        let _place = self.place().await;
        match self.try_to_ask().await {
            Ok(info) => {
                if let Some(stored) = self.note_renewal_info(info) {
                    self.save_renewal_info(stored).await;
                }
            }
            Err(error) => {
                tracing::debug!(name = self.name, ca = self.directory(), %error, "the CA does not say when to renew");
                self.state().ask_at = self.now() + ARI_RETRY;
            }
        }
    }

    async fn try_to_ask(&self) -> Result<RenewalInfo, OrderError> {
        let unknown = || OrderError::Closed("its certificate has no identifier".to_owned());
        let issuer =
            self.state().stored.as_ref().and_then(|stored| self.issuer(stored)).ok_or_else(unknown)?;
        let identifier = self.identifier_at(issuer).ok_or_else(unknown)?;
        let (response, after) = issuer.ca.account().await?.renewal_info(&identifier).await?;
        let window = response.suggested_window;
        let window = Window { start: window.start, end: window.end };
        let random = u64::from_le_bytes(crypto::random());
        let after = i64::try_from(after.as_secs()).unwrap_or(i64::MAX);
        let state = self.state();
        let before = state.stored.as_ref().and_then(|stored| stored.renewal_info.as_ref());
        Ok(RenewalInfo::new(window, before, after, self.now(), random))
    }

    fn note_renewal_info(&self, info: RenewalInfo) -> Option<Stored> {
        let mut state = self.state();
        state.ask_at = info.ask_at();
        let stored = state.stored.as_mut()?;
        stored.renewal_info = Some(info);
        Some(stored.clone())
    }

    async fn save_renewal_info(&self, stored: Stored) {
        let (store, name) = (self.common.store.clone(), self.name.clone());
        let saved =
            tokio::task::spawn_blocking(move || stored::save_renewal_info(&store, &stored, &name)).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!(name = self.name, %error, "when to renew was not stored");
        }
    }

    /// Of what is served, if it is of this CA.
    fn identifier_at(&self, authority: &Authority) -> Option<CertificateIdentifier<'static>> {
        let state = self.state();
        let stored = state.stored.as_ref().filter(|stored| authority.has_issued(stored))?;
        let leaf = stored.certificate.certified.cert.first()?;
        CertificateIdentifier::try_from(leaf).ok().map(CertificateIdentifier::into_owned)
    }

    /// `None`: it is of a CA that is not asked any more.
    fn issuer(&self, stored: &Stored) -> Option<&Authority> {
        self.authorities.iter().find(|authority| authority.has_issued(stored))
    }

    /// Of those whose stored certificates are served.
    fn issuer_keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self.authorities.iter().map(|authority| authority.ca.issuer_key()).collect();
        if self.authorities.iter().any(|authority| authority.acme.directory.is_none()) {
            keys.push(ZEROSSL.to_owned());
        }
        keys
    }

    fn now(&self) -> i64 {
        clock::unix_seconds(&*self.common.clock)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
