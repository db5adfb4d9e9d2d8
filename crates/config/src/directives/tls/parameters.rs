//! Versions, cipher suites and key exchanges by the names that Caddy has for them (caddytls/values.go).

use crate::call::Call;
use crate::context::Context;
use crate::model::{CipherSuite, Curve, KeyType, TlsVersion, TlsVersions};
use crate::problems::{error, unknown};
use regent_caddyfile::{Error, Token};

/// TLS 1.3 has them in any case, in Caddy too.
const SUITES_OF_TLS13: &[&str] =
    &["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

pub(super) fn versions(option: &Call<'_>) -> Result<TlsVersions, Error> {
    let syntax = "protocols MIN [MAX]";
    option.without_block(syntax)?;
    let versions = match option.args {
        [min] => TlsVersions { min: version(min)?, ..TlsVersions::default() },
        [min, max] => TlsVersions { min: version(min)?, max: version(max)? },
        args => return Err(option.wrong_arguments(if args.is_empty() { 1 } else { 2 }, syntax)),
    };
    if versions.min > versions.max {
        return Err(error(
            &option.args[0],
            "the lowest version comes first: write `protocols tls1.2 tls1.3`",
        ));
    }
    Ok(versions)
}

fn version(token: &Token) -> Result<TlsVersion, Error> {
    match token.text.as_str() {
        "tls1.2" => Ok(TlsVersion::Tls12),
        "tls1.3" => Ok(TlsVersion::Tls13),
        "ssl3.0" | "tls1.0" | "tls1.1" => Err(error(
            token,
            format!(
                "`{}` is broken and not spoken, neither here nor by Caddy; write `tls1.2` or `tls1.3`",
                token.text
            ),
        )),
        _ => Err(unknown(token, "version of TLS", &["tls1.2", "tls1.3"])),
    }
}

/// The suites of TLS 1.2 among those named.
pub(super) fn ciphers(cx: &mut Context<'_>, option: &Call<'_>) -> Result<Vec<CipherSuite>, Error> {
    let mut suites = Vec::new();
    for token in option.some("ciphers NAME…")? {
        if SUITES_OF_TLS13.contains(&token.text.as_str()) {
            cx.warn(
                token,
                format!("`{}` has no effect: TLS 1.3 always has all of its cipher suites", token.text),
            );
        } else {
            suites.push(cipher(token)?);
        }
    }
    if suites.is_empty() {
        return Err(error(
            option.name,
            "`ciphers` is about TLS 1.2, and names no suite of it; to have TLS 1.3 alone, write `protocols tls1.3`",
        ));
    }
    Ok(suites)
}

fn cipher(token: &Token) -> Result<CipherSuite, Error> {
    let name = token.text.as_str();
    if let Some(suite) = CipherSuite::ALL.into_iter().find(|suite| suite.name() == name) {
        return Ok(suite);
    }
    if name.contains("_CBC_") {
        return Err(error(
            token,
            format!(
                "`{name}` is not spoken: suites with CBC are weak; write one with GCM or CHACHA20_POLY1305"
            ),
        ));
    }
    let names = CipherSuite::ALL.map(CipherSuite::name);
    Err(unknown(token, "cipher suite", &names))
}

pub(crate) fn curves(option: &Call<'_>) -> Result<Vec<Curve>, Error> {
    option.some(&format!("{} NAME…", option.name()))?.iter().map(curve).collect()
}

fn curve(token: &Token) -> Result<Curve, Error> {
    match Curve::ALL.into_iter().find(|curve| curve.name() == token.text) {
        Some(curve) => Ok(curve),
        None if token.text == "secp521r1" => Err(error(
            token,
            "`secp521r1` is not built in Regent; write `secp384r1`, which every client of it has too",
        )),
        None => Err(unknown(token, "curve", &Curve::ALL.map(Curve::name))),
    }
}

/// What is negotiated has to be spoken.
pub(super) fn alpn(cx: &mut Context<'_>, option: &Call<'_>) -> Result<Vec<String>, Error> {
    let mut protocols = Vec::new();
    for token in option.some("alpn PROTOCOL…")? {
        match token.text.as_str() {
            "h2" | "http/1.1" => protocols.push(token.text.clone()),
            "h3" => {
                cx.warn(token, "`h3` needs no mention: `servers { protocols }` has the addresses with HTTP/3")
            }
            _ => return Err(unknown(token, "application protocol", &["h2", "http/1.1"])),
        }
    }
    if protocols.is_empty() {
        return Err(error(option.name, "`alpn` names no protocol that is spoken; add `h2` or `http/1.1`"));
    }
    Ok(protocols)
}

pub(crate) fn key_type(token: &Token) -> Result<KeyType, Error> {
    match token.text.as_str() {
        "ed25519" => Ok(KeyType::Ed25519),
        "p256" => Ok(KeyType::P256),
        "p384" => Ok(KeyType::P384),
        "rsa2048" => Ok(KeyType::Rsa2048),
        "rsa4096" => Ok(KeyType::Rsa4096),
        _ => Err(unknown(token, "type of key", &["ed25519", "p256", "p384", "rsa2048", "rsa4096"])),
    }
}
