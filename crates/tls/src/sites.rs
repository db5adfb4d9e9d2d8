//! Which site a client wants, from its hello and the address that it came to.

use crate::Error;
use crate::acme::{AcmeSlot, Challenges, Unready};
use crate::catalog::{ByName, Certificates};
use crate::client_auth::{self, ClientAuthClass};
use crate::clock::Clock;
use crate::handshakes::HandshakeError;
use crate::on_demand::OnDemandGate;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CommonState, HandshakeKind, ServerConfig};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The sites of one listening address. It does not change; the certificates in it do.
#[derive(Debug)]
pub struct SiteTable {
    names: HashMap<String, Arc<Entry>>,
    /// For every other name.
    rest: Option<Arc<Entry>>,
    default_names: DefaultNames,
    /// Whether its sites do not all ask the same of their clients.
    classes_differ: bool,
    /// What is shown to a public CA that looks for a challenge.
    pub(crate) challenges: Arc<Challenges>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// What stands for names that clients do not give, or that no site has.
#[derive(Debug, Clone, Default)]
pub(crate) struct DefaultNames {
    pub unnamed: Option<String>,
    pub unknown: Option<String>,
}

/// What a connection for one name is accepted with.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub config: Arc<ServerConfig>,
    pub class: ClientAuthClass,
    /// `None`: clients show no certificate.
    pub verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// `None`: there is one, whatever the name.
    pub certificates: Option<Arc<dyn Certificates>>,
    /// Of a public CA; it may be empty yet. `None`: the certificate is of another source.
    pub acme: Option<Arc<AcmeSlot>>,
    /// `None`: the certificates do not come about in handshakes, or without asking.
    pub on_demand: Option<OnDemandGate>,
}

impl Entry {
    /// Whether a handshake would find no certificate, as one is still to be obtained.
    pub fn is_without_certificate(&self) -> bool {
        self.acme.as_ref().is_some_and(|slot| slot.current().is_none())
    }
}

/// The site that a client wants.
pub(crate) struct Found<'a> {
    pub entry: &'a Arc<Entry>,
    name: FoundBy,
}

/// The name that its certificate has to be for.
enum FoundBy {
    /// That in the hello.
    Hello,
    /// Another; `None`: there is no name at all.
    Name(Option<String>),
}

impl Found<'_> {
    pub fn config(&self) -> Arc<ServerConfig> {
        match (&self.name, &self.entry.certificates) {
            (FoundBy::Name(name), Some(certificates)) => {
                let by_name = ByName { certificates: Arc::clone(certificates), name: name.clone() };
                let mut config = (*self.entry.config).clone();
                config.cert_resolver = Arc::new(by_name);
                Arc::new(config)
            }
            _ => Arc::clone(&self.entry.config),
        }
    }

    /// Whether the handshake finds a certificate, or would after [`Self::prepare`]. What is due is begun. `server_name`: that
    /// of the hello.
    pub fn is_ready(&self, server_name: Option<&str>) -> bool {
        match &self.entry.on_demand {
            None => true,
            Some(gate) => self.certified_name(server_name).is_some_and(|name| gate.is_open(&name)),
        }
    }

    /// Waits for a certificate that comes about in handshakes.
    pub async fn prepare(&self, server_name: Option<&str>) -> Result<(), HandshakeError> {
        let Some(gate) = &self.entry.on_demand else { return Ok(()) };
        let name = self.certified_name(server_name).ok_or(HandshakeError::NoName)?;
        gate.open(&name).await.map_err(|why| match why {
            Unready::Refused => HandshakeError::NotAllowed(name),
            Unready::Missing => HandshakeError::NoCertificate(name),
        })
    }

    /// Normal. `None`: there is none, or none that a certificate can be for.
    fn certified_name(&self, server_name: Option<&str>) -> Option<String> {
        let name = match &self.name {
            FoundBy::Hello => server_name,
            FoundBy::Name(name) => name.as_deref(),
        };
        normal_name(name?).ok().filter(|name| !name.starts_with("*."))
    }
}

impl SiteTable {
    pub(crate) fn new(
        default_names: DefaultNames,
        challenges: Arc<Challenges>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { names: HashMap::new(), rest: None, default_names, classes_differ: false, challenges, clock }
    }

    /// `name`: normal, or `None` for all others.
    pub(crate) fn insert(&mut self, name: Option<String>, entry: Arc<Entry>) {
        let mut others = self.names.values().chain(&self.rest);
        self.classes_differ |= others.next().is_some_and(|other| other.class != entry.class);
        match name {
            Some(name) => _ = self.names.insert(name, entry),
            None => self.rest = Some(entry),
        }
    }

    /// As certmagic's `getCertificateFromCache`: without a name from the client by the address that it came to, then by
    /// `default_sni`; for a name that no site has, by `fallback_sni`.
    pub(crate) fn find(&self, server_name: Option<&str>, local: Option<IpAddr>) -> Option<Found<'_>> {
        match server_name {
            Some(name) => self.find_named(&name.to_ascii_lowercase()),
            None => self.find_unnamed(local),
        }
    }

    fn find_named(&self, name: &str) -> Option<Found<'_>> {
        if let Some(entry) = self.by_name(name).or(self.rest.as_ref()) {
            return Some(Found { entry, name: FoundBy::Hello });
        }
        let fallback = self.default_names.unknown.as_deref()?;
        Some(Found { entry: self.by_name(fallback)?, name: FoundBy::Name(Some(fallback.to_owned())) })
    }

    fn find_unnamed(&self, local: Option<IpAddr>) -> Option<Found<'_>> {
        let address = local.map(|local| local.to_canonical().to_string());
        let default = &self.default_names.unnamed;
        let names = [&address, default];
        for name in names.into_iter().flatten() {
            if let Some(entry) = self.by_name(name) {
                return Some(Found { entry, name: FoundBy::Name(Some(name.clone())) });
            }
        }
        let name = FoundBy::Name(default.clone().or(address));
        self.rest.as_ref().map(|entry| Found { entry, name })
    }

    /// Whether a request for this host may come over a connection of this class
    /// ([`ConnectionFacts::client_auth`](crate::ConnectionFacts::client_auth)). If not, it is misdirected (421, RFC 9110
    /// §7.4): the client has not been asked for what the host asks of clients.
    pub fn may_serve(&self, host: &str, class: ClientAuthClass) -> bool {
        !self.classes_differ || self.client_auth_of(host).is_none_or(|own| own == class)
    }

    /// What the site of this name asks of its clients. `None`: no site has it.
    pub fn client_auth_of(&self, host: &str) -> Option<ClientAuthClass> {
        let host = host.to_ascii_lowercase();
        let entry = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => self.by_name(&address.to_canonical().to_string()).or(self.rest.as_ref()),
            Err(_) => self.by_name(host.trim_end_matches('.')).or(self.rest.as_ref()),
        };
        entry.map(|entry| entry.class)
    }

    /// Whoever comes back with a ticket has to have a certificate that is still good, where one is asked for.
    pub(crate) fn check_resumed(&self, entry: &Entry, connection: &CommonState) -> Result<(), rustls::Error> {
        let is_resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
        match (&entry.verifier, connection.peer_certificates()) {
            (Some(verifier), Some(chain)) if is_resumed => {
                client_auth::verify_again(&**verifier, chain, &*self.clock)
            }
            _ => Ok(()),
        }
    }

    fn by_name(&self, name: &str) -> Option<&Arc<Entry>> {
        self.names.get(name).or_else(|| {
            let (_, rest) = name.split_once('.')?;
            self.names.get(&format!("*.{rest}"))
        })
    }
}

/// As it is compared: lower case, addresses in their shortest form.
pub(crate) fn normal_name(name: &str) -> Result<String, Error> {
    let bare = name.trim_matches(['[', ']']);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(address.to_canonical().to_string());
    }
    let lower = name.trim_end_matches('.').to_ascii_lowercase();
    let labels = lower.strip_prefix("*.").unwrap_or(&lower);
    match rustls::pki_types::DnsName::try_from(labels) {
        Ok(_) => Ok(lower),
        Err(_) => Err(Error::BadName { name: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normal() {
        assert_eq!(normal_name("Example.COM.").unwrap(), "example.com");
        assert_eq!(normal_name("*.Example.com").unwrap(), "*.example.com");
        assert_eq!(normal_name("[0:0::1]").unwrap(), "::1");
        assert_eq!(normal_name("::ffff:10.0.0.1").unwrap(), "10.0.0.1");
        for bad in ["", "*", "a b", "a.*.com", "*.*.com", "a/b", "münchen.de", "..", "*."] {
            let error = normal_name(bad).unwrap_err().to_string();
            assert!(error.contains("is not a host name"), "{bad}: {error}");
        }
    }
}
