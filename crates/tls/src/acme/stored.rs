//! A certificate of a public CA in the storage, as certmagic keeps it (`CertificateResource`).

use super::layout;
use super::schedule::{self, RenewalInfo};
use crate::Error;
use crate::certificate::{self, Certificate};
use crate::store::Store;
use serde_json::{Value, json};
use std::sync::Arc;

/// What the CA has issued, in PEM.
#[derive(Debug)]
pub(super) struct Issued {
    pub chain: String,
    pub key: String,
    /// Of the certificate at the CA.
    pub url: String,
    /// Of the account.
    pub account: String,
}

/// One that is served.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub certificate: Arc<Certificate>,
    /// Whose it is.
    pub issuer_key: String,
    pub renewal_info: Option<RenewalInfo>,
}

impl Stored {
    pub fn renewal_time(&self) -> i64 {
        schedule::renewal_time(self.certificate.validity, self.renewal_info.as_ref())
    }
}

/// `None` if there is none for this name.
pub(super) fn load(store: &Store, issuer_key: &str, name: &str) -> Result<Option<Stored>, Error> {
    let of = |extension| layout::certificate(issuer_key, name, extension);
    let (crt, key) = (of("crt"), of("key"));
    let (Some(chain_pem), Some(key_pem)) = (store.read(&crt)?, store.read(&key)?) else { return Ok(None) };
    let key_path = store.path(&key);
    certificate::warn_if_readable_by_others(&key_path);
    let loaded = Certificate::from_pem((&store.path(&crt), &chain_pem), (&key_path, &key_pem))?;
    if !loaded.is_for(name) {
        return Ok(None);
    }
    let renewal_info = about(store, issuer_key, name)?["issuer_data"]["renewal_info"].take();
    Ok(Some(Stored {
        certificate: Arc::new(loaded),
        issuer_key: issuer_key.to_owned(),
        renewal_info: serde_json::from_value(renewal_info).ok(),
    }))
}

/// The newest of several CAs, which need not be the one that is valid for longest. One that is damaged counts as missing.
pub(super) fn load_newest(store: &Store, issuer_keys: &[String], name: &str) -> Option<Stored> {
    let stored = issuer_keys.iter().filter_map(|issuer_key| {
        load(store, issuer_key, name).unwrap_or_else(|error| {
            tracing::warn!(name, %error, "a stored certificate cannot be used; a new one is ordered");
            None
        })
    });
    stored.max_by_key(|stored| stored.certificate.validity.from)
}

/// Under the lock of the name. The key first, as certmagic does.
pub(super) fn save(
    store: &Store,
    issuer_key: &str,
    directory: &str,
    name: &str,
    issued: &Issued,
) -> Result<(), Error> {
    let of = |extension| layout::certificate(issuer_key, name, extension);
    let data = json!({ "url": issued.url, "ca": directory, "account": issued.account });
    let about = json!({ "sans": [name], "issuer_data": data });
    store.write_all(&[
        (&of("key"), issued.key.as_bytes()),
        (&of("crt"), issued.chain.as_bytes()),
        (&of("json"), format!("{about:#}").as_bytes()),
    ])
}

/// What else is known of the certificate stays.
pub(super) fn save_renewal_info(store: &Store, stored: &Stored, name: &str) -> Result<(), Error> {
    let mut about = about(store, &stored.issuer_key, name)?;
    let info = serde_json::to_value(&stored.renewal_info).unwrap_or_default();
    match &mut about["issuer_data"] {
        Value::Object(data) => _ = data.insert("renewal_info".to_owned(), info),
        data => *data = json!({ "renewal_info": info }),
    }
    store.write(&layout::certificate(&stored.issuer_key, name, "json"), format!("{about:#}").as_bytes())
}

/// An object, empty if it cannot be read.
fn about(store: &Store, issuer_key: &str, name: &str) -> Result<Value, Error> {
    let bytes = store.read(&layout::certificate(issuer_key, name, "json"))?.unwrap_or_default();
    let about = serde_json::from_slice(&bytes).ok().filter(Value::is_object);
    Ok(about.unwrap_or_else(|| json!({ "sans": [name] })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::schedule::Window;
    use time::OffsetDateTime;

    fn issued(name: &str) -> Issued {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        Issued {
            chain: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
            url: "https://ca.test/certificate/1".into(),
            account: "https://ca.test/account/1".into(),
        }
    }

    #[test]
    fn what_is_saved_is_loaded_with_what_the_ca_says_later() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        assert!(load(&store, "ca", "*.a.test").unwrap().is_none());
        save(&store, "ca", "https://ca.test", "*.a.test", &issued("*.a.test")).unwrap();
        let mut stored = load(&store, "ca", "*.a.test").unwrap().unwrap();
        assert!(stored.renewal_info.is_none());
        let window = Window { start: OffsetDateTime::UNIX_EPOCH, end: OffsetDateTime::UNIX_EPOCH };
        stored.renewal_info = Some(RenewalInfo::new(window, None, 3600, 0, 0));
        save_renewal_info(&store, &stored, "*.a.test").unwrap();
        let again = load(&store, "ca", "*.a.test").unwrap().unwrap();
        assert_eq!(again.renewal_info.unwrap().window, window);
        let about = about(&store, "ca", "*.a.test").unwrap();
        assert_eq!(about["issuer_data"]["url"], "https://ca.test/certificate/1");
        assert_eq!(about["sans"][0], "*.a.test");
    }

    #[test]
    fn one_that_is_damaged_or_for_another_name_counts_as_missing() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        save(&store, "ca", "https://ca.test", "a.test", &issued("b.test")).unwrap();
        assert!(load_newest(&store, &["ca".to_owned()], "a.test").is_none());
        save(&store, "ca", "https://ca.test", "a.test", &issued("a.test")).unwrap();
        assert!(load_newest(&store, &["ca".to_owned()], "a.test").is_some());
        store.write(&layout::certificate("ca", "a.test", "key"), b"half").unwrap();
        assert!(load_newest(&store, &["ca".to_owned()], "a.test").is_none());
        store.write(&layout::certificate("ca", "a.test", "json"), b"[]").unwrap();
        assert!(about(&store, "ca", "a.test").unwrap().is_object());
    }
}
