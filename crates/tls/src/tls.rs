//! All certificates and keys of one configuration.

use crate::certificate::Certificate;
use crate::client_auth::{self, ClientAuthClass};
use crate::clock::Clock;
use crate::local_ca::{LocalCa, Subdomains};
use crate::manual::{ManualCertificate, Paths};
use crate::options::{CertificateSource, Options, Site, Tickets};
use crate::sites::{Entry, SiteTable, normal_name};
use crate::slot::Slot;
use crate::store::Store;
use crate::tickets::TicketKeys;
use crate::{Error, SiteErrors, SystemClock, server_config};
use rustls::server::ResolvesServerCert;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often files and lifetimes are looked at. The shortest lifetime is 12 hours.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(30);

/// Cheap to clone. What is served is renewed as long as [`Self::maintain`] runs.
#[derive(Debug, Clone)]
pub struct Tls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    default_sni: Option<String>,
    local_ca: Arc<LocalCa>,
    /// `None`: no resumption.
    tickets: Option<TicketKeys>,
    served: Mutex<Served>,
}

/// Every certificate once, however many sites and addresses it is served at. An issuer adds a field here.
#[derive(Debug, Default)]
struct Served {
    manual: Vec<Arc<ManualCertificate>>,
    internal: HashMap<String, Internal>,
}

/// A certificate of the local CA.
#[derive(Debug)]
struct Internal {
    slot: Arc<Slot>,
    certificate: Certificate,
}

impl Tls {
    /// # Errors
    /// Only of the options; a storage that cannot be used is an error where it is needed.
    pub fn open(options: Options) -> Result<Self, Error> {
        Self::open_with_clock(options, Arc::new(SystemClock))
    }

    /// As [`Self::open`], for tests.
    pub fn open_with_clock(options: Options, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let store = Store::new(options.storage);
        let tickets = match options.tickets {
            Tickets::Stored => Some(TicketKeys::open(store.clone(), Arc::clone(&clock))),
            Tickets::Disabled => None,
        };
        let default_sni = options.default_sni.as_deref().map(normal_name).transpose()?;
        let local_ca = Arc::new(LocalCa::new(store, Arc::clone(&clock)));
        Ok(Self(Arc::new(Inner { clock, default_sni, local_ca, tickets, served: Mutex::default() })))
    }

    /// What one listening address serves. Blocks: it reads files, and makes what the local CA has to make.
    ///
    /// # Errors
    /// All that is wrong with any site.
    pub fn site_table(&self, sites: &[Site]) -> Result<Arc<SiteTable>, SiteErrors> {
        let mut table = SiteTable::new(self.0.default_sni.clone(), Arc::clone(&self.0.clock));
        let mut owners = HashMap::new();
        let mut errors = Vec::new();
        for (index, site) in sites.iter().enumerate() {
            let added =
                new_names(site, &mut owners).and_then(|names| self.0.add_site(&mut table, site, names));
            if let Err(error) = added {
                errors.push((index, error));
            }
        }
        if errors.is_empty() { Ok(Arc::new(table)) } else { Err(SiteErrors(errors)) }
    }

    /// The file of the local CA's root certificate, for [`TrustStores`](crate::TrustStores). Makes the CA if there is none.
    pub fn local_root(&self) -> Result<PathBuf, Error> {
        self.0.local_ca.root_path()
    }

    /// Renews and reloads what is due. Blocks; failures are logged and tried again the next time.
    pub fn refresh(&self) {
        self.0.refresh();
    }

    /// [`Self::refresh`] every 30 seconds, on tokio's threads for blocking work, until it is dropped.
    pub async fn maintain(&self) {
        loop {
            tokio::time::sleep(MAINTENANCE_INTERVAL).await;
            let tls = self.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || tls.refresh()).await {
                tracing::error!(%error, "the maintenance of certificates failed");
            }
        }
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
            CertificateSource::Files { certificate, key } => {
                let paths = Paths { certificate: certificate.clone(), key: key.clone() };
                let entry = self.entry(site, self.manual(paths, &names)?)?;
                names.into_iter().for_each(|name| table.insert(name, Arc::clone(&entry)));
            }
            CertificateSource::Internal => {
                for name in names {
                    let certificates = self.internal(name.as_deref().ok_or(Error::NoName)?)?;
                    table.insert(name, self.entry(site, certificates)?);
                }
            }
        }
        Ok(())
    }

    fn entry(&self, site: &Site, certificates: Arc<dyn ResolvesServerCert>) -> Result<Arc<Entry>, Error> {
        let verification = site.client_auth.as_ref().map(client_auth::verification).transpose()?;
        let class = verification.as_ref().map_or(ClientAuthClass::NONE, |verification| verification.class);
        let ticketer = self.tickets.as_ref().map(|keys| keys.ticketer(class));
        let config =
            server_config::build(&site.policy, verification.as_ref(), ticketer, certificates, &self.clock)?;
        Ok(Arc::new(Entry {
            config,
            class,
            verifier: verification.map(|verification| verification.verifier),
        }))
    }

    fn manual(&self, paths: Paths, names: &[Option<String>]) -> Result<Arc<Slot>, Error> {
        let mut served = self.served();
        if let Some(known) = served.manual.iter().find(|known| *known.paths() == paths) {
            return Ok(Arc::clone(known.slot()));
        }
        let file = paths.certificate.clone();
        let (manual, loaded) = ManualCertificate::load(paths, &*self.clock)?;
        for name in names.iter().flatten().filter(|name| !loaded.covers(name)) {
            tracing::warn!(certificate = %file.display(), name, "this certificate is not for the name of its site");
        }
        let slot = Arc::clone(manual.slot());
        served.manual.push(Arc::new(manual));
        Ok(slot)
    }

    fn internal(&self, name: &str) -> Result<Arc<dyn ResolvesServerCert>, Error> {
        if Subdomains::are_needed_for(name) {
            // What is wrong with the CA is to be known now.
            self.local_ca.root_path()?;
            return Ok(Arc::new(Subdomains::new(Arc::clone(&self.local_ca))));
        }
        let mut served = self.served();
        if let Some(known) = served.internal.get(name) {
            return Ok(Arc::clone(&known.slot) as _);
        }
        let certificate = self.local_ca.certificate(name)?;
        let slot = Slot::new(Arc::clone(&certificate.certified));
        served.internal.insert(name.to_owned(), Internal { slot: Arc::clone(&slot), certificate });
        Ok(slot)
    }

    fn refresh(&self) {
        if let Some(tickets) = &self.tickets {
            tickets.rotate();
        }
        let mut served = self.served();
        for manual in &served.manual {
            manual.reload_if_changed(&*self.clock);
        }
        let now = crate::clock::unix_seconds(&*self.clock);
        for (name, internal) in &mut served.internal {
            if internal.certificate.validity.is_due(now) {
                internal.renew(&self.local_ca, name);
            }
        }
    }

    fn served(&self) -> MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Internal {
    fn renew(&mut self, local_ca: &LocalCa, name: &str) {
        match local_ca.certificate(name) {
            Ok(certificate) => {
                tracing::info!(name, "renewed a certificate of the local CA");
                self.slot.replace(Arc::clone(&certificate.certified));
                self.certificate = certificate;
            }
            Err(error) => tracing::error!(name, %error, "cannot renew a certificate of the local CA"),
        }
    }
}
