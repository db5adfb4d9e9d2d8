//! `issuer internal` and `issuer acme`: who signs the certificates of a site, or of all (`cert_issuer`).

use super::{dns, file};
use crate::call::Call;
use crate::context::Context;
use crate::model::{Acme, Challenge, Eab, INTERNAL_LIFETIME};
use crate::problems::{error, not_built_as, unknown, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Issuer {
    /// The local CA.
    Internal {
        lifetime: Duration,
    },
    Acme(Box<Acme>),
}

impl Issuer {
    pub const INTERNAL: Self = Self::Internal { lifetime: INTERNAL_LIFETIME };
}

/// The intermediate certificate is renewed by a fifth of its 7 days before its end (Caddy's modules/caddypki).
const MAX_INTERNAL_LIFETIME: Duration = Duration::from_secs(5 * 86_400);

const ACME_OPTIONS: &[&str] = &[
    "dir",
    "disable_http_challenge",
    "disable_tlsalpn_challenge",
    "dns",
    "eab",
    "email",
    "profile",
    "propagation_delay",
    "test_dir",
    "trusted_roots",
];

const ACME_UNBUILT: &[&str] = &[
    "alt_http_port",
    "alt_tlsalpn_port",
    "distributed",
    "dns_challenge_override_domain",
    "dns_ttl",
    "lifetime",
    "preferred_chains",
    "propagation_timeout",
    "resolvers",
    "timeout",
];

/// Parses `NAME ISSUER …`; what it does not say of a public CA is as in `base`.
pub(crate) fn parse(cx: &Context<'_>, call: &Call<'_>, base: &Acme) -> Result<Issuer, Error> {
    let syntax = "issuer internal | acme [DIRECTORY] { … }";
    let Some((kind, args)) = call.args.split_first() else { return Err(call.wrong_arguments(1, syntax)) };
    match (kind.text.as_str(), args) {
        ("internal", []) => internal(call),
        ("acme", [] | [_]) => acme(cx, call, args.first(), base.clone()),
        ("internal", _) => Err(call.wrong_arguments(1, syntax)),
        ("acme", _) => Err(call.wrong_arguments(2, syntax)),
        ("zerossl", _) => Err(not_built_as(kind, &format!("{} zerossl", call.name()))),
        _ => Err(unknown(kind, "issuer", &["acme", "internal"])),
    }
}

fn internal(call: &Call<'_>) -> Result<Issuer, Error> {
    let mut lifetime = INTERNAL_LIFETIME;
    for option in call.options() {
        match option.name() {
            "lifetime" => lifetime = self::lifetime(option.one("lifetime DURATION")?)?,
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

fn lifetime(token: &Token) -> Result<Duration, Error> {
    let lifetime = values::positive_duration(token)?;
    if lifetime > MAX_INTERNAL_LIFETIME {
        return Err(error(
            token,
            "a certificate of the local CA is valid for 5d at most, as its issuer's is renewed then",
        ));
    }
    Ok(lifetime)
}

fn acme(cx: &Context<'_>, call: &Call<'_>, directory: Option<&Token>, base: Acme) -> Result<Issuer, Error> {
    let mut acme = base;
    if let Some(token) = directory {
        acme.directory = Some(url(cx, token)?);
    }
    for option in call.options() {
        apply(cx, &option, &mut acme)?;
    }
    Ok(Issuer::Acme(Box::new(acme)))
}

/// One option of `issuer acme`, or of `tls` if it is about a public CA.
pub(super) fn apply(cx: &Context<'_>, option: &Call<'_>, acme: &mut Acme) -> Result<(), Error> {
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
