//! The global options block.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `frankenphp { … }` or `regent { … }` | | PHP; see `frankenphp.rs` |
//! | `admin ADDRESS` \| `off` | localhost:2019 | the admin API; see `admin.rs` |
//! | `http_port N` | 80 | port of addresses that name none |
//! | `https_port N` | 443 | what is asked for on this port needs TLS, but with `auto_https off` |
//! | `auto_https off` | | plain HTTP for addresses without a scheme |
//! | `grace_period DURATION` | 10s | how long a stop waits for running requests; 0: as long as they take |
//! | `log { … }` | | the server's own log; see `directives/log.rs` |
//! | `debug` | | level DEBUG for that log |
//! | `order DIRECTIVE …` | | see `order.rs` |
//! | `metrics` | | changes nothing: the admin API has `/metrics` in any case |
//! | `servers { … }` | | time-outs and limits; see `servers.rs` |

mod admin;
mod frankenphp;
mod lanes;
mod module;
mod servers;
mod spool;

pub(crate) use frankenphp::finish_threads;

use crate::call::Call;
use crate::context::Context;
use crate::directives::log;
use crate::model::{Global, LogLevel};
use crate::problems::{error, not_built, not_built_as, unknown, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Line, Token};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const OPTIONS: &[&str] = &[
    "admin",
    "auto_https",
    "debug",
    "email",
    "frankenphp",
    "grace_period",
    "http_port",
    "https_port",
    "local_certs",
    "log",
    "metrics",
    "order",
    "persist_config",
    "regent",
    "servers",
    "skip_install_trust",
];

/// Caddy's, and those of the modules that FrankenPHP is built with.
const UNBUILT: &[&str] = &[
    "acme_ca",
    "acme_ca_root",
    "acme_dns",
    "acme_eab",
    "cert_issuer",
    "cert_lifetime",
    "default_bind",
    "default_sni",
    "dns",
    "ech",
    "events",
    "fallback_sni",
    "filesystem",
    "key_type",
    "mercure",
    "ocsp_interval",
    "ocsp_stapling",
    "on_demand_tls",
    "pki",
    "preferred_chains",
    "renew_interval",
    "renewal_window_ratio",
    "shutdown_delay",
    "storage",
    "storage_check",
    "storage_clean_interval",
    "tls_resolvers",
];

/// The options that become part of the configuration, and those that only say how to read the rest of the file.
pub(crate) struct GlobalOptions {
    pub global: Global,
    pub https_port: u16,
    /// Addresses without a scheme ask for TLS.
    pub tls_by_default: bool,
    /// `num_threads`, and where it was written.
    pub num_threads: Option<(Token, u16)>,
    /// The same of a `max_threads` that is a number.
    pub max_threads: Option<(Token, u16)>,
}

pub(crate) fn parse(cx: &mut Context<'_>, lines: &[Line]) -> GlobalOptions {
    let mut options = GlobalOptions::default();
    for line in lines {
        let result = options.apply(cx, &Call::new(line));
        cx.check(result);
    }
    // Wherever it stands, it goes before what `log` says.
    if lines.iter().any(|line| line.name.text == "debug") {
        options.global.log.level = LogLevel::Debug;
    }
    options
}

impl Default for GlobalOptions {
    fn default() -> Self {
        let global = Global::default();
        Self { global, https_port: 443, tls_by_default: true, num_threads: None, max_threads: None }
    }
}

impl GlobalOptions {
    fn apply(&mut self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<(), Error> {
        match call.name() {
            "frankenphp" | "regent" => frankenphp::parse(cx, call, self)?,
            "servers" => servers::parse(cx, call, &mut self.global)?,
            "order" => cx.order.change(call)?,
            "log" => self.global.log = log::config(cx, call, self.global.log.clone()),
            "admin" => self.global.admin = admin::parse(cx, call)?,
            "metrics" => metrics(cx, call)?,
            "debug" => call.exactly::<0>("debug").map(|_| ())?,
            "http_port" => {
                self.global.http_port = values::integer(call.one("http_port N")?, 1..=u16::MAX, "http_port")?
            }
            "https_port" => {
                self.https_port = values::integer(call.one("https_port N")?, 1..=u16::MAX, "https_port")?
            }
            "grace_period" => {
                self.global.grace_period = values::duration(call.one("grace_period DURATION")?)?
            }
            "auto_https" => self.auto_https(call.one("auto_https off")?)?,
            "persist_config" => persist_config(call.one("persist_config off")?)?,
            "email" | "local_certs" | "skip_install_trust" => {
                let message = format!("`{}` has no effect: TLS is not built yet in Regent", call.name());
                cx.warn(call.name, message);
            }
            name if UNBUILT.contains(&name) => return Err(not_built(call.name)),
            _ => return Err(unknown(call.name, "global option", OPTIONS)),
        }
        Ok(())
    }

    fn auto_https(&mut self, token: &Token) -> Result<(), Error> {
        if token.text != "off" {
            return Err(not_built_as(token, &format!("auto_https {}", token.text)));
        }
        self.tls_by_default = false;
        Ok(())
    }
}

/// Regent keeps no copy of the configuration that runs, so that `off` is what it does.
fn persist_config(token: &Token) -> Result<(), Error> {
    if token.text == "off" { Ok(()) } else { Err(error(token, "`persist_config` can only be `off`")) }
}

/// The figures are there in any case; the options of Caddy's are about its labels.
fn metrics(cx: &mut Context<'_>, call: &Call<'_>) -> Result<(), Error> {
    call.no_arguments("metrics")?;
    for option in call.options() {
        let unbuilt = ["observe_catchall_hosts", "otlp", "per_host"];
        cx.errors.push(unknown_option(option.name, "metrics", &[], &unbuilt));
    }
    Ok(())
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
    use crate::directives::testing::{config, file_errors, load};
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
    fn metrics_are_there_in_any_case() {
        assert_eq!(global("metrics"), global(""));
        assert_eq!(errors("metrics {\nper_host\n}"), ["`metrics per_host` is not built yet in Regent"]);
    }

    #[test]
    fn plain_values() {
        let found = global("debug\nlog {\nlevel ERROR\n}\nhttp_port 81\ngrace_period 3s\npersist_config off");
        assert_eq!(found.log.level, LogLevel::Debug);
        assert_eq!((found.http_port, found.grace_period), (81, Duration::from_secs(3)));
    }

    #[test]
    fn what_is_about_tls_is_a_warning() {
        let warnings = load("{\nemail a@b\nlocal_certs\nskip_install_trust\n}\n:80 {\n}").unwrap().warnings;
        assert_eq!(warnings.len(), 3);
        assert_eq!(
            warnings[2].to_string(),
            "Caddyfile:4:1: `skip_install_trust` has no effect: TLS is not built yet in Regent"
        );
    }

    #[test]
    fn mistakes() {
        let found = errors("admn off\nadmin x\nauto_https on\nstorage file\nhttp_port 0\norder php first x");
        assert_eq!(found[0], "unknown global option `admn`; did you mean `admin`?");
        assert_eq!(found[3], "`storage` is not built yet in Regent");
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
