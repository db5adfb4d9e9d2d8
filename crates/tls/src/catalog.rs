//! Certificates that are found by the name that a client asks for.

use crate::certificate::Certificate;
use crate::clock::{self, Clock};
use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// What a site chooses its certificate from.
pub(crate) trait Certificates: fmt::Debug + Send + Sync {
    /// `name`: lower case, or an address in its shortest form; `None` if the client gave none and none is configured.
    fn choose(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>>;
}

/// By the name in the hello.
#[derive(Debug)]
pub(crate) struct ByHello(pub Arc<dyn Certificates>);

impl ResolvesServerCert for ByHello {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        self.0.choose(name.as_deref(), hello.signature_schemes())
    }
}

/// By a name that stands for the one in the hello.
#[derive(Debug)]
pub(crate) struct ByName {
    pub certificates: Arc<dyn Certificates>,
    pub name: Option<String>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certificates.choose(self.name.as_deref(), hello.signature_schemes())
    }
}

/// What a catalog does for a name that none of its certificates is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// Any certificate: they are those of the site that the name belongs to.
    Any,
    /// The one for this name, if there is one.
    Fallback(Option<String>),
}

/// A list of certificates, which can be exchanged as a whole while it is served.
#[derive(Debug)]
pub(crate) struct Catalog {
    certificates: RwLock<Index>,
    otherwise: Otherwise,
    clock: Arc<dyn Clock>,
}

/// In both, those that are to be preferred come first.
#[derive(Debug, Default)]
struct Index {
    all: Vec<Arc<Certificate>>,
    by_name: HashMap<String, Vec<Arc<Certificate>>>,
}

impl Catalog {
    pub fn new(otherwise: Otherwise, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { certificates: RwLock::default(), otherwise, clock })
    }

    /// Handshakes that have begun end with what was there before.
    pub fn replace(&self, certificates: Vec<Arc<Certificate>>) {
        let index = Index::new(certificates);
        *self.certificates.write().unwrap_or_else(PoisonError::into_inner) = index;
    }
}

impl Certificates for Catalog {
    fn choose(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let now = clock::unix_seconds(&*self.clock);
        let index = self.certificates.read().unwrap_or_else(PoisonError::into_inner);
        let named = |name: &str| best(index.named(name), schemes, now);
        let chosen = name.and_then(named).or_else(|| match &self.otherwise {
            Otherwise::Any => best(index.all.iter(), schemes, now),
            Otherwise::Fallback(name) => named(name.as_deref()?),
        });
        chosen.map(|certificate| Arc::clone(&certificate.certified))
    }
}

impl Index {
    /// An ECDSA key is preferred because a handshake with it costs a fraction, and then what is valid longest, which
    /// is what somebody has put beside an older certificate.
    fn new(mut all: Vec<Arc<Certificate>>) -> Self {
        all.sort_by_key(|certificate| (certificate.is_rsa(), Reverse(certificate.validity.until)));
        let mut by_name: HashMap<String, Vec<Arc<Certificate>>> = HashMap::new();
        for certificate in &all {
            for name in &certificate.names {
                by_name.entry(name.clone()).or_default().push(Arc::clone(certificate));
            }
        }
        Self { all, by_name }
    }

    /// Those for the name itself, then those for it by a wildcard.
    fn named(&self, name: &str) -> impl Iterator<Item = &Arc<Certificate>> {
        let wildcard = name.split_once('.').and_then(|(_, rest)| self.by_name.get(&format!("*.{rest}")));
        self.by_name.get(name).into_iter().chain(wildcard).flatten()
    }
}

/// The first that the client can verify and that is valid now; if none is valid, one that is not.
fn best<'a>(
    candidates: impl Iterator<Item = &'a Arc<Certificate>>,
    schemes: &[SignatureScheme],
    now: i64,
) -> Option<&'a Arc<Certificate>> {
    let mut invalid = None;
    for candidate in candidates.filter(|candidate| candidate.suits(schemes)) {
        if candidate.validity.contains(now) {
            return Some(candidate);
        }
        invalid = invalid.or(Some(candidate));
    }
    invalid
}
