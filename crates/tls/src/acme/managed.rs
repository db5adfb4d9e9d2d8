//! One name: what it is served with, and what is to be done about it.

use super::ca::{self, Ca};
use super::challenges::Challenges;
use super::dns::Turns;
use super::error::OrderError;
use super::options::{Acme, ChallengeKind};
use super::order::{self, Proof, Wish};
use super::schedule::{ARI_RETRY, Failures, LATEST_QUESTION, RenewalInfo, Window};
use super::slot::AcmeSlot;
use super::stored::{self, Issued, Stored};
use crate::certificate::Certificate;
use crate::clock::{self, Clock};
use crate::crypto;
use crate::store::Store;
use instant_acme::CertificateIdentifier;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

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
    pub acme: Acme,
    pub slot: Arc<AcmeSlot>,
    ca: Arc<Ca>,
    test_ca: Option<Arc<Ca>>,
    common: Arc<Common>,
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
    /// What has worked last, or has not failed.
    preferred: Option<ChallengeKind>,
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
    pub fn load(
        name: &str,
        acme: &Acme,
        ca: Arc<Ca>,
        test_ca: Option<Arc<Ca>>,
        common: Arc<Common>,
    ) -> Arc<Self> {
        let managed = Self {
            name: name.to_owned(),
            acme: acme.clone(),
            slot: Arc::default(),
            ca,
            test_ca,
            common,
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
        let (failures, not_before, last_error, preferred, stored) = {
            let before = previous.state();
            let error = before.last_error.clone();
            (before.failures, before.not_before, error, before.preferred, before.stored.clone())
        };
        let until = |stored: &Stored| stored.certificate.validity.until;
        let own = self.state().stored.as_ref().map(until);
        if let Some(newer) = stored.filter(|stored| own.is_none_or(|own| own < until(stored))) {
            self.serve(newer);
        }
        let mut state = self.state();
        (state.failures, state.not_before) = (failures, not_before);
        (state.last_error, state.preferred) = (last_error, preferred);
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
        } else if state.stored.as_ref().is_some_and(|stored| self.is_of_ca(stored)) && state.ask_at <= now {
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

    pub fn directory(&self) -> &str {
        self.ca.directory()
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
        tracing::error!(name = self.name, ca = self.ca.directory(), %error, failures, next_try_in_s = wait, "no certificate was obtained");
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
        let failures = self.state().failures.count();
        if failures > 0
            && let Some(test_ca) = &self.test_ca
        {
            // What fails here does not use up the limits of the CA itself.
            self.order_from(test_ca, None).await?;
            tracing::info!(name = self.name, ca = test_ca.directory(), "the order succeeded at the test CA");
        }
        let replaces = if failures == 0 { self.identifier() } else { None };
        let issued = self.order_from(&self.ca, replaces).await?;
        self.keep(issued).await
    }

    async fn order_from(
        &self,
        ca: &Ca,
        replaces: Option<CertificateIdentifier<'static>>,
    ) -> Result<Issued, OrderError> {
        let profile = self.acme.profile.as_deref();
        let wish = Wish { name: &self.name, key_type: self.acme.key_type, profile, replaces };
        let mut last = None;
        for proof in self.proofs()? {
            match order::place(ca, &self.common.challenges, &wish, proof).await {
                Ok(issued) => {
                    if let Proof::Server(kind) = proof {
                        self.state().preferred = Some(kind);
                    }
                    return Ok(issued);
                }
                Err(error) if error.is_of_challenge() => {
                    tracing::warn!(name = self.name, ca = ca.directory(), %error, "a challenge failed");
                    self.state().preferred = None;
                    last = Some(error);
                }
                Err(error @ OrderError::NoChallenge { .. }) => last = Some(error),
                Err(error) => {
                    if error.is_of_account() {
                        ca.forget_account().await?;
                    }
                    return Err(error);
                }
            }
        }
        Err(last.unwrap_or(OrderError::NoChallenge { offered: "some".to_owned() }))
    }

    /// In the order in which they are tried: what has worked first, otherwise any, so that one that the network does not
    /// let through is not always the first.
    fn proofs(&self) -> Result<Vec<Proof<'_>>, OrderError> {
        if let Some(dns) = &self.acme.dns {
            return Ok(vec![Proof::Dns(dns, &self.common.dns_turns)]);
        }
        if self.name.starts_with("*.") {
            return Err(OrderError::Wildcard);
        }
        let mut kinds = self.acme.challenges.clone();
        if self.name.parse::<IpAddr>().is_ok() {
            // The other one would come with the reverse name of the address (RFC 8738 §6), which no site has.
            kinds.retain(|kind| *kind == ChallengeKind::Http);
        }
        if kinds.is_empty() {
            return Err(OrderError::Address);
        }
        if crypto::random::<1>()[0].is_multiple_of(2) {
            kinds.reverse();
        }
        let preferred = self.state().preferred;
        kinds.sort_by_key(|kind| Some(*kind) != preferred);
        Ok(kinds.into_iter().map(Proof::Server).collect())
    }

    /// Serves it, even if it cannot be stored.
    async fn keep(&self, issued: Issued) -> Result<(), OrderError> {
        let (store, issuer_key) = (self.common.store.clone(), self.ca.issuer_key());
        let (directory, name) = (self.ca.directory().to_owned(), self.name.clone());
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
                tracing::debug!(name = self.name, ca = self.ca.directory(), %error, "the CA does not say when to renew");
                self.state().ask_at = self.now() + ARI_RETRY;
            }
        }
    }

    async fn try_to_ask(&self) -> Result<RenewalInfo, OrderError> {
        let unknown = || OrderError::Closed("its certificate has no identifier".to_owned());
        let identifier = self.identifier().ok_or_else(unknown)?;
        let (response, after) = self.ca.account().await?.renewal_info(&identifier).await?;
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
    fn identifier(&self) -> Option<CertificateIdentifier<'static>> {
        let state = self.state();
        let stored = state.stored.as_ref().filter(|stored| self.is_of_ca(stored))?;
        let leaf = stored.certificate.certified.cert.first()?;
        CertificateIdentifier::try_from(leaf).ok().map(CertificateIdentifier::into_owned)
    }

    fn is_of_ca(&self, stored: &Stored) -> bool {
        stored.issuer_key == self.ca.issuer_key()
    }

    fn issuer_keys(&self) -> Vec<String> {
        let mut issuer_keys = vec![self.ca.issuer_key()];
        if self.acme.directory.is_none() {
            issuer_keys.push(ZEROSSL.to_owned());
        }
        issuer_keys
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
