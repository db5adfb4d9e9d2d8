//! The record of the DNS challenge (RFC 8555 §8.4), and who sets it.

mod exec;
mod hosted;
mod lookup;
mod rfc2136;
mod turns;

use super::error::OrderError;
use super::options::{DnsChallenge, DnsHook, DnsProvider, DnsUpdateServer};
use hosted::Hosted;
use std::sync::Arc;
use tokio::runtime::Handle;
pub(super) use turns::Turns;

/// What can be seen to be wrong before there is a record to set. Blocks: it reads files.
pub(super) fn check(provider: &DnsProvider) -> Result<(), OrderError> {
    match provider {
        DnsProvider::Hosted(service) => hosted::check(service),
        DnsProvider::Exec(_) | DnsProvider::Rfc2136(_) => Ok(()),
    }
}

/// A record that is there until [`Self::remove`]. One that is dropped before, as its order was cut off, is removed in the
/// background.
pub(super) struct Record {
    entry: Entry,
    is_removed: bool,
}

/// What is set, and by whom.
#[derive(Clone)]
struct Entry {
    setter: Setter,
    fqdn: String,
    value: String,
}

#[derive(Clone)]
enum Setter {
    Exec(DnsHook),
    Rfc2136 { server: DnsUpdateServer, ttl: Option<u32> },
    Hosted(Box<Hosted>),
}

impl Record {
    /// Ends when the record is there, and can be seen if that is looked up. `name`: that of the authorization, so without
    /// `*.`.
    pub async fn set(
        dns: &DnsChallenge,
        turns: &Arc<Turns>,
        name: &str,
        value: String,
    ) -> Result<Self, OrderError> {
        let fqdn = match &dns.override_domain {
            Some(domain) => format!("{}.", domain.trim_end_matches('.')),
            None => format!("_acme-challenge.{name}."),
        };
        let setter = Setter::of(dns, &fqdn, turns).await?;
        let mut record = Self { entry: Entry { setter, fqdn, value }, is_removed: false };
        match record.entry.present(dns).await {
            Ok(()) => Ok(record),
            Err(error @ OrderError::DnsRefused { .. }) => {
                record.is_removed = true;
                Err(error)
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

impl Setter {
    async fn of(dns: &DnsChallenge, fqdn: &str, turns: &Arc<Turns>) -> Result<Self, OrderError> {
        Ok(match &dns.provider {
            DnsProvider::Exec(hook) => Self::Exec(hook.clone()),
            DnsProvider::Rfc2136(server) => Self::Rfc2136 { server: server.clone(), ttl: dns.ttl },
            DnsProvider::Hosted(service) => {
                Self::Hosted(Box::new(Hosted::find(service, dns, fqdn, turns).await?))
            }
        })
    }
}

impl Entry {
    async fn present(&self, dns: &DnsChallenge) -> Result<(), OrderError> {
        let (fqdn, value) = (&self.fqdn, &self.value);
        match &self.setter {
            Setter::Exec(hook) => exec::present(hook, fqdn, value).await?,
            Setter::Rfc2136 { server, ttl } => rfc2136::add(server, fqdn, value, *ttl).await?,
            Setter::Hosted(hosted) => hosted.add(fqdn, value).await?,
        }
        tokio::time::sleep(dns.propagation_delay).await;
        match (&self.setter, dns.propagation_timeout) {
            // A service takes its time until its name servers have what its interface was told; a program and a name server
            // that takes updates are done when they say so.
            (Setter::Hosted(hosted), Some(patience)) => hosted.until_seen(fqdn, value, patience).await,
            _ => Ok(()),
        }
    }

    async fn clean_up(&self) -> Result<(), OrderError> {
        match &self.setter {
            Setter::Exec(hook) => exec::clean_up(hook, &self.fqdn, &self.value).await,
            Setter::Rfc2136 { server, .. } => rfc2136::remove(server, &self.fqdn, &self.value).await,
            Setter::Hosted(hosted) => hosted.remove(&self.fqdn, &self.value).await,
        }
    }

    /// A program runs when this returns, and goes on when the server stops; an update ends with it.
    fn clean_up_later(&self) {
        match &self.setter {
            Setter::Exec(hook) => exec::clean_up_later(hook, &self.fqdn, &self.value),
            Setter::Rfc2136 { .. } | Setter::Hosted(_) => {
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
