//! All names with certificates of public CAs.

use super::account;
use super::authority::Authority;
use super::ca::Ca;
use super::challenges::Challenges;
use super::dns::{self, Turns};
use super::managed::{Common, Managed, Outlook, Task};
use super::on_demand::{OnDemandNames, Rules};
use super::options::{Acme, DnsChallenge, DnsProvider};
use super::slot::AcmeSlot;
use crate::certificate::Certificate;
use crate::clock::{self, Clock};
use crate::store::Store;
use crate::{CertificateState, Error, state};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

/// Names at a time for which CAs are talked to. Most of an order's time is waiting.
const PLACES: usize = 20;
/// Of a whole try, whatever hangs.
const ORDER_TIMEOUT: Duration = Duration::from_secs(20 * 60);
/// The same of names on demand, whose number is up to clients: they take no place of the others.
const PLACES_ON_DEMAND: usize = 8;
/// As Caddy's (certmagic's handshake.go): handshakes wait for it.
const ORDER_TIMEOUT_ON_DEMAND: Duration = Duration::from_secs(180);
/// How often it is looked whether something is due.
const INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Manager {
    common: Arc<Common>,
    /// Of names on demand.
    on_demand: Arc<Common>,
    known: Mutex<Known>,
    /// A name has come.
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Known {
    cas: Vec<Arc<Ca>>,
    /// Who sets records, and can do so as far as can be seen.
    checked: Vec<DnsProvider>,
    names: BTreeMap<String, Arc<Managed>>,
    on_demand: Vec<Arc<OnDemandNames>>,
}

impl Manager {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let challenges = Challenges::new(store.clone(), Arc::clone(&clock));
        let dns_turns = Arc::<Turns>::default();
        let common = |places, order_timeout| {
            Arc::new(Common {
                store: store.clone(),
                clock: Arc::clone(&clock),
                challenges: Arc::clone(&challenges),
                dns_turns: Arc::clone(&dns_turns),
                places: Semaphore::new(places),
                order_timeout,
            })
        };
        Self {
            common: common(PLACES, ORDER_TIMEOUT),
            on_demand: common(PLACES_ON_DEMAND, ORDER_TIMEOUT_ON_DEMAND),
            known: Mutex::default(),
            changed: Arc::default(),
        }
    }

    pub fn challenges(&self) -> &Arc<Challenges> {
        &self.common.challenges
    }

    /// From now on there is to be a certificate for this name, of the first of these CAs that issues one; that of the
    /// storage is served at once. Blocks: it reads files.
    ///
    /// # Errors
    /// Only what no further try would mend.
    pub fn manage(&self, name: &str, cas: &[Acme]) -> Result<Arc<AcmeSlot>, Error> {
        let mut known = self.known();
        known.check(Some(name), cas)?;
        if let Some(managed) = known.names.get(name) {
            if !Authority::are_of(&managed.authorities, cas) {
                return Err(Error::Acme {
                    reason: format!("two sites want a certificate for {name:?} with different options"),
                });
            }
            return Ok(Arc::clone(&managed.slot));
        }
        let authorities = known.authorities(&self.common, cas);
        for ca in authorities.iter().flat_map(Authority::cas) {
            self.common.challenges.expect(name, ca.issuer_key());
        }
        let managed = Managed::load(name, authorities, Arc::clone(&self.common));
        let slot = Arc::clone(&managed.slot);
        known.names.insert(name.to_owned(), managed);
        self.changed.notify_one();
        Ok(slot)
    }

    /// Certificates with these options are ordered when handshakes ask for their names.
    ///
    /// # Errors
    /// As [`Self::manage`].
    pub fn manage_on_demand(&self, cas: &[Acme], rules: &Rules) -> Result<Arc<OnDemandNames>, Error> {
        let mut known = self.known();
        known.check(None, cas)?;
        if let Some(names) = known.on_demand.iter().find(|names| Authority::are_of(&names.authorities, cas)) {
            return Ok(Arc::clone(names));
        }
        let authorities = known.authorities(&self.common, cas);
        for ca in authorities.iter().flat_map(Authority::cas) {
            self.common.challenges.expect_any(ca.issuer_key());
        }
        let (common, changed) = (Arc::clone(&self.on_demand), Arc::clone(&self.changed));
        let names = OnDemandNames::new(authorities, common, rules.clone(), changed);
        known.on_demand.push(Arc::clone(&names));
        Ok(names)
    }

    /// Takes over when what failed is to be tried again, for the names whose options are the same: a new configuration is
    /// no reason to ask a CA more often.
    pub fn continue_from(&self, previous: &Self) {
        // One after the other, so that no two locks are held.
        let before = previous.known().names.clone();
        for (name, managed) in &self.known().names {
            if let Some(before) = before.get(name).filter(|before| before.authorities == managed.authorities)
            {
                managed.continue_from(before);
            }
        }
        let before = previous.known().on_demand.clone();
        let own = self.known().on_demand.clone();
        for names in own {
            if let Some(before) = before.iter().find(|before| before.authorities == names.authorities) {
                names.continue_from(before);
            }
        }
    }

    /// Obtains and renews until it is dropped; orders that are under way end with it.
    pub async fn maintain(&self) {
        let mut tasks = JoinSet::new();
        loop {
            self.begin(&mut tasks);
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = self.changed.notified() => {}
                Some(ended) = tasks.join_next() => report(ended),
            }
        }
    }

    /// One look at all names, and the end of what was due. For tests.
    #[cfg(test)]
    pub async fn tend(&self) {
        let mut tasks = JoinSet::new();
        self.begin(&mut tasks);
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
    }

    fn begin(&self, tasks: &mut JoinSet<()>) {
        for (managed, task) in self.due() {
            tasks.spawn(async move { managed.attend(task).await });
        }
        let on_demand = self.known().on_demand.clone();
        for begun in on_demand.iter().flat_map(OnDemandNames::to_attend) {
            tasks.spawn(begun.attend());
        }
    }

    fn due(&self) -> Vec<(Arc<Managed>, Task)> {
        let now = clock::unix_seconds(&*self.common.clock);
        let known = self.known();
        let due = known.names.values().filter_map(|managed| Some((Arc::clone(managed), managed.begin(now)?)));
        due.collect()
    }

    /// Whether there is anything to obtain or renew.
    pub fn has_names(&self) -> bool {
        let known = self.known();
        !(known.names.is_empty() && known.on_demand.is_empty())
    }

    /// Those that are served.
    pub fn certificates(&self) -> Vec<Arc<Certificate>> {
        self.known().names.values().filter_map(|managed| managed.slot.current()).collect()
    }

    pub fn states(&self) -> Vec<CertificateState> {
        let known = self.known();
        let on_demand: Vec<_> = known.on_demand.iter().flat_map(|names| names.listed()).collect();
        let states = known.names.values().chain(&on_demand).map(|managed| {
            let Outlook { stored, last_error, next_try } = managed.outlook();
            let certificate = stored.as_ref().map(|stored| &*stored.certificate);
            state::of_acme(
                managed.name.clone(),
                managed.directory().to_owned(),
                certificate,
                last_error,
                next_try,
            )
        });
        states.collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// `name`: `None` for names on demand.
    fn check(&mut self, name: Option<&str>, cas: &[Acme]) -> Result<(), Error> {
        if cas.is_empty() {
            return Err(Error::Acme { reason: "no CA is named".to_owned() });
        }
        cas.iter().try_for_each(|acme| self.check_dns(acme))?;
        // That one of several cannot do it is seen when it is asked.
        let is_any = cas.iter().any(|acme| check(name, acme).is_ok());
        cas.iter().filter(|_| !is_any).try_for_each(|acme| check(name, acme))
    }

    fn authorities(&mut self, common: &Common, cas: &[Acme]) -> Arc<[Authority]> {
        let authority = |acme: &Acme| Authority {
            ca: self.ca(common, acme.directory(), acme),
            test_ca: acme.test_directory().map(|url| self.ca(common, url, acme)),
            acme: acme.clone(),
        };
        cas.iter().map(authority).collect()
    }

    /// Each provider once: that takes a while.
    fn check_dns(&mut self, acme: &Acme) -> Result<(), Error> {
        let Some(DnsChallenge { provider, .. }) = &acme.dns else { return Ok(()) };
        if !self.checked.contains(provider) {
            dns::check(provider).map_err(|error| Error::Acme { reason: error.to_string() })?;
            self.checked.push(provider.clone());
        }
        Ok(())
    }

    fn ca(&mut self, common: &Common, directory: &str, acme: &Acme) -> Arc<Ca> {
        if let Some(known) = self.cas.iter().find(|ca| ca.is_for(directory, acme)) {
            return Arc::clone(known);
        }
        let ca = Arc::new(Ca::new(common.store.clone(), Arc::clone(&common.clock), directory, acme));
        self.cas.push(Arc::clone(&ca));
        ca
    }
}

/// `name`: `None` for names on demand, of which none is a wildcard.
fn check(name: Option<&str>, acme: &Acme) -> Result<(), Error> {
    let fails = |reason: String| Err(Error::Acme { reason });
    if let Some(name) = name
        && name.starts_with("*.")
        && acme.dns.is_none()
    {
        return fails(format!("{name:?} can be certified by the DNS challenge only, which is not set up"));
    }
    if acme.challenges.is_empty() && acme.dns.is_none() {
        return fails("all challenges are disabled".to_owned());
    }
    account::check(acme).map_err(|error| Error::Acme { reason: error.to_string() })
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the task of a certificate died; it is tried again");
    }
}
