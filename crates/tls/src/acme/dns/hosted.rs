//! A service that has the zones of many, and an interface of its own for their records.

mod services;

use super::lookup::Lookup;
use super::turns::{Turn, Turns};
use crate::acme::error::OrderError;
use crate::acme::options::{DnsChallenge, DnsService};
use crate::roots;
use dns_update::{DnsRecord, DnsRecordType, DnsUpdater, Error};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use services::Values;
use std::sync::Arc;
use std::time::Duration;

/// Of one change, with all requests that it takes. Retries after "too many requests" are among them.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Of what a service says, in an error.
const TOLD: usize = 400;

/// The least bytes that a secret has.
const SECRET: usize = 6;

/// What is known of the service and the zone once there is a record to set.
#[derive(Clone)]
pub(super) struct Hosted {
    service: DnsService,
    updater: DnsUpdater,
    values: Values,
    turns: Arc<Turns>,
    /// Where a name has one value, nobody else sets another until it is removed.
    held: Option<Arc<Turn>>,
    lookup: Lookup,
    zone: String,
    ttl: u32,
}

/// That there is such a service, which can be used as it is configured. Blocks: it reads files.
pub(super) fn check(service: &DnsService) -> Result<(), OrderError> {
    updater(service).map(drop).map_err(|reason| failed(service, reason))
}

/// Blocks: it reads files.
fn updater(service: &DnsService) -> Result<DnsUpdater, String> {
    // The library has no other way to say that there are none than to panic.
    roots::system().map_err(|error| format!("cannot be reached: {error}"))?;
    services::updater(service)
}

fn failed(service: &DnsService, reason: String) -> OrderError {
    OrderError::DnsService { service: service.name.clone(), reason }
}

impl Hosted {
    pub async fn find(
        service: &DnsService,
        dns: &DnsChallenge,
        fqdn: &str,
        turns: &Arc<Turns>,
    ) -> Result<Self, OrderError> {
        let failed = |reason: String| failed(service, reason);
        let values = services::values(&service.name, fqdn).map_err(failed)?;
        let lookup = Lookup::new(&dns.resolvers).await.map_err(failed)?;
        let zone = lookup.zone_of(fqdn).await.map_err(failed)?;
        let of_blocking = service.clone();
        let updater = tokio::task::spawn_blocking(move || updater(&of_blocking)).await?;
        Ok(Self {
            service: service.clone(),
            updater: updater.map_err(failed)?,
            values,
            turns: Arc::clone(turns),
            held: match values {
                Values::One => Some(Arc::new(turns.at(service).await)),
                Values::Many => None,
            },
            lookup,
            zone,
            ttl: dns.ttl.unwrap_or_else(|| services::ttl(&service.name)),
        })
    }

    /// Sets the record beside those that are there.
    pub async fn add(&self, fqdn: &str, value: &str) -> Result<(), OrderError> {
        let (kind, records) = (DnsRecordType::TXT, vec![text(value)]);
        let added = async {
            match self.values {
                Values::Many => self.updater.add_to_rrset(fqdn, kind, self.ttl, records, &self.zone).await,
                Values::One => self.updater.set_rrset(fqdn, kind, self.ttl, records, &self.zone).await,
            }
        };
        self.change("set", fqdn, added).await
    }

    /// Removes this record and no other.
    pub async fn remove(&self, fqdn: &str, value: &str) -> Result<(), OrderError> {
        let kind = DnsRecordType::TXT;
        let removed = async {
            match self.values {
                Values::Many => {
                    self.updater.remove_from_rrset(fqdn, kind, vec![text(value)], &self.zone).await?;
                    // Some say that all is well where they found nothing that is written in just that way.
                    let rest = self.updater.list_rrset(fqdn, kind, &self.zone).await.unwrap_or_default();
                    match rest.iter().any(|record| is_text(record, value)) {
                        true => Err(Error::Client("the record is still there".to_owned())),
                        false => Ok(()),
                    }
                }
                Values::One => self.updater.set_rrset(fqdn, kind, self.ttl, Vec::new(), &self.zone).await,
            }
        };
        self.change("removed", fqdn, removed).await
    }

    /// Ends when the name servers have the record.
    pub async fn until_seen(&self, fqdn: &str, value: &str, patience: Duration) -> Result<(), OrderError> {
        let seen = self.lookup.until_seen(&self.zone, fqdn, value, patience).await;
        seen.map_err(|reason| OrderError::DnsUnseen { service: self.service.name.clone(), reason })
    }

    async fn change(
        &self,
        done: &'static str,
        fqdn: &str,
        change: impl Future<Output = dns_update::Result<()>>,
    ) -> Result<(), OrderError> {
        let _turn = match &self.held {
            Some(_) => None,
            None => Some(self.turns.at(&self.service).await),
        };
        let late = |_| failed(&self.service, format!("did not answer within {} s", TIMEOUT.as_secs()));
        let outcome = tokio::time::timeout(TIMEOUT, change).await.map_err(late)?;
        outcome.map_err(|error| self.error(&error))?;
        let (service, zone) = (&self.service.name, &self.zone);
        tracing::info!(service, zone, fqdn, done, "changed a record of a DNS challenge");
        Ok(())
    }

    fn error(&self, error: &Error) -> OrderError {
        let service = self.service.name.clone();
        match error {
            Error::Unauthorized => {
                let reason = "does not accept what is configured to log in with".to_owned();
                OrderError::DnsRefused { service, reason }
            }
            Error::NotFound => {
                let reason =
                    format!("does not have the zone {}, or not where it is configured to be", self.zone);
                OrderError::DnsRefused { service, reason }
            }
            // With the answer in it, which may have a token of a login.
            Error::Serialize(_) => failed(&self.service, "gave an answer that is not understood".to_owned()),
            other => failed(&self.service, format!("failed: {}", self.told(&other.to_string()))),
        }
    }

    /// Without what is configured, which may be in URLs, and not longer than a log bears.
    fn told(&self, text: &str) -> String {
        let mut told = text.to_owned();
        // What is shorter is a number or a region, and part of other words.
        for secret in self.service.options.values().filter(|value| value.len() >= SECRET) {
            let in_url = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
            told = told.replace(secret.as_str(), "…").replace(&in_url, "…");
        }
        let words = told.split(' ').map(|word| match (word.contains("://"), word.split_once('?')) {
            (true, Some((url, _))) => url,
            _ => word,
        });
        words.collect::<Vec<_>>().join(" ").chars().take(TOLD).collect()
    }
}

fn text(value: &str) -> DnsRecord {
    DnsRecord::TXT(value.to_owned())
}

fn is_text(record: &DnsRecord, value: &str) -> bool {
    matches!(record, DnsRecord::TXT(text) if text.trim_matches('"') == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FQDN: &str = "_acme-challenge.a.test.";

    fn service(name: &str, options: &[(&str, &str)]) -> DnsService {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        DnsService { name: name.to_owned(), options: options.collect() }
    }

    async fn hosted(service: &DnsService) -> Hosted {
        Hosted {
            service: service.clone(),
            updater: services::updater(service).unwrap(),
            values: Values::Many,
            turns: Arc::default(),
            held: None,
            lookup: Lookup::new(&[([127, 0, 0, 1], 9).into()]).await.unwrap(),
            zone: "a.test.".to_owned(),
            ttl: 60,
        }
    }

    /// Of each that takes a URL, one that nobody listens at; of others the words of the library.
    #[tokio::test]
    async fn nothing_of_the_configuration_is_in_an_error() {
        let powerdns = service(
            "powerdns",
            &[("server_url", "http://127.0.0.1:9/topsecret-1"), ("api_token", "topsecret-2")],
        );
        let error = hosted(&powerdns).await.add(FQDN, "value").await.unwrap_err().to_string();
        assert!(error.starts_with("the service for the DNS challenge, powerdns, failed: "), "{error}");
        assert!(!error.contains("topsecret"), "{error}");
        let namesilo = hosted(&service("namesilo", &[("api_token", "top secret/3")])).await;
        let text = "Failed to send request to https://a.test/api?version=1&key=top%20secret%2F3: error for url (https://a.test/api?key=top+secret%2F3)";
        let error = namesilo.error(&Error::Api(text.to_owned())).to_string();
        assert!(error.contains("https://a.test/api") && !error.contains("secret"), "{error}");
        let error = namesilo.error(&Error::Serialize("(body: {\"access_token\":\"x\"})".into())).to_string();
        assert!(!error.contains("access_token"), "{error}");
    }

    #[test]
    fn a_service_that_keeps_one_value_has_names_of_its_own_alone() {
        assert!(matches!(services::values("duckdns", "_acme-challenge.a.duckdns.org."), Ok(Values::One)));
        assert!(services::values("duckdns", FQDN).unwrap_err().contains("duckdns.org"));
        assert!(matches!(services::values("cloudflare", FQDN), Ok(Values::Many)));
    }

    #[tokio::test]
    async fn turns_are_taken_by_service_and_what_it_is_configured_with() {
        let turns = Turns::default();
        let [one, other] = ["a", "b"].map(|token| service("vultr", &[("api_token", token)]));
        let held = turns.at(&one).await;
        let _other = turns.at(&other).await;
        let mut waiting = Box::pin(turns.at(&one));
        assert!(futures_poll(&mut waiting).is_none());
        drop(held);
        waiting.await;
    }

    /// What a future comes to, if it is done.
    fn futures_poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        }
    }
}
