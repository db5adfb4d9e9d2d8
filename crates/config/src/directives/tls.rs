//! `tls …`: the certificates of a site, and what it agrees on with clients. Without it a site has the certificates that
//! its address asks for; see [HTTPS](https.md).
//!
//! `tls CERT KEY` takes a certificate chain and its key from PEM files, `tls internal` makes certificates with the local
//! CA, and `tls EMAIL` gets them from a public CA (ACME) with this address of the account. Each may have a block:
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `protocols MIN [MAX]` | tls1.2 tls1.3 | versions of TLS |
//! | `ciphers NAME…` | all | cipher suites of TLS 1.2, by their IANA names, in order of preference |
//! | `curves NAME…` | x25519mlkem768 x25519 secp256r1 secp384r1 | key exchanges, in order of preference |
//! | `alpn PROTOCOL…` | as `servers { protocols }` says | `h2` and `http/1.1`, in order of preference |
//! | `load DIRECTORY…` | | directories of `.pem` files, each with certificates and their key |
//! | `key_type TYPE` | p256 | of certificates that are made: ed25519, p256, p384, rsa2048, rsa4096 |
//! | `issuer internal { lifetime DURATION }` | 12h | as `tls internal`; how long a certificate is valid |
//! | `on_demand` | | certificates are made or ordered in the handshake that asks for a name; see [HTTPS](https.md#certificates-on-demand) |
//! | `client_auth { … }` | | certificates of clients; see below |
//! | `issuer acme [DIRECTORY] { … }` | | certificates of a public CA; its options are below. Of several the first that issues one; see [HTTPS](https.md#several-cas) |
//! | `issuer zerossl KEY { … }` | | certificates of ZeroSSL in the account that has this access key; in its block `dns`, `dns_ttl`, `propagation_delay`, `propagation_timeout` and `resolvers` |
//! | `ca URL`, `ca_root FILE` | | as `dir` and `trusted_roots` below. `dns`, `dns_ttl`, `dns_challenge_override_domain`, `eab` and `propagation_delay` can stand here too, and `dns` alone is that of the global options. None of them beside an `issuer`, which has its own |
//!
//! | option of `issuer acme` | default | meaning |
//! |---|---|---|
//! | `dir URL` | Let's Encrypt | the CA's directory |
//! | `test_dir URL` | Let's Encrypt's staging environment for Let's Encrypt | where an order is tried first after a failure |
//! | `email ADDRESS` | that of the global option | of the account |
//! | `eab KEY_ID MAC_KEY` | | an account at the CA that the ACME account is bound to |
//! | `profile NAME` | the CA's choice | the kind of certificate, such as `shortlived` |
//! | `trusted_roots FILE…` | those of the system | PEM files of the roots that the CA's own server is verified with |
//! | `dns SERVICE …` | | the DNS challenge alone, at [a service](https.md#services-for-dns) that has the zone, such as `dns cloudflare {env.CF_API_TOKEN}` |
//! | `dns exec PROGRAM [ARGUMENT…]` | | the DNS challenge alone, with a program that sets and removes the records |
//! | `dns rfc2136 { server ADDRESS; key_name NAME; key_alg ALGORITHM; key SECRET }` | key_alg hmac-sha256 | the DNS challenge alone, by updates of a name server (RFC 2136), signed with a key (TSIG) |
//! | `propagation_delay DURATION` | 0 | how long to wait after the record is set, for name servers that have it later |
//! | `dns_challenge_override_domain NAME` | `_acme-challenge.` and the name | the name of the record, where that of the challenge is an alias for it (CNAME) |
//! | `dns_ttl DURATION` | 60s | of records that are set by `rfc2136` or at a service, which may have another default |
//! | `propagation_timeout DURATION` | 2m | how long a service may take until the name servers of the zone have the record, 15m at most; `-1` does not look. `exec` and `rfc2136` are done when they say so |
//! | `resolvers ADDRESS…` | those of the system | the servers of DNS that are asked which zone a name is in at a service, and which servers that has |
//! | `disable_http_challenge`, `disable_tlsalpn_challenge` | | one challenge less |
//!
//! | option of `client_auth` | default | meaning |
//! |---|---|---|
//! | `mode MODE` | require_and_verify with a trusted certificate, otherwise require | request, require, verify_if_given or require_and_verify |
//! | `trust_pool file FILE…` | | PEM files of CAs whose certificates are trusted |
//! | `trust_pool inline { trust_der BASE64… }` | | such CAs themselves: DER in base64 |
//! | `trust_pool system` | | the CAs that this machine trusts: whoever has a certificate of a public CA is let in |
//! | `trust_pool pki_root local` | | the root of the local CA |
//! | `trust_pool combined { source KIND …; … }` | | several of these |
//! | `trusted_ca_cert_file FILE`, `trusted_ca_cert BASE64` | | one CA a line |
//! | `trusted_leaf_cert_file FILE`, `trusted_leaf_cert BASE64` | | a client certificate; with any, no other is accepted, whatever the mode |
//! | `verifier leaf file FILE…`, `… folder DIRECTORY…`, `… pem TEXT…` | | the same, several a line; or a block of such lines behind `leaf` |
//!
//! ```caddyfile
//! shop.example.com {
//!     tls /etc/ssl/shop.pem /etc/ssl/shop.key {
//!         protocols tls1.3
//!     }
//! }
//! ```

mod client_auth;
pub(crate) mod dns;
pub(crate) mod issuer;
pub(crate) mod parameters;

use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::context::Context;
use crate::global::GlobalOptions;
use crate::matchers::Scope;
use crate::model::{
    Acme, CertificateFiles, CipherSuite, ClientAuth, Curve, Issuance, KeyType, Route, TlsVersions,
};
use crate::problems::{error, unknown_option};
use issuer::Issuer;
use regent_caddyfile::{Error, Line, Token};
use std::path::{Path, PathBuf};

pub(super) const DIRECTIVE: Directive =
    Directive { name: "tls", sorts_as: "tls", matchers: Matchers::None, parse: Parse::Routes(misplaced) };

const SYNTAX: &str = "tls internal | CERT KEY | EMAIL { … }";

const OPTIONS: &[&str] = &[
    "alpn",
    "ca",
    "ca_root",
    "ciphers",
    "client_auth",
    "curves",
    "dns",
    "dns_challenge_override_domain",
    "dns_ttl",
    "eab",
    "force_automate",
    "issuer",
    "key_type",
    "load",
    "on_demand",
    "propagation_delay",
    "propagation_timeout",
    "protocols",
    "resolvers",
];

const UNBUILT: &[&str] =
    &["get_certificate", "insecure_secrets_log", "renewal_window_ratio", "reuse_private_keys"];

/// What the `tls` lines of a block say together.
pub(crate) struct Tls<'a> {
    /// The first line, for messages.
    pub name: &'a Token,
    /// The lines have a mistake that has been reported, so that they do not say where certificates come from.
    pub is_faulty: bool,
    pub pairs: Vec<CertificateFiles>,
    pub directories: Vec<PathBuf>,
    /// `None`: the lines name none.
    pub issuer: Option<Issuer>,
    /// By `issuer`, with options of its own.
    names_issuer: bool,
    /// `tls EMAIL`.
    names_address: bool,
    pub issuance: Issuance,
    pub wildcard: Wildcard,
    pub key_type: KeyType,
    pub versions: TlsVersions,
    pub ciphers: Vec<CipherSuite>,
    pub curves: Vec<Curve>,
    pub alpn: Vec<String>,
    pub client_auth: Option<ClientAuth>,
}

/// Whether the certificate of a site such as `*.example.com` serves a name that it covers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wildcard {
    Shared,
    /// `force_automate`: the name gets one of its own.
    Unused,
}

/// Parses the `tls` lines of a block; `None` without any. Mistakes are noted in `cx`.
pub(crate) fn parse<'a>(
    cx: &mut Context<'_>,
    options: &GlobalOptions,
    lines: &[&'a Line],
) -> Option<Tls<'a>> {
    let before = cx.errors.len();
    let mut tls = Tls::new(&lines.first()?.name, options.key_type);
    for line in lines {
        let call = Call::new(line);
        let result = tls.arguments(cx, options, &call);
        cx.check(result);
        for option in call.options() {
            let result = tls.option(cx, options, &option);
            cx.check(result);
        }
    }
    let finished = tls.check();
    cx.check(finished);
    if let Some(Issuer::Acme(cas)) = &mut tls.issuer {
        if issuer::looks_up_in_vain(cas, &options.acme) {
            cx.warn(tls.name, issuer::NOT_LOOKED_UP);
        }
        // As Caddy's `implicitACMEIssuers`: the address of all sites does not count here.
        if let ([only], true) = (&mut **cas, tls.names_address && options.issuer.is_none()) {
            tls.issuer = Some(Issuer::usual(std::mem::take(only)));
        }
    }
    tls.is_faulty = before != cx.errors.len();
    Some(tls)
}

impl<'a> Tls<'a> {
    fn new(name: &'a Token, key_type: KeyType) -> Self {
        Self {
            name,
            is_faulty: false,
            pairs: Vec::new(),
            directories: Vec::new(),
            issuer: None,
            names_issuer: false,
            names_address: false,
            issuance: Issuance::AtStart,
            wildcard: Wildcard::Shared,
            key_type,
            versions: TlsVersions::default(),
            ciphers: Vec::new(),
            curves: Vec::new(),
            alpn: Vec::new(),
            client_auth: None,
        }
    }

    pub fn has_files(&self) -> bool {
        !self.pairs.is_empty() || !self.directories.is_empty()
    }

    fn arguments(
        &mut self,
        cx: &mut Context<'_>,
        options: &GlobalOptions,
        call: &Call<'_>,
    ) -> Result<(), Error> {
        match call.args {
            [] if call.block.is_some_and(|block| !block.is_empty()) => Ok(()),
            [only] if only.text == "internal" => self.set_issuer(only, Issuer::INTERNAL),
            [only] if only.text == "force_automate" => {
                self.wildcard = Wildcard::Unused;
                Ok(())
            }
            [email] if email.text.contains('@') => {
                let address = cx.fixed_text(email)?;
                self.names_address = true;
                self.cas(email, options)?.iter_mut().for_each(|acme| acme.email = Some(address.clone()));
                Ok(())
            }
            [other] => Err(error(
                other,
                format!("`{}` is neither `internal` nor an email address; write: {SYNTAX}", other.text),
            )),
            [certificate, key] => {
                let files = CertificateFiles { certificate: file(cx, certificate)?, key: file(cx, key)? };
                self.pairs.push(files);
                Ok(())
            }
            args => Err(call.wrong_arguments(if args.is_empty() { 1 } else { 2 }, SYNTAX)),
        }
    }

    fn option(
        &mut self,
        cx: &mut Context<'_>,
        options: &GlobalOptions,
        option: &Call<'_>,
    ) -> Result<(), Error> {
        match option.name() {
            "protocols" => self.versions = parameters::versions(option)?,
            "ciphers" => self.ciphers = parameters::ciphers(cx, option)?,
            "curves" => self.curves = parameters::curves(option)?,
            "alpn" => self.alpn = parameters::alpn(cx, option)?,
            "key_type" => self.key_type = parameters::key_type(option.one("key_type TYPE")?)?,
            "load" => {
                let found = option.some("load DIRECTORY…")?.iter().map(|token| directory(cx, token));
                self.directories.extend(found.collect::<Result<Vec<_>, _>>()?);
            }
            "client_auth" => self.client_auth = Some(client_auth::parse(cx, option)?),
            "issuer" => {
                let issuer = issuer::parse(cx, option, &options.acme, &options.global.tls.local_ca)?;
                self.add_issuer(option.name, issuer)?;
            }
            "on_demand" => {
                option.exactly::<0>("on_demand")?;
                self.issuance = Issuance::OnDemand;
            }
            "force_automate" => {
                option.exactly::<0>("force_automate")?;
                self.wildcard = Wildcard::Unused;
            }
            "dns" if option.args.is_empty() && option.block.is_none() => {
                let default = options.default_dns.clone().ok_or_else(|| {
                    error(option.name, "write who sets the records here, or in the global option `dns`")
                })?;
                self.cas(option.name, options)?.iter_mut().for_each(|acme| acme.dns = Some(default.clone()));
            }
            "ca"
            | "ca_root"
            | "dns"
            | "dns_challenge_override_domain"
            | "dns_ttl"
            | "eab"
            | "propagation_delay"
            | "propagation_timeout"
            | "resolvers" => {
                issuer::apply_to_all(cx, option, self.cas(option.name, options)?)?;
            }
            _ => return Err(unknown_option(option.name, "tls", OPTIONS, UNBUILT)),
        }
        Ok(())
    }

    fn set_issuer(&mut self, token: &Token, issuer: Issuer) -> Result<(), Error> {
        if self.issuer.is_some() {
            return Err(error(token, "a site has one issuer of certificates, and it has been named before"));
        }
        self.issuer = Some(issuer);
        Ok(())
    }

    fn add_issuer(&mut self, token: &Token, issuer: Issuer) -> Result<(), Error> {
        match &mut self.issuer {
            Some(named) if self.names_issuer => return named.join(token, issuer),
            Some(Issuer::Acme(_)) => return Err(mixed(token)),
            _ => self.set_issuer(token, issuer)?,
        }
        self.names_issuer = true;
        Ok(())
    }

    /// The public CAs that options such as `ca` are about: those of all sites, or the usual one.
    fn cas(&mut self, token: &Token, options: &GlobalOptions) -> Result<&mut [Acme], Error> {
        let issuer = self.issuer.get_or_insert_with(|| {
            let of_all = options.issuer.as_ref().map(Issuer::templates).unwrap_or_default();
            Issuer::Acme(if of_all.is_empty() { vec![options.acme.clone()] } else { of_all })
        });
        match issuer {
            Issuer::Acme(_) if self.names_issuer => Err(mixed(token)),
            Issuer::Acme(cas) => Ok(cas),
            Issuer::Internal { .. } => {
                let what = &token.text;
                Err(error(
                    token,
                    format!("`{what}` is about a public CA, but the site has certificates of the local one"),
                ))
            }
        }
    }

    /// What the lines say only together.
    fn check(&self) -> Result<(), Error> {
        if self.has_files() && self.issuer.is_some() {
            let message = "a site has its certificates either from files or from an issuer, not from both";
            return Err(error(self.name, message));
        }
        Ok(())
    }
}

/// As in Caddy: it would not be clear which of several CAs such an option is for.
fn mixed(token: &Token) -> Error {
    error(
        token,
        "an `issuer` has its options in its own block: write `email`, `dns` and the like there, or leave `issuer` out",
    )
}

/// A file that is there. Whether it can be read and what is in it shows when the server starts.
fn file(cx: &Context<'_>, token: &Token) -> Result<PathBuf, Error> {
    existing(cx, token, "file")
}

fn directory(cx: &Context<'_>, token: &Token) -> Result<PathBuf, Error> {
    existing(cx, token, "directory")
}

fn existing(cx: &Context<'_>, token: &Token, kind: &str) -> Result<PathBuf, Error> {
    let path = cx.environment.absolute(Path::new(&cx.fixed_text(token)?));
    match std::fs::metadata(&path) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            Err(error(token, format!("the {kind} does not exist: {}", path.display())))
        }
        Ok(found) if found.is_dir() != (kind == "directory") => {
            Err(error(token, format!("this is no {kind}: {}", path.display())))
        }
        _ => Ok(path),
    }
}

/// A `tls` at its place is taken out before the routes of a site are parsed.
fn misplaced(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Vec<Route>, Error> {
    Err(error(call.name, "`tls` has to stand directly in a site block"))
}

#[cfg(test)]
mod tests;
