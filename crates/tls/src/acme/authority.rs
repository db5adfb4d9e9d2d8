//! A CA as a site asks it, and what of a name is tried there until it issues a certificate.

use super::ca::Ca;
use super::error::OrderError;
use super::managed::Common;
use super::options::{Acme, ChallengeKind};
use super::order::{self, Proof, Wish};
use super::stored::{Issued, Stored};
use crate::crypto;
use instant_acme::CertificateIdentifier;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub(super) struct Authority {
    pub acme: Acme,
    pub ca: Arc<Ca>,
    pub test_ca: Option<Arc<Ca>>,
}

/// Those with the same options have the same accounts.
impl PartialEq for Authority {
    fn eq(&self, other: &Self) -> bool {
        self.acme == other.acme
    }
}

/// The challenge of a name that has worked last, or has not failed, at whatever CA.
#[derive(Debug, Default)]
pub(super) struct Preferred(Mutex<Option<ChallengeKind>>);

impl Preferred {
    pub fn continue_from(&self, previous: &Self) {
        self.set(previous.get());
    }

    fn get(&self) -> Option<ChallengeKind> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, kind: Option<ChallengeKind>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = kind;
    }
}

impl Authority {
    /// Whether these are asked with these options, in this order.
    pub fn are_of(authorities: &[Self], cas: &[Acme]) -> bool {
        authorities.iter().map(|authority| &authority.acme).eq(cas)
    }

    /// It, and where failed orders are tried first.
    pub fn cas(&self) -> impl Iterator<Item = &Arc<Ca>> {
        std::iter::once(&self.ca).chain(&self.test_ca)
    }

    pub fn has_issued(&self, stored: &Stored) -> bool {
        stored.issuer_key == self.ca.issuer_key()
    }

    /// `is_retry`: an order for this name has failed before. `replaces`: what is served, if it is of this CA.
    pub async fn order(
        &self,
        name: &str,
        common: &Common,
        preferred: &Preferred,
        is_retry: bool,
        replaces: Option<CertificateIdentifier<'static>>,
    ) -> Result<Issued, OrderError> {
        if is_retry && let Some(test_ca) = &self.test_ca {
            // What fails here does not use up the limits of the CA itself.
            self.order_from(test_ca, name, common, preferred, None).await?;
            tracing::info!(name, ca = test_ca.directory(), "the order succeeded at the test CA");
        }
        self.order_from(&self.ca, name, common, preferred, replaces).await
    }

    async fn order_from(
        &self,
        ca: &Ca,
        name: &str,
        common: &Common,
        preferred: &Preferred,
        replaces: Option<CertificateIdentifier<'static>>,
    ) -> Result<Issued, OrderError> {
        let profile = self.acme.profile.as_deref();
        let wish = Wish { name, key_type: self.acme.key_type, profile, replaces };
        let mut last = None;
        for proof in self.proofs(name, common, preferred.get())? {
            match order::place(ca, &common.challenges, &wish, proof).await {
                Ok(issued) => {
                    if let Proof::Server(kind) = proof {
                        preferred.set(Some(kind));
                    }
                    return Ok(issued);
                }
                Err(error) if error.is_of_challenge() => {
                    tracing::warn!(name, ca = ca.directory(), %error, "a challenge failed");
                    preferred.set(None);
                    last = Some(error);
                }
                // Why one that is offered has failed says more.
                Err(error @ OrderError::NoChallenge { .. }) => last = last.or(Some(error)),
                Err(error) => {
                    if error.is_of_account() {
                        ca.forget_account().await?;
                    }
                    return Err(error);
                }
            }
        }
        Err(last.unwrap_or(OrderError::NoChallenge { offered: "some".to_owned() }))
    }

    /// In the order in which they are tried: what has worked first, otherwise any, so that one that the network does not
    /// let through is not always the first.
    fn proofs<'a>(
        &'a self,
        name: &str,
        common: &'a Common,
        preferred: Option<ChallengeKind>,
    ) -> Result<Vec<Proof<'a>>, OrderError> {
        if let Some(dns) = &self.acme.dns {
            return Ok(vec![Proof::Dns(dns, &common.dns_turns)]);
        }
        if name.starts_with("*.") {
            return Err(OrderError::Wildcard);
        }
        let mut kinds = self.acme.challenges.clone();
        if name.parse::<IpAddr>().is_ok() {
            // The other one would come with the reverse name of the address (RFC 8738 §6), which no site has.
            kinds.retain(|kind| *kind == ChallengeKind::Http);
        }
        if kinds.is_empty() {
            return Err(OrderError::Address);
        }
        if crypto::random::<1>()[0].is_multiple_of(2) {
            kinds.reverse();
        }
        kinds.sort_by_key(|kind| Some(*kind) != preferred);
        Ok(kinds.into_iter().map(Proof::Server).collect())
    }
}
