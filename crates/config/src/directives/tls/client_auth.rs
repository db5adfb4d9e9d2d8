//! `client_auth { … }`: certificates of clients.

mod leaf;
mod trust_pool;

use super::file;
use crate::call::Call;
use crate::context::Context;
use crate::model::{ClientAuth, ClientAuthMode, TrustSource};
use crate::problems::{error, unknown, unknown_option};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regent_caddyfile::{Error, Token};

const MODES: &[&str] = &["request", "require", "require_and_verify", "verify_if_given"];
const OPTIONS: &[&str] = &[
    "mode",
    "trust_pool",
    "trusted_ca_cert",
    "trusted_ca_cert_file",
    "trusted_leaf_cert",
    "trusted_leaf_cert_file",
    "verifier",
];

pub(super) fn parse(cx: &Context<'_>, call: &Call<'_>) -> Result<ClientAuth, Error> {
    call.no_arguments("client_auth { mode MODE; trust_pool file FILE… }")?;
    let mut mode = None;
    let mut auth = ClientAuth {
        mode: ClientAuthMode::Require,
        trusted_cas: Vec::new(),
        trusted_leaves: Vec::new(),
        other_cas: Vec::new(),
        inline_leaves: Vec::new(),
    };
    for option in call.options() {
        match option.name() {
            "mode" => mode = Some(self::mode(&option)?),
            "trust_pool" => trust_pool::parse(cx, &option, &mut auth)?,
            "trusted_ca_cert" => {
                auth.other_cas.push(TrustSource::Inline(der(option.one("trusted_ca_cert BASE64")?)?));
            }
            "trusted_ca_cert_file" => {
                auth.trusted_cas.push(file(cx, option.one("trusted_ca_cert_file FILE")?)?);
            }
            "trusted_leaf_cert" => auth.inline_leaves.push(der(option.one("trusted_leaf_cert BASE64")?)?),
            "trusted_leaf_cert_file" => {
                auth.trusted_leaves.push(file(cx, option.one("trusted_leaf_cert_file FILE")?)?);
            }
            "verifier" => leaf::parse(cx, &option, &mut auth)?,
            _ => return Err(unknown_option(option.name, "client_auth", OPTIONS, &[])),
        }
    }
    finish(call, mode, auth)
}

/// Caddy verifies with the system's roots where no certificate is trusted, so that anyone who can buy one is let in.
fn finish(call: &Call<'_>, mode: Option<ClientAuthMode>, auth: ClientAuth) -> Result<ClientAuth, Error> {
    let trusts_any = !(auth.trusted_cas.is_empty()
        && auth.trusted_leaves.is_empty()
        && auth.other_cas.is_empty()
        && auth.inline_leaves.is_empty());
    let default = if trusts_any { ClientAuthMode::RequireAndVerify } else { ClientAuthMode::Require };
    let mode = mode.unwrap_or(default);
    let verifies = matches!(mode, ClientAuthMode::VerifyIfGiven | ClientAuthMode::RequireAndVerify);
    if verifies && !trusts_any {
        let message =
            "`client_auth` verifies certificates but trusts none; add `trust_pool file FILE` with the CA's";
        return Err(error(call.name, message));
    }
    Ok(ClientAuth { mode, ..auth })
}

fn mode(option: &Call<'_>) -> Result<ClientAuthMode, Error> {
    let token = option.one("mode request | require | verify_if_given | require_and_verify")?;
    match token.text.as_str() {
        "request" => Ok(ClientAuthMode::Request),
        "require" => Ok(ClientAuthMode::Require),
        "verify_if_given" => Ok(ClientAuthMode::VerifyIfGiven),
        "require_and_verify" => Ok(ClientAuthMode::RequireAndVerify),
        _ => Err(unknown(token, "mode", MODES)),
    }
}

/// A certificate as one word: DER in base64, which begins a sequence of ASN.1.
fn der(token: &Token) -> Result<String, Error> {
    match STANDARD.decode(&token.text) {
        Ok(bytes) if bytes.first() == Some(&0x30) => Ok(token.text.clone()),
        _ => Err(error(token, "this is no certificate: write its DER in base64, without line breaks")),
    }
}
