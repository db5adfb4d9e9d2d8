//! What `transport http` says of TLS.

use crate::call::Call;
use crate::context::Context;
use crate::directives::tls::parameters;
use crate::model::{UpstreamTls, UpstreamVerification};
use crate::problems::{error, not_built_as, unknown, unknown_option};
use crate::values::{duration, integer};
use regent_caddyfile::{Error, Token};
use std::path::PathBuf;

pub(super) const OPTIONS: &[&str] = &[
    "tls",
    "tls_client_auth",
    "tls_curves",
    "tls_except_ports",
    "tls_insecure_skip_verify",
    "tls_renegotiation",
    "tls_server_name",
    "tls_timeout",
    "tls_trust_pool",
    "tls_trusted_ca_certs",
];

pub(super) fn option(cx: &Context<'_>, line: &Call<'_>, tls: &mut UpstreamTls) -> Result<(), Error> {
    match line.name() {
        "tls" => drop(line.exactly::<0>("tls")?),
        "tls_insecure_skip_verify" => {
            line.exactly::<0>("tls_insecure_skip_verify")?;
            tls.verification = UpstreamVerification::None;
        }
        "tls_server_name" => {
            tls.server_name = Some(cx.host_name(line.one("tls_server_name NAME")?)?);
        }
        "tls_timeout" => tls.handshake_timeout = duration(line.one("tls_timeout DURATION")?)?,
        "tls_trust_pool" if line.args.first().is_some_and(|source| source.text == "system") => {
            line.one("tls_trust_pool system")?;
            tls.verification = UpstreamVerification::SystemRoots;
        }
        "tls_trust_pool" => tls.verification = UpstreamVerification::Roots(trust_pool(cx, line)?),
        "tls_trusted_ca_certs" => {
            let files = paths(cx, line.some("tls_trusted_ca_certs FILE…")?)?;
            tls.verification = UpstreamVerification::Roots(files);
        }
        "tls_client_auth" => {
            let files = paths(cx, line.exactly::<2>("tls_client_auth CERTIFICATE KEY")?)?;
            tls.client_certificate = <[PathBuf; 2]>::try_from(files).ok().map(Into::into);
        }
        "tls_except_ports" => {
            for token in line.some("tls_except_ports PORT…")? {
                tls.except_ports.push(integer(token, 1..=u16::MAX, line.name())?);
            }
        }
        "tls_curves" => tls.curves = parameters::curves(line)?,
        _ => renegotiation(line.one("tls_renegotiation never")?)?,
    }
    Ok(())
}

/// Servers that ask for it have not been updated since TLS 1.3.
fn renegotiation(token: &Token) -> Result<(), Error> {
    match token.text.as_str() {
        "never" => Ok(()),
        "once" | "freely" => {
            let message = "TLS is never negotiated anew in Regent, and TLS 1.3 cannot be: write `never`, or leave it out";
            Err(error(token, message))
        }
        _ => Err(unknown(token, "renegotiation", &["never"])),
    }
}

/// `tls_trust_pool file PATH…`, or a block of lines `pem_file PATH…`, as Caddy has it.
fn trust_pool(cx: &Context<'_>, line: &Call<'_>) -> Result<Vec<PathBuf>, Error> {
    const SYNTAX: &str = "tls_trust_pool file PATH…";
    let Some((source, files)) = line.args.split_first() else { return Err(line.wrong_arguments(1, SYNTAX)) };
    if source.text != "file" {
        return Err(not_built_as(source, &format!("tls_trust_pool {}", source.text)));
    }
    let mut found = paths(cx, files)?;
    for option in line.options() {
        match option.name() {
            "pem_file" => found.extend(paths(cx, option.some("pem_file PATH…")?)?),
            _ => return Err(unknown_option(option.name, "tls_trust_pool", &["pem_file"], &[])),
        }
    }
    if found.is_empty() { Err(line.wrong_arguments(2, SYNTAX)) } else { Ok(found) }
}

/// Relative ones are to the working directory, as with `tls`.
fn paths(cx: &Context<'_>, tokens: &[Token]) -> Result<Vec<PathBuf>, Error> {
    let path = |token: &Token| Ok(cx.environment.absolute(std::path::Path::new(&cx.fixed_text(token)?)));
    tokens.iter().map(path).collect()
}
