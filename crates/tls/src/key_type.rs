//! The kinds of keys that are made.

use crate::certificate::{self, Certificate};
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256, RsaKeySize,
};
use rustls::SignatureAlgorithm;

/// Of certificates that are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KeyType {
    Ed25519,
    #[default]
    P256,
    P384,
    Rsa2048,
    Rsa4096,
}

impl KeyType {
    /// An RSA key takes up to seconds.
    pub(crate) fn generate(self) -> Result<KeyPair, rcgen::Error> {
        match self {
            Self::Ed25519 => KeyPair::generate_for(&PKCS_ED25519),
            Self::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            Self::P384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
            Self::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
            Self::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
        }
    }

    /// Whether the key of the certificate is of this type.
    pub(crate) fn is_that_of(self, certificate: &Certificate) -> bool {
        let (algorithm, bits) = match self {
            Self::Ed25519 => return certificate.certified.key.algorithm() == SignatureAlgorithm::ED25519,
            Self::P256 => (SignatureAlgorithm::ECDSA, 256),
            Self::P384 => (SignatureAlgorithm::ECDSA, 384),
            Self::Rsa2048 => (SignatureAlgorithm::RSA, 2048),
            Self::Rsa4096 => (SignatureAlgorithm::RSA, 4096),
        };
        let Ok(parsed) = certificate::parse(&certificate.certified.cert[0]) else { return false };
        let size = parsed.public_key().parsed().map_or(0, |key| key.key_size());
        certificate.certified.key.algorithm() == algorithm && size == bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::CertificateParams;
    use std::path::Path;

    #[test]
    fn each_type_knows_its_keys() {
        let types = [KeyType::Ed25519, KeyType::P256, KeyType::P384, KeyType::Rsa2048, KeyType::Rsa4096];
        for made in types {
            let key = made.generate().unwrap();
            let pem = CertificateParams::new(["a.test".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
            let file = Path::new("a.pem");
            let certificate =
                Certificate::from_pem((file, pem.as_bytes()), (file, key.serialize_pem().as_bytes()));
            let certificate = certificate.unwrap();
            for known in types {
                assert_eq!(known.is_that_of(&certificate), known == made, "{known:?} {made:?}");
            }
        }
    }
}
