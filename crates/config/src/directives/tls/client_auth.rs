//! `client_auth { … }`: certificates of clients.

use super::file;
use crate::call::Call;
use crate::context::Context;
use crate::model::{ClientAuth, ClientAuthMode};
use crate::problems::{error, not_built_as, unknown, unknown_option};
use regent_caddyfile::Error;
use std::path::PathBuf;

const MODES: &[&str] = &["request", "require", "require_and_verify", "verify_if_given"];

pub(super) fn parse(cx: &Context<'_>, call: &Call<'_>) -> Result<ClientAuth, Error> {
    call.no_arguments("client_auth { mode MODE; trust_pool file FILE… }")?;
    let (mut mode, mut trusted_cas, mut trusted_leaves) = (None, Vec::new(), Vec::new());
    for option in call.options() {
        match option.name() {
            "mode" => mode = Some(self::mode(&option)?),
            "trust_pool" => trusted_cas.extend(trust_pool(cx, &option)?),
            "trusted_ca_cert_file" => {
                trusted_cas.push(file(cx, option.one("trusted_ca_cert_file FILE")?)?);
            }
            "trusted_leaf_cert_file" => {
                trusted_leaves.push(file(cx, option.one("trusted_leaf_cert_file FILE")?)?);
            }
            _ => {
                let known = ["mode", "trust_pool", "trusted_ca_cert_file", "trusted_leaf_cert_file"];
                let unbuilt = ["trusted_ca_cert", "trusted_leaf_cert", "verifier"];
                return Err(unknown_option(option.name, "client_auth", &known, &unbuilt));
            }
        }
    }
    finish(call, mode, trusted_cas, trusted_leaves)
}

/// Caddy verifies with the system's roots where no certificate is trusted, so that anyone who can buy one is let in.
fn finish(
    call: &Call<'_>,
    mode: Option<ClientAuthMode>,
    trusted_cas: Vec<PathBuf>,
    trusted_leaves: Vec<PathBuf>,
) -> Result<ClientAuth, Error> {
    let trusts_any = !trusted_cas.is_empty() || !trusted_leaves.is_empty();
    let default = if trusts_any { ClientAuthMode::RequireAndVerify } else { ClientAuthMode::Require };
    let mode = mode.unwrap_or(default);
    let verifies = matches!(mode, ClientAuthMode::VerifyIfGiven | ClientAuthMode::RequireAndVerify);
    if verifies && !trusts_any {
        let message =
            "`client_auth` verifies certificates but trusts none; add `trust_pool file FILE` with the CA's";
        return Err(error(call.name, message));
    }
    Ok(ClientAuth { mode, trusted_cas, trusted_leaves })
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

/// `trust_pool file FILE…`, or with `pem_file FILE…` in a block.
fn trust_pool(cx: &Context<'_>, call: &Call<'_>) -> Result<Vec<PathBuf>, Error> {
    let syntax = "trust_pool file FILE…";
    let Some((kind, files)) = call.args.split_first() else { return Err(call.wrong_arguments(1, syntax)) };
    match kind.text.as_str() {
        "file" => {}
        "combined" | "http" | "inline" | "lazy" | "pki_intermediate" | "pki_root" | "storage" | "system" => {
            return Err(not_built_as(kind, &format!("trust_pool {}", kind.text)));
        }
        _ => return Err(unknown(kind, "trust pool", &["file"])),
    }
    let mut found = files.iter().map(|token| file(cx, token)).collect::<Result<Vec<_>, _>>()?;
    for option in call.options() {
        if option.name() != "pem_file" {
            return Err(unknown_option(option.name, "trust_pool file", &["pem_file"], &[]));
        }
        for token in option.some("pem_file FILE…")? {
            found.push(file(cx, token)?);
        }
    }
    if found.is_empty() { Err(call.wrong_arguments(2, syntax)) } else { Ok(found) }
}
