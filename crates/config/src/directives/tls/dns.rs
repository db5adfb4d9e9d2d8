//! `dns …`: who sets the records of the DNS challenge.

mod hosted;
mod services;

use super::file;
use crate::call::Call;
use crate::context::Context;
use crate::model::{DnsProvider, TsigAlgorithm, TsigKey};
use crate::problems::{error, suggestion, unknown, unknown_option};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regent_caddyfile::{Error, Token};
use std::path::PathBuf;

const SYNTAX: &str = "dns exec PROGRAM [ARGUMENT…] | dns rfc2136 { server ADDRESS; key_name NAME; key_alg ALGORITHM; key SECRET } | \
     dns SERVICE … { … }";

/// Of DNS.
const PORT: u16 = 53;

/// By the names of RFC 8945 section 6.
const ALGORITHMS: [(&str, TsigAlgorithm); 5] = [
    ("hmac-sha1", TsigAlgorithm::HmacSha1),
    ("hmac-sha224", TsigAlgorithm::HmacSha224),
    ("hmac-sha256", TsigAlgorithm::HmacSha256),
    ("hmac-sha384", TsigAlgorithm::HmacSha384),
    ("hmac-sha512", TsigAlgorithm::HmacSha512),
];

/// All that [`parse`] knows.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ["exec", "rfc2136"].into_iter().chain(hosted::names())
}

pub(crate) fn parse(cx: &mut Context<'_>, call: &Call<'_>) -> Result<DnsProvider, Error> {
    let Some((name, arguments)) = call.args.split_first() else {
        return Err(call.wrong_arguments(2, SYNTAX));
    };
    match (name.text.as_str(), arguments) {
        ("rfc2136", []) => rfc2136(cx, call),
        ("rfc2136", _) => Err(call.wrong_arguments(1, SYNTAX)),
        ("exec", _) => exec(cx, call),
        (service, _) => match hosted::find(service) {
            Some(service) => hosted::parse(cx, call, service),
            None => Err(unknown_service(name)),
        },
    }
}

fn unknown_service(name: &Token) -> Error {
    let known: Vec<_> = names().collect();
    let hint =
        suggestion(&name.text, &known).map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    let message = format!(
        "Regent sets no DNS records at `{}` by itself{hint}; `regent list-modules` names the services that it knows; for \
         others write `dns exec PROGRAM` with a program that does, or `dns rfc2136` for a name server that takes updates",
        name.text
    );
    error(name, message)
}

fn exec(cx: &Context<'_>, call: &Call<'_>) -> Result<DnsProvider, Error> {
    match call.some(SYNTAX)? {
        [_, program, arguments @ ..] => {
            let arguments = arguments.iter().map(|token| cx.fixed_text(token)).collect::<Result<_, _>>()?;
            Ok(DnsProvider::Exec { program: self::program(cx, program)?, arguments })
        }
        _ => Err(call.wrong_arguments(2, SYNTAX)),
    }
}

/// A name without a slash is looked up in `$PATH`.
fn program(cx: &Context<'_>, token: &Token) -> Result<PathBuf, Error> {
    let text = cx.fixed_text(token)?;
    if text.contains('/') { file(cx, token) } else { Ok(PathBuf::from(text)) }
}

/// With the options of caddy-dns/rfc2136.
fn rfc2136(cx: &Context<'_>, call: &Call<'_>) -> Result<DnsProvider, Error> {
    let (mut server, mut name, mut algorithm, mut secret) = (None, None, None, None);
    for option in call.options() {
        match option.name() {
            "server" => server = Some(self::server(cx, option.one("server ADDRESS[:PORT]")?)?),
            "key_name" => name = Some(key_name(cx, option.one("key_name NAME")?)?),
            "key_alg" => algorithm = Some(self::algorithm(cx, option.one("key_alg ALGORITHM")?)?),
            "key" => secret = Some(self::secret(cx, option.one("key SECRET")?)?),
            _ => {
                let known = ["key", "key_alg", "key_name", "server"];
                return Err(unknown_option(option.name, "dns rfc2136", &known, &[]));
            }
        }
    }
    let Some((host, port)) = server else {
        return Err(error(call.name, format!("`dns rfc2136` needs `server`; write: {SYNTAX}")));
    };
    let key = match (name, secret) {
        (Some(name), Some(secret)) => {
            Some(TsigKey { name, algorithm: algorithm.unwrap_or(TsigAlgorithm::HmacSha256), secret })
        }
        (None, None) if algorithm.is_none() => None,
        _ => return Err(error(call.name, "a key of `dns rfc2136` has both `key_name` and `key`")),
    };
    Ok(DnsProvider::Rfc2136 { host, port, key })
}

/// `HOST`, `HOST:PORT`, `ADDRESS`, `[ADDRESS]:PORT`.
fn server(cx: &Context<'_>, token: &Token) -> Result<(String, u16), Error> {
    let text = cx.fixed_text(token)?;
    let bad = || error(token, format!("`{text}` is no name server; write one such as `192.0.2.1:53`"));
    if let Ok(address) = text.trim_matches(['[', ']']).parse::<std::net::IpAddr>() {
        return Ok((address.to_string(), PORT));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?),
        None => (text.as_str(), PORT),
    };
    let host = host.trim_matches(['[', ']']);
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(is_fit) {
        return Err(bad());
    }
    Ok((host.to_owned(), port))
}

fn key_name(cx: &Context<'_>, token: &Token) -> Result<String, Error> {
    let text = cx.fixed_text(token)?;
    let is_fit = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_graphic());
    if text.len() < 254 && text.trim_end_matches('.').split('.').all(is_fit) {
        return Ok(text);
    }
    Err(error(token, format!("`{text}` is no name of a key; write it as the name server has it")))
}

/// Some write a dot at the end, as names of DNS have one.
fn algorithm(cx: &Context<'_>, token: &Token) -> Result<TsigAlgorithm, Error> {
    let text = cx.fixed_text(token)?.to_ascii_lowercase();
    let found = ALGORITHMS.iter().find(|(name, _)| *name == text.trim_end_matches('.'));
    let known = ALGORITHMS.map(|(name, _)| name);
    found.map(|(_, algorithm)| *algorithm).ok_or_else(|| unknown(token, "value of `key_alg`", &known))
}

fn secret(cx: &Context<'_>, token: &Token) -> Result<Vec<u8>, Error> {
    let text = cx.fixed_text(token)?;
    let decoded = STANDARD.decode(text.trim()).ok().filter(|secret| !secret.is_empty());
    // Without the text: it may be a secret all the same.
    decoded.ok_or_else(|| error(token, "this is no key in base64, as `tsig-keygen` writes it"))
}

#[cfg(test)]
mod tests;
