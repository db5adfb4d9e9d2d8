//! Policies of `automation`: who signs certificates.

use crate::Writer;
use crate::object::{Object, nanoseconds};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regent_config::{
    Acme, CertificateSource, Challenge, DnsProvider, Eab, INTERNAL_LIFETIME, Issuance, KeyType, Site,
    TsigAlgorithm, TsigKey, escaped, is_internal,
};
use std::time::Duration;

/// How the certificates of some names come about.
#[derive(PartialEq)]
pub(super) struct Policy<'a> {
    issuer: Issuer<'a>,
    pub issuance: Issuance,
    key_type: KeyType,
}

#[derive(PartialEq)]
enum Issuer<'a> {
    Internal(Duration),
    Acme(&'a [Acme]),
}

impl<'a> Policy<'a> {
    /// `None`: the site's certificates are not made.
    pub fn of(site: &'a Site) -> Option<Self> {
        let tls = site.tls.as_ref()?;
        let (issuer, issuance) = match &tls.source {
            CertificateSource::Files { .. } | CertificateSource::Shared => return None,
            CertificateSource::Internal { lifetime, issuance } => (Issuer::Internal(*lifetime), *issuance),
            CertificateSource::Acme { cas, issuance } => (Issuer::Acme(cas), *issuance),
        };
        Some(Self { issuer, issuance, key_type: tls.key_type })
    }

    /// Whether it is what the name has without a policy.
    pub fn is_usual_for(&self, host: &str) -> bool {
        let is_usual = match self.issuer {
            Issuer::Internal(lifetime) => lifetime == INTERNAL_LIFETIME && is_internal(host),
            Issuer::Acme(cas) => *cas == [Acme::default()] && !is_internal(host),
        };
        is_usual && self.issuance == Issuance::AtStart && self.key_type == KeyType::default()
    }

    pub fn is_public(&self) -> bool {
        matches!(self.issuer, Issuer::Acme(_))
    }
}

impl Writer<'_> {
    /// Without hosts, it is for all names.
    pub(super) fn automation_policy(&self, policy: &Policy<'_>, hosts: &[&str]) -> Object {
        let Policy { issuer, issuance, key_type } = policy;
        let mut object = Object::new();
        object.set_list("subjects", hosts.iter().copied());
        let issuers = match issuer {
            Issuer::Internal(lifetime) => vec![internal(*lifetime)],
            Issuer::Acme(cas) => cas.iter().map(|acme| self.public_issuer(acme)).collect(),
        };
        object.set("issuers", issuers.into_iter().map(Object::build).collect::<Vec<_>>());
        object.set_unless("key_type", key_type_name(*key_type), key_type_name(KeyType::default()));
        object.set_if("on_demand", *issuance == Issuance::OnDemand);
        object
    }

    fn public_issuer(&self, acme: &Acme) -> Object {
        match &acme.zerossl_key {
            Some(key) => {
                let mut object = Object::of_kind("module", "zerossl");
                object.set("api_key", escaped(&key.0));
                object.non_empty("cname_validation", self.dns_challenge(acme));
                object
            }
            None => self.acme(acme),
        }
    }

    fn acme(&self, acme: &Acme) -> Object {
        let Acme {
            zerossl_key: _,
            // In `dns_challenge`.
            dns: _,
            dns_override_domain: _,
            dns_ttl: _,
            propagation_delay: _,
            propagation_timeout: _,
            resolvers: _,
            directory,
            test_directory,
            email,
            eab,
            trusted_roots,
            profile,
            http_challenge,
            tls_alpn_challenge,
        } = acme;
        let mut object = Object::of_kind("module", "acme");
        object.set_some("ca", directory.as_ref().map(|url| escaped(url)));
        object.set_some("test_ca", test_directory.as_ref().map(|url| escaped(url)));
        object.set_some("email", email.as_ref().map(|email| escaped(email)));
        if let Some(Eab { key_id, mac_key }) = eab {
            let mut account = Object::new();
            account.set("key_id", escaped(key_id));
            account.set("mac_key", escaped(mac_key));
            object.set("external_account", account);
        }
        object.set_list("trusted_roots_pem_files", trusted_roots.iter().map(|file| super::path(file)));
        object.set_some("profile", profile.as_ref().map(|name| escaped(name)));
        let mut challenges = Object::new();
        challenges.non_empty("http", disabled(*http_challenge));
        challenges.non_empty("tls-alpn", disabled(*tls_alpn_challenge));
        challenges.non_empty("dns", self.dns_challenge(acme));
        object.non_empty("challenges", challenges);
        object
    }

    fn dns_challenge(&self, acme: &Acme) -> Object {
        let Acme {
            dns, dns_override_domain, dns_ttl, propagation_delay, propagation_timeout, resolvers, ..
        } = acme;
        let mut of_dns = Object::new();
        of_dns.set_some("provider", dns.as_ref().map(|provider| self.dns(provider)));
        of_dns.set_some("override_domain", dns_override_domain.as_ref().map(|name| escaped(name)));
        of_dns.set_some("ttl", dns_ttl.map(|seconds| nanoseconds(Duration::from_secs(seconds.into()))));
        of_dns.set_duration("propagation_delay", *propagation_delay, Duration::ZERO);
        of_dns.set_some("propagation_timeout", propagation_timeout.map(off_or_nanoseconds));
        of_dns.set_list("resolvers", resolvers.iter().map(ToString::to_string));
        of_dns
    }

    fn dns(&self, provider: &DnsProvider) -> Object {
        match provider {
            DnsProvider::Exec { program, arguments } => {
                let mut object = Object::of_kind("name", "exec");
                object.set("program", super::path(program));
                object.set_list("arguments", arguments.iter().map(|argument| escaped(argument)));
                object
            }
            DnsProvider::Rfc2136 { host, port, key } => {
                let mut object = Object::of_kind("name", "rfc2136");
                object.set("server", crate::server::with_port(host, *port));
                if let Some(TsigKey { name, algorithm, secret }) = key {
                    object.set("key_name", escaped(name));
                    object.set("key_alg", algorithm_name(*algorithm));
                    object.set("key", STANDARD.encode(secret));
                }
                object
            }
            DnsProvider::Hosted { service, options } => {
                let mut object = Object::of_kind("name", service);
                options.iter().for_each(|(name, value)| object.set(name, escaped(value)));
                object
            }
        }
    }
}

/// As Caddy has it: -1 stands for "off".
fn off_or_nanoseconds(timeout: Duration) -> i64 {
    if timeout.is_zero() { -1 } else { nanoseconds(timeout) }
}

fn internal(lifetime: Duration) -> Object {
    let mut object = Object::of_kind("module", "internal");
    if lifetime != INTERNAL_LIFETIME {
        object.set("lifetime", nanoseconds(lifetime));
    }
    object
}

fn disabled(challenge: Challenge) -> Object {
    let mut object = Object::new();
    object.set_if("disabled", challenge == Challenge::Disabled);
    object
}

fn key_type_name(key_type: KeyType) -> &'static str {
    match key_type {
        KeyType::Ed25519 => "ed25519",
        KeyType::P256 => "p256",
        KeyType::P384 => "p384",
        KeyType::Rsa2048 => "rsa2048",
        KeyType::Rsa4096 => "rsa4096",
    }
}

fn algorithm_name(algorithm: TsigAlgorithm) -> &'static str {
    match algorithm {
        TsigAlgorithm::HmacSha1 => "hmac-sha1",
        TsigAlgorithm::HmacSha224 => "hmac-sha224",
        TsigAlgorithm::HmacSha256 => "hmac-sha256",
        TsigAlgorithm::HmacSha384 => "hmac-sha384",
        TsigAlgorithm::HmacSha512 => "hmac-sha512",
    }
}
