//! Where the certificate for each name comes from.
//!
//! What a `tls` directive says goes first. Without it the local CA signs for names that no public CA would sign for
//! (certmagic's SubjectQualifiesForPublicCert), and a public one for all others. A name that a site with a wildcard covers
//! has no certificate of its own, as in Caddy since 2.10.

use super::{Opened, Way};
use crate::address::Security;
use crate::context::Context;
use crate::directives::tls::issuer::Issuer;
use crate::directives::tls::{Tls, Wildcard};
use crate::global::GlobalOptions;
use crate::model::{Acme, CertificateSource, Challenge, Issuance, SiteTls, TlsVersions};
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::net::IpAddr;

/// What has to be known of the whole file.
pub(super) struct Certificates<'a> {
    options: &'a GlobalOptions,
    /// Names such as `*.example.com` that have a certificate.
    wildcards: Vec<String>,
}

impl<'a> Certificates<'a> {
    pub fn new(options: &'a GlobalOptions, opened: &[Opened<'_>]) -> Self {
        let mut wildcards = Vec::new();
        for block in opened {
            let has_files = block.tls.as_ref().is_some_and(Tls::has_files);
            let is_made = block.tls.as_ref().is_some_and(|tls| tls.issuer.is_some())
                || options.auto_https.makes_certificates();
            if (has_files && options.auto_https.ignores_files()) || !(has_files || is_made) {
                continue;
            }
            let hosts = block.ways.iter().filter(|way| way.security == Security::Tls);
            wildcards
                .extend(hosts.filter_map(|way| way.door.host.clone().filter(|host| host.starts_with("*."))));
        }
        Self { options, wildcards }
    }

    /// TLS of the site that has these `tls` directives, for one of its ways.
    pub fn site_tls(&self, tls: Option<&Tls<'_>>, way: &Way<'_>) -> Result<SiteTls, Error> {
        let source = self.source(tls, way)?;
        Ok(SiteTls {
            source,
            key_type: tls.map_or(self.options.key_type, |tls| tls.key_type),
            versions: tls.map_or(TlsVersions::default(), |tls| tls.versions),
            ciphers: tls.map(|tls| tls.ciphers.clone()).unwrap_or_default(),
            curves: tls.map(|tls| tls.curves.clone()).unwrap_or_default(),
            alpn: tls.map(|tls| tls.alpn.clone()).unwrap_or_default(),
            client_auth: tls.and_then(|tls| tls.client_auth.clone()),
        })
    }

    fn source(&self, tls: Option<&Tls<'_>>, way: &Way<'_>) -> Result<CertificateSource, Error> {
        let source = self.wanted(tls, way)?;
        if let CertificateSource::Acme { cas, issuance } = &source {
            let names_issuer = |tls: &&Tls<'_>| tls.issuer.is_some();
            let token = tls.filter(names_issuer).map_or(way.token, |tls| tls.name);
            let checked = |acme| check_acme(acme, *issuance, token, way);
            let is_any = cas.iter().any(|acme| checked(acme).is_ok());
            cas.iter().filter(|_| !is_any).try_for_each(checked)?;
        }
        Ok(source)
    }

    /// What the file asks for, built or not.
    fn wanted(&self, tls: Option<&Tls<'_>>, way: &Way<'_>) -> Result<CertificateSource, Error> {
        if let Some(tls) = tls.filter(|tls| tls.has_files()) {
            let (pairs, directories) = (tls.pairs.clone(), tls.directories.clone());
            return Ok(CertificateSource::Files { pairs, directories });
        }
        let issuance = tls.map_or(Issuance::AtStart, |tls| tls.issuance);
        let named = tls.and_then(|tls| tls.issuer.clone());
        if issuance == Issuance::AtStart && self.shares(tls, way, named.as_ref()) {
            return Ok(CertificateSource::Shared);
        }
        if let Some(host) = &way.door.host {
            check_name(way, host)?;
        }
        match named.unwrap_or_else(|| self.default_issuer(way)) {
            Issuer::Internal { lifetime } => Ok(CertificateSource::Internal { lifetime, issuance }),
            Issuer::Acme(cas) => {
                self.check_permission(way, issuance)?;
                Ok(CertificateSource::Acme { cas, issuance })
            }
        }
    }

    /// Without a bound on the names, anyone could use up what the CA allows (Caddy's caddytls/automation.go).
    fn check_permission(&self, way: &Way<'_>, issuance: Issuance) -> Result<(), Error> {
        let is_open = way.door.host.as_deref().is_none_or(|host| host.contains('*'));
        if issuance == Issuance::OnDemand && is_open && self.options.global.tls.on_demand_ask.is_none() {
            let message = format!(
                "`{}` would get a certificate for any name that a client asks for; set the global option `on_demand_tls {{ ask URL }}`",
                way.token.text
            );
            return Err(error(way.token, message));
        }
        Ok(())
    }

    /// Whether the site has no certificate of its own.
    fn shares(&self, tls: Option<&Tls<'_>>, way: &Way<'_>, named: Option<&Issuer>) -> bool {
        let Some(host) = &way.door.host else { return true };
        if named.is_some() {
            return false;
        }
        let may_share = tls.is_none_or(|tls| tls.wildcard == Wildcard::Shared);
        let is_covered = || self.wildcards.iter().any(|wildcard| super::covers(wildcard, host));
        !self.options.auto_https.makes_certificates() || (may_share && is_covered())
    }

    fn default_issuer(&self, way: &Way<'_>) -> Issuer {
        let is_internal = way.door.host.as_deref().is_some_and(is_internal);
        match &self.options.issuer {
            Some(issuer) => issuer.clone(),
            None if is_internal => Issuer::INTERNAL,
            None => Issuer::usual(self.options.acme.clone()),
        }
    }
}

/// Whether a public CA can issue what is asked for. `token`: where the CA is asked.
fn check_acme(acme: &Acme, issuance: Issuance, token: &Token, way: &Way<'_>) -> Result<(), Error> {
    let name = &way.token.text;
    if acme.dns.is_some() {
        return Ok(());
    }
    // On demand, each name that the wildcard covers has a certificate of its own.
    if issuance == Issuance::AtStart && way.door.host.as_deref().is_some_and(|host| host.starts_with("*.")) {
        let message = format!(
            "a public CA issues a certificate for `{name}` by the DNS challenge only; write `tls {{ dns exec PROGRAM }}`, `tls internal` or `tls CERT KEY` in the block of the site"
        );
        return Err(error(token, message));
    }
    if (acme.http_challenge, acme.tls_alpn_challenge) == (Challenge::Disabled, Challenge::Disabled) {
        let message =
            format!("no challenge is left by which a public CA could issue a certificate for `{name}`");
        return Err(error(token, message));
    }
    Ok(())
}

/// Whether a certificate can be made for the name.
fn check_name(way: &Way<'_>, host: &str) -> Result<(), Error> {
    let fails = |why: &str| {
        Err(error(
            way.token,
            format!("no certificate can be made for `{host}`: {why}; write `tls CERT KEY`, or another name"),
        ))
    };
    // As certmagic's SubjectQualifiesForCert.
    if host.contains('*') && (!host.starts_with("*.") || host[1..].contains('*')) {
        return fails("a wildcard stands for the first label of a name, and for no other");
    }
    Ok(())
}

/// Whether no public CA would sign for the name, so that the local one does where nothing else is said: as certmagic's
/// SubjectQualifiesForPublicCert, but every IP address is internal, as public CAs sign for few.
pub fn is_internal(host: &str) -> bool {
    let is_local = ["localhost", "local", "internal", "home.arpa"].iter().any(|suffix| {
        host.strip_suffix(suffix)
            .is_some_and(|rest| rest.ends_with('.') || (rest.is_empty() && *suffix == "localhost"))
    });
    let is_broad = host.contains('*') && host.matches('.').count() < 2;
    is_local || is_broad || host.parse::<IpAddr>().is_ok()
}

/// Reports sites with TLS if there is no certificate in the whole file for any of them. One that is there without TLS too, as
/// `:80, :443` is, is no worse off than with Caddy.
pub(super) fn check_any(cx: &mut Context<'_>, secured: &[(SiteTls, &Way<'_>, bool)]) {
    if secured.iter().any(|(tls, ..)| tls.source != CertificateSource::Shared) {
        return;
    }
    for (_, way, has_plain_way) in secured {
        let message = format!(
            "`{}` has TLS but no certificate, and no other site has one to share; write `tls CERT KEY` or `tls internal`{}, or `http://` before the address",
            way.token.text,
            if way.door.host.is_none() { " with `on_demand` in its block" } else { "" }
        );
        if *has_plain_way {
            cx.warn(way.token, format!("no client can connect there: {message}"));
        } else {
            cx.errors.push(error(way.token, message));
        }
    }
}

#[cfg(test)]
mod tests;
