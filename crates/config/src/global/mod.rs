//! The global options block.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `frankenphp { … }` or `regent { … }` | | PHP; see `frankenphp.rs` |
//! | `admin ADDRESS` \| `off` | localhost:2019 | the admin API; see `admin.rs` |
//! | `http_port N` | 80 | port of plain HTTP, for addresses with `http://` and for redirects to HTTPS |
//! | `default_bind ADDRESS…` | all of the machine's addresses | where sites without [bind](#bind) listen, and what redirects to them; several lines add up |
//! | `https_port N` | 443 | port of HTTPS, for addresses that name none |
//! | `auto_https …`, `local_certs`, `storage …`, … | | certificates and redirects to HTTPS; see `https.rs` |
//! | `grace_period DURATION` | 10s | how long running requests may go on after a stop, a reload that replaces the engine, or an upgrade; 0: as long as they take |
//! | `log [NAME] { … }` | | the server's own log, and others beside it; see `logs.rs` and `directives/log.rs` |
//! | `shutdown_delay DURATION` | 0 | how long the server goes on serving when it is told to stop, before `grace_period` begins; see [behind a load balancer](load-balancers.md#before-a-stop) |
//! | `debug` | | level DEBUG for that log |
//! | `order DIRECTIVE …` | | see `order.rs` |
//! | `cache { … }` | | the memory of `cache` directives; see `cache.rs` |
//! | `metrics { … }` | | figures of all requests under Caddy's names; see `metrics.rs` |
//! | `servers { … }` | | protocols, time-outs and limits; see `servers.rs` |

mod admin;
mod cache;
mod circuit;
pub(crate) mod confine;
mod departed_timeout;
mod frankenphp;
mod health_uri;
mod https;
mod lanes;
mod logs;
mod max_response_header;
mod metrics;
mod module;
mod php;
pub(crate) mod servers;
mod slow_log;
mod spool;
mod storage;
mod task;
pub(crate) mod user;

pub(crate) use https::AutoHttps;
pub(crate) use servers::{ServerBlock, Servers};

use crate::call::Call;
use crate::context::{Context, Notation};
use crate::directives::bind::{self, Bound, Interface};
use crate::directives::tls::issuer::Issuer;
use crate::model::{Acme, DnsProvider, Global, KeyType, LogLevel, Persistence};
use crate::order::Changed;
use crate::problems::{error, not_built, unknown_name};
use crate::values;
use regent_caddyfile::{Error, Line, Token};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const OPTIONS: &[&str] = &[
    "admin",
    "cache",
    "debug",
    "default_bind",
    "frankenphp",
    "grace_period",
    "http_port",
    "log",
    "metrics",
    "order",
    "persist_config",
    "regent",
    "servers",
    "shutdown_delay",
];

/// Caddy's, and those of the modules that FrankenPHP is built with.
const UNBUILT: &[&str] = &[
    "cert_lifetime",
    "ech",
    "events",
    "filesystem",
    "mercure",
    "preferred_chains",
    "renewal_window_ratio",
    "tls_automate_names",
];

/// The options that become part of the configuration, and those that only say how to read the rest of the file.
#[derive(Default)]
pub(crate) struct GlobalOptions {
    pub global: Global,
    pub notation: Notation,
    pub auto_https: AutoHttps,
    /// Of certificates that nothing else is said about; `None`: the local CA for internal names, a public one for others.
    pub issuer: Option<Issuer>,
    pub acme: Acme,
    /// Who sets records of the DNS challenge where that is not said (`dns`).
    pub default_dns: Option<DnsProvider>,
    /// An `acme_dns` that does not say it.
    pub acme_dns: Option<Token>,
    pub key_type: KeyType,
    pub servers: Servers,
    /// Where sites without `bind` listen, with the places; empty: on all of the machine's addresses.
    pub default_bind: Vec<(Token, Interface)>,
    /// What is spoken there, as far as that is said.
    pub default_bound: Vec<Bound>,
    /// `num_threads`, and where it was written.
    pub num_threads: Option<(Token, u16)>,
    /// The same of a `max_threads` that is a number.
    pub max_threads: Option<(Token, u16)>,
    /// Paths that `confine` opens.
    pub confined: Vec<confine::Opened>,
}

pub(crate) fn parse(cx: &mut Context<'_>, lines: &[Line]) -> GlobalOptions {
    let mut options = GlobalOptions { notation: cx.notation, ..GlobalOptions::default() };
    options.global.tls.storage = storage::default(cx.environment);
    // How long the local CA's own certificates are good for bounds what others say of theirs.
    let (authorities, others): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.name.text == "pki");
    for line in authorities.into_iter().chain(others) {
        let result = options.apply(cx, &Call::new(line));
        cx.check(result);
    }
    https::complete_issuer(cx, &mut options);
    options.global.metrics = metrics::merge(options.global.metrics, options.servers.metrics());
    // Wherever it stands, it goes before what `log` says.
    if lines.iter().any(|line| line.name.text == "debug") {
        options.global.log.level = LogLevel::Debug;
    }
    options
}

impl GlobalOptions {
    fn apply(&mut self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<(), Error> {
        match call.name() {
            "frankenphp" | "regent" => frankenphp::parse(cx, call, self)?,
            "servers" => self.servers.parse(cx, call)?,
            "order" => {
                if cx.order.change(call)? == Changed::Nothing {
                    let message =
                        "this has no effect: the directive is of a module that Regent does not have";
                    cx.warn(call.name, message);
                }
            }
            "log" => logs::parse(cx, call, &mut self.global)?,
            "admin" => self.global.admin = admin::parse(cx, call)?,
            "cache" => self.global.cache = cache::parse(cx, call)?,
            "metrics" => self.global.metrics = Some(metrics::parse(cx, call)?),
            "default_bind" => {
                let bound = bind::interfaces(cx, call)?.into_iter();
                self.default_bound.append(&mut cx.bound);
                self.default_bind.extend(bound.map(|(token, interface)| (token.clone(), interface)));
            }
            "debug" => call.exactly::<0>("debug").map(|_| ())?,
            "http_port" => {
                self.global.http_port = values::integer(call.one("http_port N")?, 1..=u16::MAX, "http_port")?
            }
            "grace_period" => {
                self.global.grace_period = values::duration(call.one("grace_period DURATION")?)?
            }
            "shutdown_delay" => {
                self.global.shutdown_delay = values::duration(call.one("shutdown_delay DURATION")?)?
            }
            "persist_config" => {
                self.global.persistence = persist_config(call.one("persist_config off")?)?;
            }
            name if https::OPTIONS.contains(&name) => https::apply(cx, call, self)?,
            name if UNBUILT.contains(&name) => return Err(not_built(call.name)),
            _ => {
                let known: Vec<_> = OPTIONS.iter().chain(https::OPTIONS).copied().collect();
                return Err(unknown_name(call.name, "global option", &known));
            }
        }
        Ok(())
    }
}

fn persist_config(token: &Token) -> Result<Persistence, Error> {
    match token.text.as_str() {
        "off" => Ok(Persistence::Off),
        _ => Err(error(token, "`persist_config` can only be `off`")),
    }
}

/// `:PORT`, `localhost:PORT` or `IP:PORT`.
pub(crate) fn listen(text: &str) -> Option<SocketAddr> {
    let text = text.strip_prefix("tcp/").unwrap_or(text);
    let (host, port) = text.rsplit_once(':')?;
    let address = match host {
        "" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ => host.trim_start_matches('[').trim_end_matches(']').parse().ok()?,
    };
    Some(SocketAddr::from((address, port.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{config, file_errors};
    use std::time::Duration;

    fn global(options: &str) -> Global {
        config(&format!("{{\n{options}\n}}\n:80 {{\n}}")).global
    }

    fn errors(options: &str) -> Vec<String> {
        file_errors(&format!("{{\n{options}\n}}\n:80 {{\n}}"))
    }

    #[test]
    fn addresses() {
        for (text, expected) in
            [(":80", "[::]:80"), ("localhost:80", "127.0.0.1:80"), ("[::1]:80", "[::1]:80")]
        {
            assert_eq!(listen(text), expected.parse().ok(), "{text}");
        }
        assert_eq!(listen("example.com:80"), None);
    }

    #[test]
    fn plain_values() {
        let found = global(
            "debug\nlog {\nlevel ERROR\n}\nhttp_port 81\ngrace_period 3s\nshutdown_delay 5s\npersist_config off",
        );
        assert_eq!(found.shutdown_delay, Duration::from_secs(5));
        assert_eq!(found.log.level, LogLevel::Debug);
        assert_eq!((found.http_port, found.grace_period), (81, Duration::from_secs(3)));
    }

    #[test]
    fn mistakes() {
        let found = errors("admn off\nadmin x\nauto_https on\nevents\nhttp_port 0\norder php first x");
        assert_eq!(found[0], "unknown global option `admn`; did you mean `admin`?");
        assert!(
            found[3].starts_with("`events` needs a third party's module in Caddy too, and Regent has none; "),
            "{found:?}"
        );
        assert_eq!(found.len(), 6, "{found:?}");
    }

    #[test]
    fn order_changes_the_order() {
        let site = ":80 {\nfile_server\nrespond x\n}";
        let first = |options: &str| {
            config(&format!("{{\n{options}\n}}\n{site}")).servers[0].sites[0].routes[0].handler.clone()
        };
        let is_files = |handler: crate::Handler| matches!(handler, crate::Handler::FileServer(_));
        assert!(!is_files(first("debug")));
        assert!(is_files(first("order file_server before respond")));
        assert!(is_files(first("order file_server first")));
        assert!(is_files(first("order respond last")));
        assert!(is_files(first("order respond after file_server")));
        let found = errors("order php_sever first\norder php before php\norder php sideways\norder php");
        assert_eq!(found.len(), 4, "{found:?}");
    }
}
