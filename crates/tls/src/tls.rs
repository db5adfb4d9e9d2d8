//! All certificates and keys of one configuration.

use crate::acme::{Limit, Manager, Rules};
use crate::catalog::{ByHello, Catalog, Certificates, Otherwise};
use crate::client_auth::{self, ClientAuthClass};
use crate::clock::Clock;
use crate::local_ca::{LocalAuthority, LocalCa, OnDemand, Profile};
use crate::manual::ManualCertificates;
use crate::on_demand::OnDemandGate;
use crate::options::{CertificateFiles, CertificateSource, Internal, Issuance, Options, Site, Tickets};
use crate::permission::Permission;
use crate::sites::{DefaultNames, Entry, SiteTable, normal_name};
use crate::slot::Slot;
use crate::store::Store;
use crate::tickets::TicketKeys;
use crate::{CertificateState, Error, SiteErrors, SystemClock, server_config, state};
use rustls::server::ResolvesServerCert;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often files are looked at.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// So often within its lifetime a certificate of the local CA is looked at: twice before it ends after it is due.
const LOOKS_PER_LIFETIME: u32 = 6;

/// So often a local CA that cannot be renewed is tried, however many handshakes need it.
const OUTLIVED_PAUSE: Duration = Duration::from_secs(5);

/// Cheap to clone. What is served is renewed as long as [`Self::maintain`] runs.
#[derive(Debug, Clone)]
pub struct Tls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    default_names: DefaultNames,
    renew_interval: Duration,
    local_ca: Arc<LocalCa>,
    acme: Manager,
    /// Of names on demand.
    rules: Rules,
    /// `None`: no resumption.
    tickets: Option<TicketKeys>,
    served: Mutex<Served>,
    /// All of them that are not made on demand.
    shared: Arc<Catalog>,
}

/// Every certificate once, however many sites and addresses it is served at. An issuer adds a field here.
#[derive(Debug, Default)]
struct Served {
    manual: Vec<ManualCertificates>,
    internal: Vec<InternalCertificate>,
}

/// A certificate of the local CA.
#[derive(Debug)]
struct InternalCertificate {
    name: String,
    profile: Profile,
    slot: Arc<Slot>,
}

impl Tls {
    /// # Errors
    /// Only of the options; a storage that cannot be used is an error where it is needed.
    pub fn open(options: Options) -> Result<Self, Error> {
        Self::open_with_clock(options, Arc::new(SystemClock))
    }

    /// As [`Self::open`], for tests.
    pub fn open_with_clock(options: Options, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let store = match &options.redis {
            Some(redis) => Store::of_redis(redis, options.storage)?,
            None => Store::new(options.storage),
        };
        let tickets = match options.tickets {
            Tickets::Stored => Some(TicketKeys::open(store.clone(), Arc::clone(&clock))),
            Tickets::Disabled => None,
        };
        let normal = |name: Option<String>| name.as_deref().map(normal_name).transpose();
        let default_names =
            DefaultNames { unnamed: normal(options.default_sni)?, unknown: normal(options.fallback_sni)? };
        let ask = options.on_demand.ask.as_deref();
        let permission =
            ask.map(|url| Permission::open(url, Arc::clone(&clock)).map(Arc::new)).transpose()?;
        let limit = options.on_demand.limit.map(|limit| Arc::new(Limit::new(limit)));
        let fallback = Otherwise::Fallback(default_names.unknown.clone());
        Ok(Self(Arc::new(Inner {
            default_names,
            rules: Rules { permission, limit },
            renew_interval: options.renew_interval,
            acme: Manager::new(store.clone(), Arc::clone(&clock)),
            local_ca: Arc::new(LocalCa::new(store, options.authority, Arc::clone(&clock))),
            tickets,
            served: Mutex::default(),
            shared: Catalog::new(fallback, Arc::clone(&clock)),
            clock,
        })))
    }

    /// What one listening address serves. Blocks: it reads files, and makes what the local CA has to make.
    ///
    /// # Errors
    /// All that is wrong with any site.
    pub fn site_table(&self, sites: &[Site]) -> Result<Arc<SiteTable>, SiteErrors> {
        let mut table = SiteTable::new(
            self.0.default_names.clone(),
            Arc::clone(self.0.acme.challenges()),
            Arc::clone(&self.0.clock),
        );
        let mut owners = HashMap::new();
        let mut errors = Vec::new();
        for (index, site) in sites.iter().enumerate() {
            let added =
                new_names(site, &mut owners).and_then(|names| self.0.add_site(&mut table, site, names));
            if let Err(error) = added {
                errors.push((index, error));
            }
        }
        self.0.share(&self.0.served());
        if errors.is_empty() { Ok(Arc::new(table)) } else { Err(SiteErrors(errors)) }
    }

    /// The file of the local CA's root certificate, for [`TrustStores`](crate::TrustStores). Makes the CA if there is none.
    pub fn local_root(&self) -> Result<PathBuf, Error> {
        self.0.local_ca.root_path()
    }

    /// As [`Self::local_root`], but `None` if there is no CA. Nothing is made or renewed.
    pub fn stored_local_root(&self) -> Result<Option<PathBuf>, Error> {
        self.0.local_ca.stored_root_path()
    }

    /// The local CA's own certificates; `None` if there is no CA. Nothing is made or renewed. Blocks.
    pub fn stored_local_authority(&self) -> Option<LocalAuthority> {
        self.0.local_ca.stored()
    }

    /// Whether certificates of public CAs are served, so that [`Self::http_challenge`] has to be asked.
    pub fn has_acme(&self) -> bool {
        self.0.acme.has_names()
    }

    /// The body of the response to `GET http://HOST/.well-known/acme-challenge/TOKEN`, plain text, if a public CA is to
    /// find one there now (RFC 8555 §8.3). `host`: without port. To be asked before anything else is done with such a
    /// request, redirects included. It may read a small file.
    pub fn http_challenge(&self, host: &str, token: &str) -> Option<String> {
        self.0.acme.challenges().http_response(&normal_name(host).ok()?, token)
    }

    /// All that are served, and those that are still to be obtained; of names on demand some, and none of the local CA.
    pub fn certificates(&self) -> Vec<CertificateState> {
        let mut states = self.0.acme.states();
        let served = self.0.served();
        let manual = served.manual.iter().flat_map(ManualCertificates::current);
        states.extend(manual.map(|certificate| state::of_files(&certificate)));
        let internal = served.internal.iter();
        states.extend(internal.map(|internal| state::of_internal(&internal.name, &internal.slot.current())));
        states
    }

    /// For a new configuration, before [`Self::maintain`]: certificates that could not be obtained under the previous one
    /// are tried again when they were to be, and not at once, where nothing about them has changed.
    pub fn continue_from(&self, previous: &Self) {
        self.0.acme.continue_from(&previous.0.acme);
    }

    /// Reloads files that have changed, and renews what is due but of public CAs. Blocks; failures are logged and tried
    /// again the next time.
    pub fn refresh(&self) {
        self.0.reload();
        self.0.renew();
    }

    /// Does what [`Self::refresh`] does, the one every 10 seconds and the other every
    /// [`Options::renew_interval`], on tokio's threads for blocking work, and obtains and renews certificates of public
    /// CAs in the background, until it is dropped.
    pub async fn maintain(&self) {
        let reload = repeat(RELOAD_INTERVAL, || self.in_background(Inner::reload));
        let renew = repeat(self.0.renew_interval(), || self.in_background(Inner::renew));
        tokio::join!(reload, renew, self.renew_when_outlived(), self.0.acme.maintain());
    }

    /// What is due at public CAs, to its end.
    #[cfg(test)]
    pub(crate) async fn tend(&self) {
        self.0.acme.tend().await;
    }

    /// After a machine has slept, its clock was set, or renewals have failed for days.
    async fn renew_when_outlived(&self) {
        loop {
            self.0.local_ca.is_outlived().await;
            self.in_background(Inner::renew).await;
            tokio::time::sleep(OUTLIVED_PAUSE).await;
        }
    }

    async fn in_background(&self, work: fn(&Inner)) {
        let tls = self.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || work(&tls.0)).await {
            tracing::error!(%error, "the maintenance of certificates failed");
        }
    }
}

async fn repeat<F: Future<Output = ()>>(pause: Duration, work: impl Fn() -> F) {
    loop {
        tokio::time::sleep(pause).await;
        work().await;
    }
}

/// The names of a site that no site before it has. One that is served alike may have them too, as the sites of several
/// paths.
fn new_names<'a>(
    site: &'a Site,
    owners: &mut HashMap<Option<String>, &'a Site>,
) -> Result<Vec<Option<String>>, Error> {
    let mut names =
        site.names.iter().map(|name| normal_name(name).map(Some)).collect::<Result<Vec<_>, _>>()?;
    if names.is_empty() {
        names.push(None);
    }
    let mut new = Vec::new();
    for name in names {
        match owners.get(&name) {
            None => {
                owners.insert(name.clone(), site);
                new.push(name);
            }
            Some(owner) if owner.is_served_like(site) => {}
            Some(_) => return Err(Error::DuplicateName { name: name.unwrap_or_default() }),
        }
    }
    Ok(new)
}

impl Inner {
    /// `names`: normal; `None` for all that no other site has.
    fn add_site(&self, table: &mut SiteTable, site: &Site, names: Vec<Option<String>>) -> Result<(), Error> {
        match &site.certificate {
            CertificateSource::Files(files) => {
                let certificates = self.manual(files, &names)?;
                insert_all(table, names, &self.entry_by_name(site, certificates)?);
            }
            CertificateSource::Shared => {
                insert_all(table, names, &self.entry_by_name(site, Arc::clone(&self.shared) as _)?);
            }
            CertificateSource::Internal(internal) => self.add_internal(table, site, internal, names)?,
            CertificateSource::Acme(acme, Issuance::OnDemand) => {
                let certificates = self.acme.manage_on_demand(acme, &self.rules)?;
                let entry = self.entry_by_name(site, Arc::clone(&certificates) as _)?;
                insert_all(table, names, &gated(&entry, Some(OnDemandGate::Acme(certificates))));
            }
            CertificateSource::Acme(acme, Issuance::AtStart) => {
                for name in names {
                    let slot = self.acme.manage(name.as_deref().ok_or(Error::NoName)?, acme)?;
                    let entry = self.entry(site, Arc::clone(&slot) as _)?;
                    table.insert(name, Arc::new(Entry { acme: Some(slot), ..entry }));
                }
            }
        }
        Ok(())
    }

    fn add_internal(
        &self,
        table: &mut SiteTable,
        site: &Site,
        internal: &Internal,
        names: Vec<Option<String>>,
    ) -> Result<(), Error> {
        let profile = Profile::from(internal);
        let is_on_demand = |name: Option<&str>| {
            internal.issuance == Issuance::OnDemand || name.is_some_and(OnDemand::is_needed_for)
        };
        let (on_demand, at_start): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| is_on_demand(name.as_deref()));
        if !on_demand.is_empty() {
            let certificates = OnDemand::new(Arc::clone(&self.local_ca), profile)?;
            let entry = self.entry_by_name(site, Arc::new(certificates))?;
            let permission =
                self.rules.permission.clone().filter(|_| internal.issuance == Issuance::OnDemand);
            insert_all(table, on_demand, &gated(&entry, permission.map(OnDemandGate::Local)));
        }
        for name in at_start {
            let slot = self.internal(name.as_deref().ok_or(Error::NoName)?, profile)?;
            table.insert(name, Arc::new(self.entry(site, slot)?));
        }
        Ok(())
    }

    fn entry_by_name(&self, site: &Site, certificates: Arc<dyn Certificates>) -> Result<Arc<Entry>, Error> {
        let entry = self.entry(site, Arc::new(ByHello(Arc::clone(&certificates))))?;
        Ok(Arc::new(Entry { certificates: Some(certificates), ..entry }))
    }

    fn entry(&self, site: &Site, resolver: Arc<dyn ResolvesServerCert>) -> Result<Entry, Error> {
        let verify = |auth| client_auth::verification(auth, || self.local_ca.root_path());
        let verification = site.client_auth.as_ref().map(verify).transpose()?;
        let class = verification.as_ref().map_or(ClientAuthClass::NONE, |verification| verification.class);
        let ticketer = self.tickets.as_ref().map(|keys| keys.ticketer(class));
        let config =
            server_config::build(&site.policy, verification.as_ref(), ticketer, resolver, &self.clock)?;
        let verifier = verification.map(|verification| verification.verifier);
        Ok(Entry { config, class, verifier, certificates: None, acme: None, on_demand: None })
    }

    fn manual(
        &self,
        files: &CertificateFiles,
        names: &[Option<String>],
    ) -> Result<Arc<dyn Certificates>, Error> {
        let mut served = self.served();
        if let Some(known) = served.manual.iter().find(|known| known.files() == files) {
            return Ok(Arc::clone(known.catalog()) as _);
        }
        let manual = ManualCertificates::load(files.clone(), &self.clock)?;
        for name in names.iter().flatten() {
            if !manual.current().iter().any(|certificate| certificate.covers(name)) {
                tracing::warn!(name, "none of the certificates of this site is for its name");
            }
        }
        let catalog = Arc::clone(manual.catalog());
        served.manual.push(manual);
        Ok(catalog)
    }

    fn internal(&self, name: &str, profile: Profile) -> Result<Arc<Slot>, Error> {
        let mut served = self.served();
        let is_known = |known: &&InternalCertificate| known.name == name && known.profile == profile;
        if let Some(known) = served.internal.iter().find(is_known) {
            return Ok(Arc::clone(&known.slot));
        }
        let slot = Slot::new(Arc::new(self.local_ca.certificate(name, profile)?));
        served.internal.push(InternalCertificate { name: name.to_owned(), profile, slot: Arc::clone(&slot) });
        Ok(slot)
    }

    fn reload(&self) {
        if let Some(tickets) = &self.tickets {
            tickets.rotate();
        }
        let mut served = self.served();
        served.manual.iter_mut().for_each(ManualCertificates::reload);
        self.share(&served);
    }

    fn renew(&self) {
        self.local_ca.refresh();
        let now = crate::clock::unix_seconds(&*self.clock);
        let served = self.served();
        served.internal.iter().for_each(|internal| internal.renew_if_due(&self.local_ca, now));
        self.share(&served);
    }

    /// Where a certificate lives shorter than the interval that is configured, that would be too long.
    fn renew_interval(&self) -> Duration {
        let lifetimes = self.served().internal.iter().map(|internal| internal.profile.lifetime).min();
        let shortest = lifetimes.and_then(|lifetime| Duration::try_from(lifetime).ok());
        let needed = shortest.map_or(Duration::MAX, |lifetime| lifetime / LOOKS_PER_LIFETIME);
        self.renew_interval.min(needed).max(Duration::from_secs(1))
    }

    fn share(&self, served: &Served) {
        let manual = served.manual.iter().flat_map(ManualCertificates::current);
        let internal = served.internal.iter().map(|internal| internal.slot.current());
        self.shared.replace(manual.chain(internal).chain(self.acme.certificates()).collect());
    }

    fn served(&self) -> MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gated(entry: &Entry, on_demand: Option<OnDemandGate>) -> Arc<Entry> {
    Arc::new(Entry { on_demand, ..entry.clone() })
}

fn insert_all(table: &mut SiteTable, names: Vec<Option<String>>, entry: &Arc<Entry>) {
    names.into_iter().for_each(|name| table.insert(name, Arc::clone(entry)));
}

impl InternalCertificate {
    fn renew_if_due(&self, local_ca: &LocalCa, now: i64) {
        if !self.slot.current().validity.is_due(now) {
            return;
        }
        let name = &self.name;
        match local_ca.certificate(name, self.profile) {
            Ok(certificate) => {
                tracing::info!(name, "renewed a certificate of the local CA");
                self.slot.replace(Arc::new(certificate));
            }
            Err(error) => tracing::error!(name, %error, "cannot renew a certificate of the local CA"),
        }
    }
}
