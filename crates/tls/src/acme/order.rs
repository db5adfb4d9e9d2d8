//! One order, from the wish to the certificate (RFC 8555 §7.4).

use super::ca::Ca;
use super::challenges::{Challenge, Challenges, Presentation};
use super::dns::{Record, Turns};
use super::error::{OrderError, challenge_name};
use super::nonces::with_nonces;
use super::options::{ChallengeKind, DnsChallenge};
use super::stored::Issued;
use crate::KeyType;
use crate::certificate::Certificate;
use instant_acme::{
    Account, AuthorizationHandle, AuthorizationStatus, CertificateIdentifier, ChallengeHandle, ChallengeType,
    Identifier, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How the CA is asked whether it is done, unless it says when to (Retry-After).
const POLLING: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(500))
    .backoff(1.5)
    .timeout(Duration::from_secs(240));

/// What is wanted.
pub(super) struct Wish<'a> {
    pub name: &'a str,
    pub key_type: KeyType,
    pub profile: Option<&'a str>,
    /// What the new one replaces, for a CA with renewal information (RFC 9773 §5).
    pub replaces: Option<CertificateIdentifier<'a>>,
}

/// How the CA is to find that the name is ours.
#[derive(Debug, Clone, Copy)]
pub(super) enum Proof<'a> {
    Server(ChallengeKind),
    Dns(&'a DnsChallenge, &'a Arc<Turns>),
}

impl Proof<'_> {
    fn kind(self) -> ChallengeType {
        match self {
            Self::Server(ChallengeKind::Http) => ChallengeType::Http01,
            Self::Server(ChallengeKind::TlsAlpn) => ChallengeType::TlsAlpn01,
            Self::Dns(..) => ChallengeType::Dns01,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Server(kind) => challenge_name(kind),
            Self::Dns(..) => "dns-01",
        }
    }
}

/// What is there while the CA looks for it.
enum Evidence {
    Server(#[expect(dead_code, reason = "withdrawn when it is dropped")] Presentation),
    Dns(Record),
}

pub(super) async fn place(
    ca: &Ca,
    challenges: &Arc<Challenges>,
    wish: &Wish<'_>,
    proof: Proof<'_>,
) -> Result<Issued, OrderError> {
    let account = ca.account().await?;
    ca.pace().await;
    let mut order = begin(&account, wish).await?;
    authorize(&mut order, ca, challenges, proof).await?;
    let name = wish.name.to_owned();
    let key_type = wish.key_type;
    let (key, request) = tokio::task::spawn_blocking(move || make_request(&name, key_type)).await??;
    with_nonces!(order.finalize_csr(&request))?;
    let chain = with_nonces!(order.poll_certificate(&POLLING))?;
    check(wish.name, &chain, &key)?;
    let url = order.state().certificate.clone().unwrap_or_default();
    Ok(Issued { chain, key, url, account: account.id().to_owned() })
}

async fn begin(account: &Account, wish: &Wish<'_>) -> Result<Order, OrderError> {
    let identifiers = [match wish.name.parse() {
        Ok(address) => Identifier::Ip(address),
        Err(_) => Identifier::Dns(wish.name.to_owned()),
    }];
    let mut new = NewOrder::new(&identifiers);
    if let Some(profile) = wish.profile {
        new = new.profile(profile);
    }
    if let Some(replaces) = &wish.replaces {
        new = new.replaces(replaces.clone());
    }
    Ok(with_nonces!(account.new_order(&new))?)
}

/// Until the order may be finalized. What was presented is withdrawn whatever the outcome.
async fn authorize(
    order: &mut Order,
    ca: &Ca,
    challenges: &Arc<Challenges>,
    proof: Proof<'_>,
) -> Result<(), OrderError> {
    if order.state().status == OrderStatus::Ready {
        return Ok(());
    }
    let mut evidence = Vec::new();
    let presented = present(order, ca, challenges, proof, &mut evidence).await;
    let outcome = match presented {
        Ok(()) => wait(order, proof).await,
        Err(error) => Err(error),
    };
    for shown in evidence {
        if let Evidence::Dns(record) = shown {
            record.remove().await;
        }
    }
    outcome
}

async fn present(
    order: &mut Order,
    ca: &Ca,
    challenges: &Arc<Challenges>,
    proof: Proof<'_>,
    evidence: &mut Vec<Evidence>,
) -> Result<(), OrderError> {
    with_nonces!(fetch(order))?;
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        match authorization.status {
            AuthorizationStatus::Valid => continue,
            AuthorizationStatus::Pending => {}
            status => return Err(OrderError::Closed(format!("an authorization is {status:?}"))),
        }
        let offered = offered(&authorization);
        let Some(mut challenge) = authorization.challenge(proof.kind()) else {
            return Err(OrderError::NoChallenge { offered });
        };
        evidence.push(show(&challenge, ca, challenges, proof).await?);
        with_nonces!(challenge.set_ready())?;
    }
    Ok(())
}

/// Their iterator cannot go back after an error; what was fetched is not fetched again.
async fn fetch(order: &mut Order) -> Result<(), instant_acme::Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        authorization?;
    }
    Ok(())
}

fn offered(authorization: &AuthorizationHandle<'_>) -> String {
    let names = authorization.challenges.iter().map(|challenge| match &challenge.r#type {
        ChallengeType::Http01 => "http-01".to_owned(),
        ChallengeType::TlsAlpn01 => "tls-alpn-01".to_owned(),
        ChallengeType::Dns01 => "dns-01".to_owned(),
        ChallengeType::Unknown(name) => name.clone(),
        other => format!("{other:?}"),
    });
    names.collect::<Vec<_>>().join(", ")
}

async fn show(
    handle: &ChallengeHandle<'_>,
    ca: &Ca,
    challenges: &Arc<Challenges>,
    proof: Proof<'_>,
) -> Result<Evidence, OrderError> {
    let authorization = handle.key_authorization();
    let name = match &handle.identifier().identifier {
        Identifier::Dns(name) => name.clone(),
        Identifier::Ip(address) => address.to_string(),
        other => return Err(OrderError::Closed(format!("the CA asks to prove {other:?}"))),
    };
    match proof {
        Proof::Dns(dns, turns) => {
            Ok(Evidence::Dns(Record::set(dns, turns, &name, authorization.dns_value()).await?))
        }
        Proof::Server(kind) => {
            let challenge = Challenge {
                kind,
                name,
                url: handle.url.clone(),
                token: handle.token.clone(),
                key_authorization: authorization.as_str().to_owned(),
            };
            let (challenges, issuer_key) = (Arc::clone(challenges), ca.issuer_key());
            let presented =
                tokio::task::spawn_blocking(move || challenges.present(&issuer_key, challenge)).await?;
            Ok(Evidence::Server(presented))
        }
    }
}

async fn wait(order: &mut Order, proof: Proof<'_>) -> Result<(), OrderError> {
    match with_nonces!(order.poll_ready(&POLLING)) {
        Ok(OrderStatus::Ready) => Ok(()),
        Ok(status) => Err(why_not(order, proof)
            .await
            .unwrap_or_else(|| OrderError::Closed(format!("it is {status:?}")))),
        Err(error @ instant_acme::Error::Api(_)) => {
            Err(why_not(order, proof).await.unwrap_or_else(|| error.into()))
        }
        Err(error) => Err(error.into()),
    }
}

/// What the CA says of the challenge that it did not find met.
async fn why_not(order: &mut Order, proof: Proof<'_>) -> Option<OrderError> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let state = with_nonces!(authorization.refresh()).ok()?;
        if let Some(problem) = state.challenges.iter().find_map(|challenge| challenge.error.as_ref()) {
            let reason = problem.detail.clone().unwrap_or_else(|| problem.to_string());
            return Some(OrderError::Challenge { challenge: proof.name(), reason });
        }
    }
    None
}

/// A new key, as PEM, and the request for its certificate, as DER.
fn make_request(name: &str, key_type: KeyType) -> Result<(String, Vec<u8>), rcgen::Error> {
    let key = key_type.generate()?;
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key)?;
    Ok((key.serialize_pem(), request.der().to_vec()))
}

/// That what the CA has sent can be served.
fn check(name: &str, chain: &str, key: &str) -> Result<(), OrderError> {
    let (chain, key) = ((Path::new("from the CA"), chain.as_bytes()), (Path::new("new key"), key.as_bytes()));
    let certificate = Certificate::from_pem(chain, key)?;
    if certificate.is_for(name) { Ok(()) } else { Err(OrderError::OtherName) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_can_be_made_with_a_key_of_each_kind() {
        for key_type in [KeyType::Ed25519, KeyType::P256, KeyType::P384, KeyType::Rsa2048] {
            for name in ["a.test", "*.a.test", "::1"] {
                let (key, request) = make_request(name, key_type).unwrap();
                assert!(key.starts_with("-----BEGIN PRIVATE KEY-----"), "{key_type:?}");
                assert!(!request.is_empty());
            }
        }
    }
}
