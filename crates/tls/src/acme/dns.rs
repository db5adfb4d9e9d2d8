//! The record of the DNS challenge (RFC 8555 §8.4), and who sets it.

mod exec;
mod rfc2136;

use super::error::OrderError;
use super::options::{DnsChallenge, DnsProvider};
use tokio::runtime::Handle;

/// A record that is there until [`Self::remove`]. One that is dropped before, as its order was cut off, is removed in the
/// background.
pub(super) struct Record {
    entry: Entry,
    is_removed: bool,
}

/// What is set, and by whom.
#[derive(Debug, Clone)]
struct Entry {
    provider: DnsProvider,
    fqdn: String,
    value: String,
    ttl: Option<u32>,
}

impl Record {
    /// Ends when the record is there, and the delay of the configuration has passed. `name`: that of the authorization, so
    /// without `*.`.
    pub async fn set(dns: &DnsChallenge, name: &str, value: String) -> Result<Self, OrderError> {
        let fqdn = match &dns.override_domain {
            Some(domain) => format!("{}.", domain.trim_end_matches('.')),
            None => format!("_acme-challenge.{name}."),
        };
        let entry = Entry { provider: dns.provider.clone(), fqdn, value, ttl: dns.ttl };
        let record = Self { entry, is_removed: false };
        match record.entry.present().await {
            Ok(()) => {
                tokio::time::sleep(dns.propagation_delay).await;
                Ok(record)
            }
            Err(error) => {
                // It may have got half way.
                record.remove().await;
                Err(error)
            }
        }
    }

    /// A record that stays does no harm but to the eye.
    pub async fn remove(mut self) {
        if let Err(error) = self.entry.clean_up().await {
            self.entry.note_rest(&error.to_string());
        }
        self.is_removed = true;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.is_removed && Handle::try_current().is_ok() {
            self.entry.clean_up_later();
        }
    }
}

impl Entry {
    async fn present(&self) -> Result<(), OrderError> {
        match &self.provider {
            DnsProvider::Exec(hook) => exec::present(hook, &self.fqdn, &self.value).await,
            DnsProvider::Rfc2136(server) => rfc2136::add(server, &self.fqdn, &self.value, self.ttl).await,
        }
    }

    async fn clean_up(&self) -> Result<(), OrderError> {
        match &self.provider {
            DnsProvider::Exec(hook) => exec::clean_up(hook, &self.fqdn, &self.value).await,
            DnsProvider::Rfc2136(server) => rfc2136::remove(server, &self.fqdn, &self.value).await,
        }
    }

    /// A program runs when this returns, and goes on when the server stops; an update ends with it.
    fn clean_up_later(&self) {
        match &self.provider {
            DnsProvider::Exec(hook) => exec::clean_up_later(hook, &self.fqdn, &self.value),
            DnsProvider::Rfc2136(_) => {
                let entry = self.clone();
                tokio::spawn(async move {
                    if let Err(error) = entry.clean_up().await {
                        entry.note_rest(&error.to_string());
                    }
                });
            }
        }
    }

    fn note_rest(&self, error: &str) {
        tracing::warn!(error, fqdn = self.fqdn, "a record of a DNS challenge was not removed");
    }
}
