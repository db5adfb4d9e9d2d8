//! Which site a client wants, from its hello and the address that it came to.

use crate::Error;
use crate::client_auth::ClientAuthClass;
use crate::clock::Clock;
use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The sites of one listening address. It does not change; the certificates in it do.
#[derive(Debug)]
pub struct SiteTable {
    names: HashMap<String, Arc<Entry>>,
    /// For every other name.
    rest: Option<Arc<Entry>>,
    default_sni: Option<String>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// What a connection for one name is accepted with.
#[derive(Debug)]
pub(crate) struct Entry {
    pub config: Arc<ServerConfig>,
    pub class: ClientAuthClass,
    /// `None`: clients show no certificate.
    pub verifier: Option<Arc<dyn ClientCertVerifier>>,
}

impl SiteTable {
    pub(crate) fn new(default_sni: Option<String>, clock: Arc<dyn Clock>) -> Self {
        Self { names: HashMap::new(), rest: None, default_sni, clock }
    }

    /// `name`: normal, or `None` for all others.
    pub(crate) fn insert(&mut self, name: Option<String>, entry: Arc<Entry>) {
        match name {
            Some(name) => _ = self.names.insert(name, entry),
            None => self.rest = Some(entry),
        }
    }

    /// Without a name from the client, as certmagic's `getCertificateFromCache`: the address that it came to, then
    /// `default_sni`.
    pub(crate) fn find(&self, server_name: Option<&str>, local: Option<IpAddr>) -> Option<&Arc<Entry>> {
        let named = match server_name {
            Some(name) => self.by_name(&name.to_ascii_lowercase()),
            None => self.by_address(local).or_else(|| self.by_name(self.default_sni.as_deref()?)),
        };
        named.or(self.rest.as_ref())
    }

    /// What the site of this name asks of its clients. A request for a name whose class is another than that of its
    /// connection ([`ConnectionFacts::client_auth`](crate::ConnectionFacts::client_auth)) is misdirected (421, RFC 9110
    /// §7.4). `None`: no site has it.
    pub fn client_auth_of(&self, host: &str) -> Option<ClientAuthClass> {
        let host = host.to_ascii_lowercase();
        let entry = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => self.by_address(Some(address)).or(self.rest.as_ref()),
            Err(_) => self.by_name(host.trim_end_matches('.')).or(self.rest.as_ref()),
        };
        entry.map(|entry| entry.class)
    }

    fn by_name(&self, name: &str) -> Option<&Arc<Entry>> {
        self.names.get(name).or_else(|| {
            let (_, rest) = name.split_once('.')?;
            self.names.get(&format!("*.{rest}"))
        })
    }

    fn by_address(&self, address: Option<IpAddr>) -> Option<&Arc<Entry>> {
        self.names.get(&address?.to_canonical().to_string())
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
