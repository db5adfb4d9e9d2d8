//! Certificates of clients that are trusted by themselves (Caddy's `LeafCertClientAuth`).

use crate::{certificate, crypto};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Takes these certificates while they are valid, if `issuer` takes them too.
#[derive(Debug)]
pub(super) struct TrustedLeaves {
    pub issuer: Arc<dyn ClientCertVerifier>,
    /// SHA-256 of DER.
    pub leaves: BTreeSet<[u8; 32]>,
}

impl ClientCertVerifier for TrustedLeaves {
    fn client_auth_mandatory(&self) -> bool {
        self.issuer.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.issuer.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if !self.leaves.contains(&crypto::sha256(own)) {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        let (validity, _) = certificate::facts(own).map_err(|_| CertificateError::BadEncoding)?;
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if seconds > validity.until {
            return Err(CertificateError::Expired.into());
        }
        if seconds < validity.from {
            return Err(CertificateError::NotValidYet.into());
        }
        self.issuer.verify_client_cert(own, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issuer.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issuer.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issuer.supported_verify_schemes()
    }
}
