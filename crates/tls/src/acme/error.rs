//! Why there is no certificate yet. It is logged, shown as the last error of its name, and tried again.

use super::options::ChallengeKind;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub(super) enum OrderError {
    #[error(transparent)]
    Store(#[from] crate::Error),
    #[error("{}", with_causes(.0))]
    Ca(#[from] instant_acme::Error),
    /// The CA's own words.
    #[error("the CA could not verify the name by the challenge {challenge}: {reason}")]
    Challenge { challenge: &'static str, reason: String },
    #[error("the CA offers none of the challenges that are enabled for this name (it offers {offered})")]
    NoChallenge { offered: String },
    #[error("an IP address is certified by the HTTP challenge only, which is disabled")]
    Address,
    #[error("a public CA certifies a wildcard by the DNS challenge only, which is not set up")]
    Wildcard,
    #[error("the CA has closed the order: {0}")]
    Closed(String),
    #[error("the CA's certificate is not for this name")]
    OtherName,
    #[error("the key or the request for the certificate could not be made: {0}")]
    Request(#[from] rcgen::Error),
    #[error("the program for the DNS challenge, {}, {reason}", program.display())]
    DnsHook { program: PathBuf, reason: String },
    #[error("the name server for the DNS challenge, {server}, {reason}")]
    DnsUpdate { server: String, reason: String },
    #[error("the service for the DNS challenge, {service}, {reason}")]
    DnsService { service: String, reason: String },
    /// Nothing was changed.
    #[error("the service for the DNS challenge, {service}, {reason}")]
    DnsRefused { service: String, reason: String },
    #[error(
        "{service} has set the record of the DNS challenge, but it is not seen: {reason}; `propagation_timeout` says how long that may take, `resolvers` who is asked instead"
    )]
    DnsUnseen { service: String, reason: String },
    #[error("ZeroSSL needs the address of an account: write `email`")]
    ZeroSslAddress,
    #[error("ZeroSSL gives no account: {0}")]
    ZeroSsl(String),
    #[error("the MAC key of the external account is not base64url: {0}")]
    Eab(base64::DecodeError),
    #[error("the stored key of the account, {}, cannot be used: {reason}", path.display())]
    AccountKey { path: PathBuf, reason: String },
    #[error("the account at the CA cannot be used: {0}")]
    Account(String),
    /// Of several, each with its reason.
    #[error("no CA has issued a certificate: {0}")]
    Everywhere(String),
    #[error("the order was not done within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("a task of the order died: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl OrderError {
    /// What several CAs have answered, by their directories.
    pub fn of_all(mut refusals: Vec<(&str, Self)>) -> Self {
        match refusals.pop() {
            Some((_, only)) if refusals.is_empty() => only,
            last => {
                let each = refusals.into_iter().chain(last).map(|(ca, error)| format!("{ca}: {error}"));
                Self::Everywhere(each.collect::<Vec<_>>().join("; "))
            }
        }
    }

    /// Whether another challenge may succeed where this one has failed.
    pub fn is_of_challenge(&self) -> bool {
        matches!(self, Self::Challenge { .. })
    }

    /// Whether the CA does not know the account, as after the data of a test CA was lost.
    pub fn is_of_account(&self) -> bool {
        self.has_type("accountDoesNotExist")
    }

    /// An error type of RFC 8555 §6.7.
    fn has_type(&self, name: &str) -> bool {
        matches!(self, Self::Ca(error) if is_problem(error, name))
    }
}

pub(super) fn is_problem(error: &instant_acme::Error, name: &str) -> bool {
    let instant_acme::Error::Api(problem) = error else { return false };
    let kind = problem.r#type.as_deref().and_then(|kind| kind.strip_prefix("urn:ietf:params:acme:error:"));
    kind == Some(name)
}

pub(super) fn io_error(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> instant_acme::Error {
    instant_acme::Error::Other(Box::new(io::Error::other(error)))
}

/// Libraries say "client error (Connect)" and hide what happened in the causes.
fn with_causes(error: &instant_acme::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

pub(super) fn challenge_name(kind: ChallengeKind) -> &'static str {
    match kind {
        ChallengeKind::Http => "http-01",
        ChallengeKind::TlsAlpn => "tls-alpn-01",
    }
}
