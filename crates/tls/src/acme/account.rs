//! The account at a CA: found in the storage, where Caddy may have put it, or registered.

use super::error::{OrderError, is_problem};
use super::https::HttpsClient;
use super::layout;
use super::nonces::with_nonces;
use super::options::{Acme, ExternalAccount};
use super::zerossl;
use crate::Error;
use crate::certificate;
use crate::store::Store;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use instant_acme::{Account, ExternalAccountKey, Key, NewAccount};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;

/// Where an account is kept.
#[derive(Debug, Clone)]
pub(super) struct AccountFiles {
    pub store: Store,
    pub directory: String,
    pub email: Option<String>,
    /// Whose it is in the storage, where that is not the address.
    pub user: Option<String>,
}

/// A key, and under which URL the CA knows it.
struct Stored {
    url: Option<String>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl AccountFiles {
    fn registration(&self) -> String {
        layout::account(&layout::issuer_key(&self.directory), self.user())
    }

    fn key(&self) -> String {
        layout::account_key(&layout::issuer_key(&self.directory), self.user())
    }

    fn user(&self) -> Option<&str> {
        self.user.as_deref().or(self.email.as_deref())
    }

    /// certmagic's `accountRegLockKey`.
    pub fn lock_name(&self) -> String {
        let email = self.email.as_deref();
        email.map_or("register_acme_account".to_owned(), |email| format!("register_acme_account_{email}"))
    }

    fn load(&self) -> Result<Option<Stored>, OrderError> {
        let Some(pem) = self.store.read(&self.key())? else { return Ok(None) };
        let path = self.store.path(&self.key());
        certificate::warn_if_readable_by_others(&path);
        let key = certificate::parse_key(&path, &pem)?;
        let key = as_pkcs8(&key).map_err(|reason| OrderError::AccountKey { path, reason })?;
        let registration = self.store.read(&self.registration())?.unwrap_or_default();
        // Without a registration that can be read, the CA is asked under which URL it knows the key.
        let registration: serde_json::Value = serde_json::from_slice(&registration).unwrap_or_default();
        let url = registration["location"].as_str().filter(|url| !url.is_empty()).map(str::to_owned);
        Ok(Some(Stored { url, key }))
    }

    /// The key first: a registration without its key is lost.
    fn save(&self, url: &str, key: &PrivatePkcs8KeyDer<'_>) -> Result<(), Error> {
        let pem = to_pem(key);
        self.store.write(&self.key(), pem.as_bytes())?;
        let contact: Vec<_> = self.email.iter().map(|email| format!("mailto:{email}")).collect();
        let registration = json!({
            "status": "valid",
            "contact": contact,
            "termsOfServiceAgreed": true,
            "location": url,
        });
        self.store.write(&self.registration(), format!("{registration:#}").as_bytes())
    }

    pub fn forget(&self) -> Result<(), Error> {
        self.store.remove(&self.registration())?;
        self.store.remove(&self.key())
    }
}

/// PKCS#8 as PEM (RFC 7468 §10).
fn to_pem(key: &PrivatePkcs8KeyDer<'_>) -> String {
    let text = base64::prelude::BASE64_STANDARD.encode(key.secret_pkcs8_der());
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}

/// Caddy writes SEC 1.
fn as_pkcs8(key: &PrivateKeyDer<'_>) -> Result<PrivatePkcs8KeyDer<'static>, String> {
    let unusable = "it is not an ECDSA key with the curve P-256".to_owned();
    let pair = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, key.secret_der())
        .map_err(|_| unusable.clone())?;
    let document = pair.to_pkcs8v1().map_err(|_| unusable)?;
    Ok(PrivatePkcs8KeyDer::from(document.as_ref().to_vec()))
}

/// Registers where nothing is stored. Under the lock of [`AccountFiles::lock_name`].
pub(super) async fn open(
    files: AccountFiles,
    acme: &Acme,
    https: HttpsClient,
) -> Result<Account, OrderError> {
    let loading = files.clone();
    match tokio::task::spawn_blocking(move || loading.load()).await?? {
        Some(Stored { url: Some(url), key }) => {
            let builder = Account::builder_with_http(Box::new(https));
            Ok(builder.from_parts(url, key, files.directory).await?)
        }
        Some(Stored { url: None, key }) => find(files, key, acme, https).await,
        None => register(files, acme, https).await,
    }
}

/// The account of a key.
async fn find(
    files: AccountFiles,
    key: PrivatePkcs8KeyDer<'static>,
    acme: &Acme,
    https: HttpsClient,
) -> Result<Account, OrderError> {
    let again = async || {
        let pair = (Key::from_pkcs8_der(key.clone_key())?, PrivateKeyDer::Pkcs8(key.clone_key()));
        let builder = Account::builder_with_http(Box::new(https.clone()));
        builder.from_key(pair, files.directory.clone()).await
    };
    match with_nonces!(again()) {
        Ok((account, _)) => save(files, account, key).await,
        Err(error) if is_problem(&error, "accountDoesNotExist") => register(files, acme, https).await,
        Err(error) => Err(error.into()),
    }
}

async fn register(files: AccountFiles, acme: &Acme, https: HttpsClient) -> Result<Account, OrderError> {
    let contact = files.email.as_ref().map(|email| format!("mailto:{email}"));
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let eab = match &acme.eab {
        Some(eab) => Some(binding(eab)?),
        None if zerossl::is_directory(&files.directory) => {
            Some(binding(&zerossl::account(acme, &https).await?)?)
        }
        None => None,
    };
    let builder = || Account::builder_with_http(Box::new(https.clone()));
    let (account, credentials) = with_nonces!(builder().create(&new, files.directory.clone(), eab.as_ref()))?;
    tracing::info!(ca = files.directory, url = account.id(), "registered an account at a CA");
    let key = credentials.private_key().clone_key();
    save(files, account, key).await
}

async fn save(
    files: AccountFiles,
    account: Account,
    key: PrivatePkcs8KeyDer<'static>,
) -> Result<Account, OrderError> {
    let url = account.id().to_owned();
    tokio::task::spawn_blocking(move || files.save(&url, &key)).await??;
    Ok(account)
}

/// What can be known to be wrong without the CA.
pub(super) fn check(acme: &Acme) -> Result<(), OrderError> {
    if !acme.trusted_roots.is_empty() {
        HttpsClient::new(acme)?;
    }
    acme.eab.as_ref().map(binding).transpose().map(|_| ())
}

fn binding(eab: &ExternalAccount) -> Result<ExternalAccountKey, OrderError> {
    let key = BASE64_URL_SAFE_NO_PAD.decode(eab.mac_key.trim_end_matches('=')).map_err(OrderError::Eab)?;
    Ok(ExternalAccountKey::new(eab.key_id.clone(), &key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(directory: &std::path::Path) -> AccountFiles {
        let email = Some("me@example.com".to_owned());
        let directory_url = "https://ca.test/dir".into();
        AccountFiles { store: Store::new(directory), directory: directory_url, email, user: None }
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        let (_, key) = Key::generate_pkcs8().unwrap();
        assert!(files.load().unwrap().is_none());
        files.save("https://ca.test/account/1", &key).unwrap();
        let stored = files.load().unwrap().unwrap();
        assert_eq!(stored.url.as_deref(), Some("https://ca.test/account/1"));
        let pair = |der: &PrivatePkcs8KeyDer<'_>| Key::from_pkcs8_der(der.clone_key());
        pair(&stored.key).unwrap();
        files.forget().unwrap();
        assert!(files.load().unwrap().is_none());
    }

    /// As certmagic's `PEMEncodePrivateKey` writes it.
    #[test]
    fn a_key_of_caddy_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        let sec1 = "-----BEGIN EC PRIVATE KEY-----\n\
            MHcCAQEEINGU8vUjt/VbsT959+UVNnad7J38G1J1PyugN03c+Dp5oAoGCCqGSM49\n\
            AwEHoUQDQgAEPyfGhTBEfZc1GToLak9S0OXgyHU7NaAJPse9NHS6Y4PJ8zsQwJ7D\n\
            k1s+1w15VNhztC7qaKzQFX7RuG/3doiIjA==\n\
            -----END EC PRIVATE KEY-----\n";
        files.store.write(&files.key(), sec1.as_bytes()).unwrap();
        let stored = files.load().unwrap().unwrap();
        Key::from_pkcs8_der(stored.key).unwrap();
        assert_eq!(stored.url, None);
        files.store.write(&files.key(), &sec1.as_bytes()[..90]).unwrap();
        let error = files.load().map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("me.key"), "{error}");
    }

    #[test]
    fn a_mac_key_may_be_padded_but_is_base64url() {
        let eab = |key: &str| ExternalAccount { key_id: "kid".into(), mac_key: key.into() };
        assert!(binding(&eab("c2VjcmV0LWtleQ==")).is_ok());
        assert!(binding(&eab("c2VjcmV0LWtleQ")).is_ok());
        let error = binding(&eab("no base64!")).map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with("the MAC key of the external account is not base64url"), "{error}");
    }
}
