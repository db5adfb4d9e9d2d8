//! Certificates of clients.

mod leaves;

use crate::certificate::parse_chain;
use crate::clock::{self, Clock};
use crate::options::{ClientAuth, ClientAuthMode, TrustSource};
use crate::{Error, crypto, roots};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use leaves::TrustedLeaves;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Sites of the same class ask the same of their clients. A connection or a ticket of one class must not be used for a
/// site of another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientAuthClass([u8; 32]);

impl ClientAuthClass {
    /// Of sites that ask for no certificate.
    pub const NONE: Self = Self([0; 32]);

    pub(crate) fn of(description: &[u8]) -> Self {
        Self(crypto::sha256(description))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ClientAuthClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientAuthClass({})", crypto::hex(&self.0[..4]))
    }
}

/// How one class is verified.
#[derive(Debug, Clone)]
pub(crate) struct Verification {
    pub verifier: Arc<dyn ClientCertVerifier>,
    pub class: ClientAuthClass,
}

/// `local_root`: the file of the local CA's root.
pub(crate) fn verification(
    auth: &ClientAuth,
    local_root: impl Fn() -> Result<PathBuf, Error>,
) -> Result<Verification, Error> {
    let mut trusted = read_all(&auth.trusted_ca)?;
    for source in &auth.other_ca {
        trusted.extend(of_source(source, &local_root)?);
    }
    let mut leaves = read_all(&auth.trusted_leaves)?;
    for text in &auth.inline_leaves {
        leaves.push(inline(text)?);
    }
    let class = class_of(auth.mode, &trusted, &leaves);
    let leaves = digests(&leaves);
    let roots = Arc::new(root_store(&trusted)?);
    let verifier = match auth.mode {
        ClientAuthMode::Request => unverified(roots, leaves, Presence::Optional),
        ClientAuthMode::Require => unverified(roots, leaves, Presence::Mandatory),
        ClientAuthMode::VerifyIfGiven => verified(roots, leaves, Presence::Optional)?,
        ClientAuthMode::RequireAndVerify => verified(roots, leaves, Presence::Mandatory)?,
    };
    Ok(Verification { verifier, class })
}

/// A client that came back with a ticket is not verified by rustls: its certificate may have expired since.
pub(crate) fn verify_again(
    verifier: &dyn ClientCertVerifier,
    chain: &[CertificateDer<'_>],
    clock: &dyn Clock,
) -> Result<(), rustls::Error> {
    let Some((own, intermediates)) = chain.split_first() else { return Ok(()) };
    let now = UnixTime::since_unix_epoch(clock::since_epoch(clock));
    verifier.verify_client_cert(own, intermediates, now).map(|_| ())
}

/// Certificates, and the files that they are of.
type Trusted = Vec<(PathBuf, CertificateDer<'static>)>;

/// What messages call the place of a certificate that is in no file.
const INLINE: &str = "client_auth";

fn read_all(paths: &[PathBuf]) -> Result<Trusted, Error> {
    let mut trusted = Vec::new();
    for path in paths {
        let pem = std::fs::read(path).map_err(|error| Error::read(path, error))?;
        trusted.extend(parse_chain(path, &pem)?.into_iter().map(|certificate| (path.clone(), certificate)));
    }
    Ok(trusted)
}

/// DER in base64.
fn inline(text: &str) -> Result<(PathBuf, CertificateDer<'static>), Error> {
    let path = PathBuf::from(INLINE);
    match STANDARD.decode(text) {
        Ok(der) => Ok((path, der.into())),
        Err(error) => Err(Error::BadCertificate { path, reason: error.to_string() }),
    }
}

fn of_source(
    source: &TrustSource,
    local_root: &impl Fn() -> Result<PathBuf, Error>,
) -> Result<Trusted, Error> {
    match source {
        TrustSource::Inline(text) => Ok(vec![inline(text)?]),
        TrustSource::LocalRoot => read_all(&[local_root()?]),
        TrustSource::System => {
            let found = roots::system_certificates()?;
            // What is there and cannot be a CA is left out, as where servers are verified.
            let is_fit = |certificate: &CertificateDer<'static>| {
                RootCertStore::empty().add(certificate.clone()).is_ok()
            };
            let fit = found.into_iter().filter(is_fit);
            Ok(fit.map(|certificate| (PathBuf::from(INLINE), certificate)).collect())
        }
    }
}

fn class_of(mode: ClientAuthMode, trusted: &Trusted, leaves: &Trusted) -> ClientAuthClass {
    let mut description = format!("{mode:?}").into_bytes();
    for list in [trusted, leaves] {
        let digests = digests(list);
        description.extend(digests.len().to_be_bytes());
        digests.into_iter().for_each(|digest| description.extend(digest));
    }
    ClientAuthClass::of(&description)
}

fn digests(certificates: &Trusted) -> BTreeSet<[u8; 32]> {
    certificates.iter().map(|(_, certificate)| crypto::sha256(certificate)).collect()
}

fn root_store(trusted: &Trusted) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for (path, certificate) in trusted {
        roots.add(certificate.clone()).map_err(|error| Error::BadCertificate {
            path: path.clone(),
            reason: format!("it cannot be a trusted CA: {error}"),
        })?;
    }
    Ok(roots)
}

/// Whether a client must show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Optional,
    Mandatory,
}

/// Whoever has issued it; with `leaves`, no other certificate is accepted, as in Caddy.
fn unverified(
    roots: Arc<RootCertStore>,
    leaves: BTreeSet<[u8; 32]>,
    presence: Presence,
) -> Arc<dyn ClientCertVerifier> {
    let issuer = Unverified::with(roots, presence);
    if leaves.is_empty() { issuer } else { Arc::new(TrustedLeaves { issuer, leaves }) }
}

/// `leaves`: digests; with any, no other certificate is accepted. A certificate among them needs no CA.
fn verified(
    roots: Arc<RootCertStore>,
    leaves: BTreeSet<[u8; 32]>,
    presence: Presence,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    if leaves.is_empty() {
        return issued(roots, presence);
    }
    let issuer = if roots.is_empty() { Unverified::with(roots, presence) } else { issued(roots, presence)? };
    Ok(Arc::new(TrustedLeaves { issuer, leaves }))
}

fn issued(roots: Arc<RootCertStore>, presence: Presence) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let builder = WebPkiClientVerifier::builder_with_provider(roots, crypto::provider());
    let builder = match presence {
        Presence::Optional => builder.allow_unauthenticated(),
        Presence::Mandatory => builder,
    };
    builder.build().map_err(|_| Error::NothingTrusted)
}

/// Takes every certificate whose key the client has. What it says is for the application to judge.
#[derive(Debug)]
struct Unverified {
    presence: Presence,
    /// Told to the client, so that a browser offers what fits.
    hints: Vec<DistinguishedName>,
}

impl Unverified {
    fn with(roots: Arc<RootCertStore>, presence: Presence) -> Arc<dyn ClientCertVerifier> {
        Arc::new(Self { presence, hints: roots.subjects() })
    }
}

impl ClientCertVerifier for Unverified {
    fn client_auth_mandatory(&self) -> bool {
        self.presence == Presence::Mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        match crate::certificate::parse(own) {
            Ok(_) => Ok(ClientCertVerified::assertion()),
            Err(_) => Err(CertificateError::BadEncoding.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = crypto::provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = crypto::provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        crypto::provider().signature_verification_algorithms.supported_schemes()
    }
}
