//! Certificates of all sites that have no `tls` directive of their own; see [HTTPS](https.md).
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `auto_https off` | | no certificates but those of `tls` directives, no redirects; a port alone is plain HTTP |
//! | `auto_https disable_redirects` | | no redirects from plain HTTP |
//! | `auto_https disable_certs` | | no certificates but those of `tls` directives |
//! | `auto_https ignore_loaded_certs` | | a wildcard certificate from files does not serve the names that other sites have |
//! | `local_certs` | | certificates of the local CA for all names, public ones too |
//! | `pki { ca local { … } }` | | what the [local CA](https.md#the-local-ca) is like, see below |
//! | `skip_install_trust` | | the local CA's root is not put among those that the system trusts |
//! | `default_sni NAME` | | the name of a handshake that has none |
//! | `fallback_sni NAME` | | the name whose certificate serves names without one |
//! | `key_type TYPE` | p256 | of certificates that are made: ed25519, p256, p384, rsa2048, rsa4096 |
//! | `storage file_system PATH` | `caddy` in `$XDG_DATA_HOME` or in `~/.local/share` | where certificates and the local CA are kept |
//! | `storage redis { … }` | | where they are kept for [several instances](#storage) |
//! | `renew_interval DURATION` | 10m | how often certificates are looked at for renewal |
//! | `ocsp_stapling off`, `ocsp_interval DURATION` | | accepted; OCSP responses are never stapled |
//! | `storage_check off`, `storage_clean_interval DURATION` | | accepted, without an effect |
//! | `cert_issuer internal` | | as `local_certs`; with `{ lifetime DURATION }` for how long a certificate is valid |
//! | `cert_issuer acme [DIRECTORY] { … }`, `cert_issuer zerossl KEY` | | certificates of a public CA for all names, with the options of the [issuer](#tls); of several the first that issues one |
//! | `on_demand_tls { ask URL }` | | who is asked whether a name may have a certificate on demand |
//! | `on_demand_tls { interval DURATION; burst N }` | 10 in 10 s for each account | orders on demand at public CAs: N at most in DURATION |
//! | `email`, `acme_ca`, `acme_ca_root`, `acme_eab { key_id; mac_key }` | | of the account at a public CA, its directory, the root of its server, and an external account |
//! | `acme_dns SERVICE …`, `acme_dns rfc2136 { … }`, `acme_dns exec …` | | the DNS challenge for all names of a public CA, as `dns` of [tls](#tls) |
//! | `dns SERVICE …`, `dns rfc2136 { … }`, `dns exec …` | | who sets the records where `acme_dns`, or the `dns` of a site, stands alone |
//! | `tls_resolvers ADDRESS…` | those of the system | `resolvers` of [tls](#tls), for all sites |
//!
//! | option of `ca local` | default | meaning |
//! |---|---|---|
//! | `name NAME` | Regent Local Authority | begins both of the next names |
//! | `root_cn NAME`, `intermediate_cn NAME` | the name, the year and what it is | common names of certificates that are made; those that are there stay until they are renewed |
//! | `intermediate_lifetime DURATION` | 168h | |
//! | `root { cert FILE; key FILE }` | | signs with a root of yours, which is neither made nor renewed here. The key is needed once in a lifetime of the intermediate |

mod on_demand;
mod pki;

use super::{GlobalOptions, storage};
use crate::call::Call;
use crate::context::Context;
use crate::directives::tls::{dns, issuer, parameters};
use crate::model::{Acme, Eab, InstallTrust, OcspStapling};
use crate::problems::{error, unknown, unknown_option};
use crate::resolvers;
use crate::values;
use issuer::Issuer;
use regent_caddyfile::{Error, Token};
use std::path::Path;

pub(super) const OPTIONS: &[&str] = &[
    "acme_ca",
    "acme_ca_root",
    "acme_dns",
    "acme_eab",
    "auto_https",
    "cert_issuer",
    "default_sni",
    "dns",
    "email",
    "fallback_sni",
    "https_port",
    "key_type",
    "local_certs",
    "ocsp_interval",
    "ocsp_stapling",
    "on_demand_tls",
    "pki",
    "renew_interval",
    "skip_install_trust",
    "storage",
    "storage_check",
    "storage_clean_interval",
    "tls_resolvers",
];

const UNCHECKED: &str =
    "`storage_check` has no effect: a storage is written to when there is something to keep";
const NOT_CLEANED: &str =
    "`storage_clean_interval` has no effect: what has expired stays in the storage, and takes little room";
const NO_OCSP: &str = "`ocsp_interval` has no effect: OCSP responses are never stapled";

/// The words of `auto_https`.
#[derive(Debug, Clone, Default)]
pub(crate) struct AutoHttps(Vec<&'static str>);

impl AutoHttps {
    const WORDS: &[&str] =
        &["disable_certs", "disable_redirects", "ignore_loaded_certs", "off", "prefer_wildcard"];

    pub fn is_on(&self) -> bool {
        !self.has("off")
    }

    pub fn redirects(&self) -> bool {
        self.is_on() && !self.has("disable_redirects")
    }

    pub fn makes_certificates(&self) -> bool {
        self.is_on() && !self.has("disable_certs")
    }

    pub fn ignores_files(&self) -> bool {
        self.has("ignore_loaded_certs")
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    fn add(&mut self, cx: &mut Context<'_>, token: &Token) -> Result<(), Error> {
        let known = Self::WORDS.iter().find(|word| **word == token.text);
        let word = *known.ok_or_else(|| unknown(token, "value of `auto_https`", Self::WORDS))?;
        if word == "prefer_wildcard" {
            cx.warn(token, "`prefer_wildcard` has no effect: wildcard certificates are preferred in any case, as in Caddy since 2.10");
        }
        self.0.push(word);
        Ok(())
    }
}

/// Applies one of [`OPTIONS`].
pub(super) fn apply(cx: &mut Context<'_>, call: &Call<'_>, options: &mut GlobalOptions) -> Result<(), Error> {
    let name = call.name();
    match name {
        "auto_https" => {
            for token in
                call.some("auto_https off | disable_redirects | disable_certs | ignore_loaded_certs")?
            {
                options.auto_https.add(cx, token)?;
            }
        }
        "https_port" => {
            options.global.tls.https_port =
                values::integer(call.one("https_port N")?, 1..=u16::MAX, "https_port")?;
        }
        "default_sni" => {
            options.global.tls.default_sni = Some(server_name(cx, call.one("default_sni NAME")?)?)
        }
        "fallback_sni" => {
            options.global.tls.fallback_sni = Some(server_name(cx, call.one("fallback_sni NAME")?)?);
        }
        "local_certs" => {
            call.exactly::<0>(name)?;
            options.issuer.get_or_insert(Issuer::INTERNAL);
        }
        "skip_install_trust" => {
            call.exactly::<0>(name)?;
            options.global.tls.install_trust = InstallTrust::Never;
        }
        "key_type" => options.key_type = parameters::key_type(call.one("key_type TYPE")?)?,
        "storage" => storage::parse(cx, call, &mut options.global.tls)?,
        "renew_interval" => {
            options.global.tls.renew_interval =
                values::positive_duration(call.one("renew_interval DURATION")?)?;
        }
        "ocsp_stapling" => options.global.tls.ocsp_stapling = ocsp_stapling(call.one("ocsp_stapling off")?)?,
        "on_demand_tls" => on_demand::apply(cx, call, &mut options.global.tls)?,
        "pki" => pki::apply(cx, call, &mut options.global.tls)?,
        "cert_issuer" => cert_issuer(cx, call, options)?,
        "dns" => options.default_dns = Some(dns::parse(cx, call)?),
        "tls_resolvers" => options.acme.resolvers = resolvers::parse(cx, call)?,
        "storage_check" => match call.one("storage_check off")? {
            off if off.text == "off" => cx.warn(call.name, UNCHECKED),
            other => return Err(error(other, "`storage_check` can only be `off`")),
        },
        "storage_clean_interval" | "ocsp_interval" => {
            let token = call.one(&format!("{name} DURATION"))?;
            if token.text != "off" {
                values::duration(token)?;
            }
            let what = if name == "ocsp_interval" { NO_OCSP } else { NOT_CLEANED };
            cx.warn(call.name, what);
        }
        _ => acme(cx, call, options)?,
    }
    Ok(())
}

/// What is about the account at a public CA.
fn acme(cx: &mut Context<'_>, call: &Call<'_>, options: &mut GlobalOptions) -> Result<(), Error> {
    match call.name() {
        // Caddy takes `email` with nothing behind it, as an unset variable leaves it.
        "email" if call.args.is_empty() => call.without_block("email ADDRESS")?,
        "email" => options.acme.email = Some(cx.fixed_text(call.one("email ADDRESS")?)?),
        "acme_ca" => options.acme.directory = Some(issuer::url(cx, call.one("acme_ca URL")?)?),
        "acme_ca_root" => {
            let token = call.one("acme_ca_root FILE")?;
            options.acme.trusted_roots = vec![cx.environment.absolute(Path::new(&cx.fixed_text(token)?))];
        }
        "acme_dns" if call.args.is_empty() && call.block.is_none() => {
            options.acme_dns = Some(call.name.clone());
        }
        "acme_dns" => options.acme.dns = Some(dns::parse(cx, call)?),
        _ => options.acme.eab = Some(eab(cx, call)?),
    }
    Ok(())
}

fn eab(cx: &Context<'_>, call: &Call<'_>) -> Result<Eab, Error> {
    call.no_arguments("acme_eab { key_id ID; mac_key KEY }")?;
    let (mut key_id, mut mac_key) = (None, None);
    for option in call.options() {
        match option.name() {
            "key_id" => key_id = Some(cx.fixed_text(option.one("key_id ID")?)?),
            "mac_key" => mac_key = Some(cx.fixed_text(option.one("mac_key KEY")?)?),
            _ => return Err(unknown_option(option.name, "acme_eab", &["key_id", "mac_key"], &[])),
        }
    }
    match (key_id, mac_key) {
        (Some(key_id), Some(mac_key)) => Ok(Eab { key_id, mac_key }),
        _ => Err(error(call.name, "`acme_eab` needs both `key_id` and `mac_key`")),
    }
}

fn cert_issuer(cx: &mut Context<'_>, call: &Call<'_>, options: &mut GlobalOptions) -> Result<(), Error> {
    let issuer = issuer::parse(cx, call, &options.acme, &options.global.tls.local_ca)?;
    match &mut options.issuer {
        Some(named) => named.join(call.name, issuer),
        none => {
            *none = Some(issuer);
            Ok(())
        }
    }
}

/// What the other options say of a public CA goes for `cert_issuer acme` too, wherever they stand (Caddy's
/// fillInGlobalACMEDefaults).
pub(super) fn complete_issuer(cx: &mut Context<'_>, options: &mut GlobalOptions) {
    if let Some(token) = options.acme_dns.take() {
        options.acme.dns = options.default_dns.clone();
        if options.acme.dns.is_none() {
            cx.errors.push(error(&token, "write who sets the records here, or in the global option `dns`"));
        }
    }
    if let Some(Issuer::Acme(cas)) = &mut options.issuer {
        let of_acme = cas.iter_mut().filter(|acme| acme.zerossl_key.is_none());
        of_acme.for_each(|acme| complete(acme, options.acme.clone()));
    }
}

fn complete(issuer: &mut Acme, all: Acme) {
    issuer.email = issuer.email.take().or(all.email);
    issuer.directory = issuer.directory.take().or(all.directory);
    issuer.eab = issuer.eab.take().or(all.eab);
    issuer.dns = issuer.dns.take().or(all.dns);
    if issuer.resolvers.is_empty() {
        issuer.resolvers = all.resolvers;
    }
    if issuer.trusted_roots.is_empty() {
        issuer.trusted_roots = all.trusted_roots;
    }
}

/// A name as clients send it: a host name without a port.
fn server_name(cx: &Context<'_>, token: &Token) -> Result<String, Error> {
    let name = cx.host_name(token)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(error(token, format!("`{name}` is no server name; write one such as `example.com`")));
    }
    Ok(name.to_ascii_lowercase())
}

fn ocsp_stapling(token: &Token) -> Result<OcspStapling, Error> {
    if token.text == "off" {
        Ok(OcspStapling::Off)
    } else {
        Err(error(token, "`ocsp_stapling` can only be `off`"))
    }
}

#[cfg(test)]
mod tests;
