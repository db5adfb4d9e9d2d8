//! `issuer internal`, `issuer acme` and `issuer zerossl`: who signs the certificates of a site, or of all (`cert_issuer`).

use super::{dns, file};
use crate::call::Call;
use crate::context::Context;
use crate::model::{Acme, Challenge, DnsProvider, Eab, INTERNAL_LIFETIME, LocalCa, Secret};
use crate::problems::{error, unknown, unknown_option};
use crate::resolvers;
use crate::values;
use regent_caddyfile::{Error, Token};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Issuer {
    /// The local CA.
    Internal { lifetime: Duration },
    /// The first of these that issues one.
    Acme(Vec<Acme>),
}

impl Issuer {
    pub const INTERNAL: Self = Self::Internal { lifetime: INTERNAL_LIFETIME };

    /// What Caddy takes where no CA is named (caddytls' DefaultIssuers): where there is an address, ZeroSSL issues what
    /// Let's Encrypt does not.
    pub fn usual(acme: Acme) -> Self {
        let has_address = acme.email.as_ref().is_some_and(|email| !email.trim().is_empty());
        // With an account of another CA, nobody but that one is meant.
        if !has_address || acme.directory.is_some() || acme.eab.is_some() {
            return Self::Acme(vec![acme]);
        }
        let zerossl = Acme { directory: Some(ZEROSSL.to_owned()), ..acme.clone() };
        Self::Acme(vec![acme, zerossl])
    }

    /// Those that options of a site can be about.
    pub fn templates(&self) -> Vec<Acme> {
        match self {
            Self::Internal { .. } => Vec::new(),
            Self::Acme(cas) => cas.iter().filter(|acme| acme.zerossl_key.is_none()).cloned().collect(),
        }
    }

    /// One more of the same names. `token`: where it is named.
    pub fn join(&mut self, token: &Token, other: Self) -> Result<(), Error> {
        match (self, other) {
            (Self::Acme(cas), Self::Acme(others)) => {
                cas.extend(others);
                Ok(())
            }
            _ => Err(error(
                token,
                "an issuer has been named before, and the local CA stands beside no other: leave one of them out",
            )),
        }
    }
}

/// The directory of ZeroSSL.
const ZEROSSL: &str = "https://acme.zerossl.com/v2/DV90";

/// Of the intermediate certificate (Caddy's modules/caddypki).
const INTERMEDIATE_LIFETIME: Duration = Duration::from_secs(7 * 86_400);

const ACME_OPTIONS: &[&str] = &[
    "dir",
    "disable_http_challenge",
    "disable_tlsalpn_challenge",
    "dns",
    "dns_challenge_override_domain",
    "dns_ttl",
    "eab",
    "email",
    "profile",
    "propagation_delay",
    "propagation_timeout",
    "resolvers",
    "test_dir",
    "trusted_roots",
];

/// For a record to be seen.
const MOST_PATIENCE: Duration = Duration::from_secs(15 * 60);

const ACME_UNBUILT: &[&str] =
    &["alt_http_port", "alt_tlsalpn_port", "distributed", "lifetime", "preferred_chains", "timeout"];

const ZEROSSL_OPTIONS: &[&str] = &[
    "dns",
    "dns_challenge_override_domain",
    "dns_ttl",
    "propagation_delay",
    "propagation_timeout",
    "resolvers",
];

const ZEROSSL_UNBUILT: &[&str] = &["alt_http_port", "validity_days"];

/// Parses `NAME ISSUER …`; what it does not say of a public CA is as in `base`.
pub(crate) fn parse(
    cx: &mut Context<'_>,
    call: &Call<'_>,
    base: &Acme,
    local_ca: &LocalCa,
) -> Result<Issuer, Error> {
    let syntax = "issuer internal | acme [DIRECTORY] { … } | zerossl KEY { … }";
    let Some((kind, args)) = call.args.split_first() else { return Err(call.wrong_arguments(1, syntax)) };
    match (kind.text.as_str(), args) {
        ("internal", []) => internal(call, local_ca),
        ("acme", [] | [_]) => acme(cx, call, args.first(), base.clone()),
        ("internal", _) => Err(call.wrong_arguments(1, syntax)),
        ("acme", _) => Err(call.wrong_arguments(2, syntax)),
        ("zerossl", [key]) => zerossl(cx, call, key),
        ("zerossl", _) => Err(call.wrong_arguments(2, syntax)),
        _ => Err(unknown(kind, "issuer", &["acme", "internal", "zerossl"])),
    }
}

fn internal(call: &Call<'_>, local_ca: &LocalCa) -> Result<Issuer, Error> {
    let mut lifetime = INTERNAL_LIFETIME;
    for option in call.options() {
        match option.name() {
            "lifetime" => lifetime = self::lifetime(option.one("lifetime DURATION")?, local_ca)?,
            "ca" if option.args.first().is_some_and(|name| name.text == "local") => {
                option.one("ca local")?;
            }
            _ => {
                return Err(unknown_option(
                    option.name,
                    "issuer internal",
                    &["lifetime"],
                    &["ca", "sign_with_root"],
                ));
            }
        }
    }
    Ok(Issuer::Internal { lifetime })
}

/// The certificate that signs it is renewed when a third of its time is left, and is to outlive it.
fn lifetime(token: &Token, local_ca: &LocalCa) -> Result<Duration, Error> {
    let lifetime = values::positive_duration(token)?;
    let most = local_ca.intermediate_lifetime.unwrap_or(INTERMEDIATE_LIFETIME) / 7 * 5;
    if lifetime > most {
        let hours = most.as_secs() / 3600;
        let message = format!(
            "a certificate of the local CA is valid for {hours}h at most, as its issuer's is renewed then; for more, write \
             `pki {{ ca local {{ intermediate_lifetime … }} }}` in the global options"
        );
        return Err(error(token, message));
    }
    Ok(lifetime)
}

fn acme(
    cx: &mut Context<'_>,
    call: &Call<'_>,
    directory: Option<&Token>,
    base: Acme,
) -> Result<Issuer, Error> {
    let mut acme = base;
    if let Some(token) = directory {
        acme.directory = Some(url(cx, token)?);
    }
    for option in call.options() {
        apply(cx, &option, &mut acme)?;
    }
    Ok(Issuer::Acme(vec![acme]))
}

/// Caddy asks another interface of ZeroSSL for them; they are the same certificates of the same account.
/// What the global options say of accounts is not about this one.
fn zerossl(cx: &mut Context<'_>, call: &Call<'_>, key: &Token) -> Result<Issuer, Error> {
    let mut acme = Acme {
        directory: Some(ZEROSSL.to_owned()),
        zerossl_key: Some(Secret(cx.fixed_text(key)?)),
        ..Acme::default()
    };
    for option in call.options() {
        if !ZEROSSL_OPTIONS.contains(&option.name()) {
            return Err(unknown_option(option.name, "issuer zerossl", ZEROSSL_OPTIONS, ZEROSSL_UNBUILT));
        }
        apply(cx, &option, &mut acme)?;
    }
    Ok(Issuer::Acme(vec![acme]))
}

/// The same of each; what there is to warn of is said once.
pub(super) fn apply_to_all(cx: &mut Context<'_>, option: &Call<'_>, cas: &mut [Acme]) -> Result<(), Error> {
    for (index, acme) in cas.iter_mut().enumerate() {
        let warnings = cx.warnings.len();
        apply(cx, option, acme)?;
        if index > 0 {
            cx.warnings.truncate(warnings);
        }
    }
    Ok(())
}

/// One option of `issuer acme`, or of `tls` if it is about a public CA.
pub(super) fn apply(cx: &mut Context<'_>, option: &Call<'_>, acme: &mut Acme) -> Result<(), Error> {
    match option.name() {
        "dir" | "ca" => acme.directory = Some(url(cx, option.one("dir URL")?)?),
        "test_dir" => acme.test_directory = Some(url(cx, option.one("test_dir URL")?)?),
        "email" => acme.email = Some(cx.fixed_text(option.one("email ADDRESS")?)?),
        "profile" => acme.profile = Some(cx.fixed_text(option.one("profile NAME")?)?),
        "eab" => {
            let [key_id, mac_key] = option.exactly::<2>("eab KEY_ID MAC_KEY")?;
            acme.eab = Some(Eab { key_id: cx.fixed_text(key_id)?, mac_key: cx.fixed_text(mac_key)? });
        }
        "trusted_roots" | "ca_root" => {
            for token in option.some("trusted_roots FILE…")? {
                acme.trusted_roots.push(file(cx, token)?);
            }
        }
        "dns" => acme.dns = Some(dns::parse(cx, option)?),
        "propagation_delay" => {
            acme.propagation_delay = values::duration(option.one("propagation_delay DURATION")?)?;
        }
        "propagation_timeout" => {
            let token = option.one("propagation_timeout DURATION | -1")?;
            let timeout = match token.text.as_str() {
                "-1" => Some(Duration::ZERO),
                // As nothing was said (certmagic's DNSManager).
                _ => Some(values::duration(token)?).filter(|timeout| !timeout.is_zero()),
            };
            if timeout.is_some_and(|timeout| timeout > MOST_PATIENCE) {
                return Err(error(token, "an order has 20m in all: wait for 15m at most"));
            }
            acme.propagation_timeout = timeout;
        }
        "resolvers" => acme.resolvers = resolvers::parse(cx, option)?,
        "dns_challenge_override_domain" => {
            let token = option.one("dns_challenge_override_domain NAME")?;
            acme.dns_override_domain = Some(domain(token, cx.fixed_text(token)?)?);
        }
        "dns_ttl" => {
            let token = option.one("dns_ttl DURATION")?;
            let seconds = values::positive_duration(token)?.as_secs();
            let ttl = u32::try_from(seconds).ok().filter(|seconds| (1..=i32::MAX as u32).contains(seconds));
            acme.dns_ttl = Some(ttl.ok_or_else(|| error(token, "a record is kept for 1s at least"))?);
        }
        "disable_http_challenge" => {
            option.exactly::<0>("disable_http_challenge")?;
            acme.http_challenge = Challenge::Disabled;
        }
        "disable_tlsalpn_challenge" => {
            option.exactly::<0>("disable_tlsalpn_challenge")?;
            acme.tls_alpn_challenge = Challenge::Disabled;
        }
        _ => return Err(unknown_option(option.name, "issuer acme", ACME_OPTIONS, ACME_UNBUILT)),
    }
    Ok(())
}

/// Whether a look-up of records is asked for where there is none.
pub(super) fn looks_up_in_vain(cas: &[Acme], of_all: &Acme) -> bool {
    let looks = |acme: &Acme| {
        (acme.propagation_timeout.is_some_and(|timeout| !timeout.is_zero()), acme.resolvers.clone())
    };
    let is_done =
        |acme: &Acme| matches!(acme.dns, Some(DnsProvider::Exec { .. } | DnsProvider::Rfc2136 { .. }));
    cas.iter().any(|acme| is_done(acme) && looks(acme) != looks(of_all))
}

pub(super) const NOT_LOOKED_UP: &str = "`resolvers` and `propagation_timeout` have no effect with `dns exec` and `dns rfc2136`, which are done when they \
                                        say so; `propagation_delay` waits after them";

fn domain(token: &Token, text: String) -> Result<String, Error> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    match !text.trim_matches('.').is_empty() && text.chars().all(is_fit) {
        true => Ok(text),
        false => {
            Err(error(token, format!("`{text}` is no name of DNS; write one such as `_acme.example.net`")))
        }
    }
}

/// Caddy's CAs are reached by HTTPS only, as RFC 8555 section 6.1 asks for.
pub(crate) fn url(cx: &Context<'_>, token: &Token) -> Result<String, Error> {
    let text = cx.fixed_text(token)?;
    if text.strip_prefix("https://").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')) {
        return Ok(text);
    }
    Err(error(
        token,
        format!("`{text}` is no URL of a CA; write one such as `https://acme.example.com/directory`"),
    ))
}
