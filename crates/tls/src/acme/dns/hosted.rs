//! A service that has the zones of many, and an interface of its own for their records.

mod services;

use super::lookup::Lookup;
use super::turns::Turns;
use crate::acme::error::OrderError;
use crate::acme::options::{DnsChallenge, DnsService};
use dns_update::{DnsRecord, DnsRecordType, DnsUpdater};
use std::sync::Arc;
use std::time::Duration;

/// Of one change, with all requests that it takes. Retries after "too many requests" are among them.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What is known of the service and the zone once there is a record to set.
#[derive(Clone)]
pub(super) struct Hosted {
    service: String,
    updater: DnsUpdater,
    turns: Arc<Turns>,
    lookup: Lookup,
    zone: String,
    ttl: u32,
}

/// That there is such a service, which can be used as it is configured. Blocks: it reads files.
pub(super) fn check(service: &DnsService) -> Result<(), OrderError> {
    match services::updater(service) {
        Ok(_) => Ok(()),
        Err(reason) => Err(OrderError::DnsService { service: service.name.clone(), reason }),
    }
}

impl Hosted {
    pub async fn find(
        service: &DnsService,
        dns: &DnsChallenge,
        fqdn: &str,
        turns: &Arc<Turns>,
    ) -> Result<Self, OrderError> {
        let failed = |reason: String| OrderError::DnsService { service: service.name.clone(), reason };
        let lookup = Lookup::new(&dns.resolvers).await.map_err(failed)?;
        let zone = lookup.zone_of(fqdn).await.map_err(failed)?;
        let of_blocking = service.clone();
        // It reads the roots that the system trusts.
        let updater = tokio::task::spawn_blocking(move || services::updater(&of_blocking)).await?;
        Ok(Self {
            service: service.name.clone(),
            updater: updater.map_err(failed)?,
            turns: Arc::clone(turns),
            lookup,
            zone,
            ttl: dns.ttl.unwrap_or_else(|| services::ttl(&service.name)),
        })
    }

    /// Sets the record beside those that are there.
    pub async fn add(&self, fqdn: &str, value: &str) -> Result<(), OrderError> {
        let (kind, records) = (DnsRecordType::TXT, vec![DnsRecord::TXT(value.to_owned())]);
        self.change("set", fqdn, self.updater.add_to_rrset(fqdn, kind, self.ttl, records, &self.zone)).await
    }

    /// Removes this record and no other.
    pub async fn remove(&self, fqdn: &str, value: &str) -> Result<(), OrderError> {
        let (kind, records) = (DnsRecordType::TXT, vec![DnsRecord::TXT(value.to_owned())]);
        self.change("removed", fqdn, self.updater.remove_from_rrset(fqdn, kind, records, &self.zone)).await
    }

    /// Ends when the name servers have the record.
    pub async fn until_seen(&self, fqdn: &str, value: &str, patience: Duration) -> Result<(), OrderError> {
        let seen = self.lookup.until_seen(&self.zone, fqdn, value, patience).await;
        seen.map_err(|reason| OrderError::DnsUnseen { service: self.service.clone(), reason })
    }

    async fn change(
        &self,
        done: &'static str,
        fqdn: &str,
        change: impl Future<Output = dns_update::Result<()>>,
    ) -> Result<(), OrderError> {
        let _turn = self.turns.at(&self.service).await;
        let failed = |reason: String| OrderError::DnsService { service: self.service.clone(), reason };
        let late = |_| failed(format!("did not answer within {} s", TIMEOUT.as_secs()));
        let outcome = tokio::time::timeout(TIMEOUT, change).await.map_err(late)?;
        outcome.map_err(|error| failed(self.reason(&error)))?;
        tracing::info!(
            service = self.service,
            zone = self.zone,
            fqdn,
            done,
            "changed a record of a DNS challenge"
        );
        Ok(())
    }

    fn reason(&self, error: &dns_update::Error) -> String {
        match error {
            dns_update::Error::Unauthorized => "does not accept what is configured to log in with".to_owned(),
            dns_update::Error::NotFound => format!("does not have the zone {}", self.zone),
            other => format!("refused: {other}"),
        }
    }
}
