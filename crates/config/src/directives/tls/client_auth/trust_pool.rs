//! `trust_pool KIND …`: CAs whose certificates are trusted (Caddy's modules/caddytls/capools.go).

use super::der;
use crate::call::Call;
use crate::context::Context;
use crate::directives::tls::file;
use crate::model::{ClientAuth, TrustSource};
use crate::problems::{error, not_built_as, unknown, unknown_option};
use regent_caddyfile::Error;

const SYNTAX: &str =
    "trust_pool file FILE… | inline { trust_der BASE64… } | system | pki_root local | combined { source … }";
const KINDS: &[&str] = &["combined", "file", "inline", "pki_root", "system"];

pub(super) fn parse(cx: &Context<'_>, call: &Call<'_>, auth: &mut ClientAuth) -> Result<(), Error> {
    let Some((kind, args)) = call.args.split_first() else { return Err(call.wrong_arguments(1, SYNTAX)) };
    let source = Call { name: kind, args, block: call.block };
    match kind.text.as_str() {
        "file" => files(cx, &source, auth),
        "inline" => inline(&source, auth),
        "system" => {
            source.exactly::<0>("trust_pool system")?;
            auth.other_cas.push(TrustSource::System);
            Ok(())
        }
        "pki_root" => pki_root(&source, auth),
        "combined" => combined(cx, &source, auth),
        "http" | "lazy" | "pki_intermediate" | "storage" => {
            Err(not_built_as(kind, &format!("trust_pool {}", kind.text)))
        }
        _ => Err(unknown(kind, "trust pool", KINDS)),
    }
}

/// `file FILE…`, or with `pem_file FILE…` in a block.
fn files(cx: &Context<'_>, call: &Call<'_>, auth: &mut ClientAuth) -> Result<(), Error> {
    let mut found = call.args.iter().map(|token| file(cx, token)).collect::<Result<Vec<_>, _>>()?;
    for option in call.options() {
        if option.name() != "pem_file" {
            return Err(unknown_option(option.name, "trust_pool file", &["pem_file"], &[]));
        }
        for token in option.some("pem_file FILE…")? {
            found.push(file(cx, token)?);
        }
    }
    if found.is_empty() {
        return Err(call.wrong_arguments(1, "trust_pool file FILE…"));
    }
    auth.trusted_cas.extend(found);
    Ok(())
}

fn inline(call: &Call<'_>, auth: &mut ClientAuth) -> Result<(), Error> {
    let syntax = "trust_pool inline { trust_der BASE64… }";
    call.no_arguments(syntax)?;
    let before = auth.other_cas.len();
    for option in call.options() {
        if option.name() != "trust_der" {
            return Err(unknown_option(option.name, "trust_pool inline", &["trust_der"], &[]));
        }
        for token in option.some("trust_der BASE64…")? {
            auth.other_cas.push(TrustSource::Inline(der(token)?));
        }
    }
    if auth.other_cas.len() == before { Err(call.wrong_arguments(1, syntax)) } else { Ok(()) }
}

/// `pki_root local`, or with `authority local` in a block.
fn pki_root(call: &Call<'_>, auth: &mut ClientAuth) -> Result<(), Error> {
    let syntax = "trust_pool pki_root local";
    let mut names: Vec<_> = call.args.iter().collect();
    for option in call.options() {
        if option.name() != "authority" {
            return Err(unknown_option(option.name, "trust_pool pki_root", &["authority"], &[]));
        }
        names.extend(option.some("authority local")?);
    }
    if let Some(other) = names.iter().find(|name| name.text != "local") {
        return Err(not_built_as(other, "a CA beside `local`"));
    }
    if names.is_empty() {
        return Err(call.wrong_arguments(1, syntax));
    }
    auth.other_cas.push(TrustSource::LocalRoot);
    Ok(())
}

/// Lines of `source`, each as a `trust_pool` of its own.
fn combined(cx: &Context<'_>, call: &Call<'_>, auth: &mut ClientAuth) -> Result<(), Error> {
    call.no_arguments("trust_pool combined { source KIND …; … }")?;
    for option in call.options() {
        if option.name() != "source" {
            return Err(unknown_option(option.name, "trust_pool combined", &["source"], &[]));
        }
        parse(cx, &option, auth)?;
    }
    if call.options().next().is_none() {
        return Err(error(call.name, "`combined` has no `source`; write: source file FILE"));
    }
    Ok(())
}
