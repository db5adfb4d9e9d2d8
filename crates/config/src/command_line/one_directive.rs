//! The configurations of `regent respond` and `regent reverse-proxy`, as Caddy's commands of these names have them
//! (modules/caddyhttp/staticresp.go, reverseproxy/command.go).

use super::{AccessLog, LogDetail, Text, listen, without_spans};
use crate::environment::Environment;
use crate::load::{Loaded, parse};
use regent_caddyfile::{Error, Errors};
use std::path::Path;

/// A site that says one thing to everybody.
#[derive(Debug, Clone)]
pub struct RespondArguments {
    pub status: u16,
    pub body: String,
    /// `NAME: VALUE`.
    pub fields: Vec<String>,
    /// As [`super::SiteArguments::listen`]; with port 0 the system chooses one.
    pub listen: String,
    pub access_log: AccessLog,
    pub log_level: LogDetail,
}

/// A site that hands everything on.
#[derive(Debug, Clone)]
pub struct ProxyArguments {
    /// The address of the site, as a Caddyfile has it.
    pub from: String,
    /// Upstreams, at least one.
    pub to: Vec<String>,
    pub host: UpstreamHost,
    pub certificates: UpstreamCertificates,
    /// `NAME: VALUE`, of the request for the upstream.
    pub fields_up: Vec<String>,
    /// The same of the response.
    pub fields_down: Vec<String>,
    /// Further lines of the global options: `local_certs`, `auto_https disable_redirects`.
    pub options: Vec<&'static str>,
    pub access_log: AccessLog,
    pub log_level: LogDetail,
}

/// What an upstream finds as the `Host` of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamHost {
    /// The client's.
    Kept,
    /// Its own address.
    Changed,
}

/// Whether the certificates of upstreams are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamCertificates {
    Checked,
    /// Any will do.
    Ignored,
}

pub fn respond_config(site: &RespondArguments, environment: &Environment) -> Result<Loaded, Errors> {
    let listen = listen(&site.listen, environment).map_err(Error::without_span)?;
    let mut text = begun(&[], site.log_level);
    text.open(":80 {");
    if site.access_log == AccessLog::On {
        text.line("log");
    }
    for field in &site.fields {
        text.line(&format!("header {}", field_words(field, "--header")?));
    }
    text.line(&format!("respond {} {}", word(&site.body, "--body")?, site.status));
    text.close();
    let mut loaded = loaded(&text, environment)?;
    for server in &mut loaded.config.servers {
        server.listen = listen.clone();
    }
    Ok(loaded)
}

pub fn proxy_config(site: &ProxyArguments, environment: &Environment) -> Result<Loaded, Errors> {
    let mut text = begun(&site.options, site.log_level);
    text.open(&format!("{} {{", word(&site.from, "--from")?));
    if site.access_log == AccessLog::On {
        text.line("log");
    }
    let to = site.to.iter().map(|to| word(to, "--to")).collect::<Result<Vec<_>, _>>()?;
    text.open(&format!("reverse_proxy {} {{", to.join(" ")));
    if site.host == UpstreamHost::Changed {
        text.line("header_up Host {upstream_hostport}");
    }
    for (option, flag, fields) in
        [("header_up", "--header-up", &site.fields_up), ("header_down", "--header-down", &site.fields_down)]
    {
        for field in fields {
            text.line(&format!("{option} {}", field_words(field, flag)?));
        }
    }
    if site.certificates == UpstreamCertificates::Ignored {
        text.open("transport http {");
        text.line("tls_insecure_skip_verify");
        text.close();
    }
    text.close();
    text.close();
    loaded(&text, environment)
}

/// With the global options.
fn begun(options: &[&str], log_level: LogDetail) -> Text {
    let mut text = Text::default();
    text.open("{");
    text.line("admin off");
    if log_level == LogDetail::Debug {
        text.line("debug");
    }
    options.iter().for_each(|option| text.line(option));
    // An engine for PHP is always there; this one is never asked.
    text.line("frankenphp {");
    text.line("\tnum_threads 1");
    text.line("}");
    text.close();
    text
}

fn loaded(text: &Text, environment: &Environment) -> Result<Loaded, Errors> {
    parse("command line", &text.written, Path::new(""), environment).map_err(without_spans)
}

/// `NAME: VALUE` as two words.
fn field_words(field: &str, flag: &str) -> Result<String, Error> {
    let Some((name, value)) = field.split_once(':') else {
        return Err(Error::without_span(format!("{flag}: `{field}` is no field; write \"NAME: VALUE\"")));
    };
    Ok(format!("{} {}", word(name.trim(), flag)?, word(value.trim(), flag)?))
}

/// As one word of a Caddyfile.
fn word(text: &str, flag: &str) -> Result<String, Error> {
    match text.contains('\\') {
        true => {
            Err(Error::without_span(format!("{flag}: `{text}` has a backslash, which cannot stand there")))
        }
        false => Ok(format!("\"{}\"", text.replace('"', "\\\""))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Handler, Listen, Template};
    use std::collections::BTreeMap;

    fn environment() -> Environment {
        Environment { variables: BTreeMap::new(), current_dir: "/srv".into() }
    }

    fn respond(body: &str) -> RespondArguments {
        RespondArguments {
            status: 201,
            body: body.into(),
            fields: vec!["X-A: b c".into()],
            listen: "127.0.0.1:8080".into(),
            access_log: AccessLog::Off,
            log_level: LogDetail::Usual,
        }
    }

    fn proxy(from: &str, to: &str) -> ProxyArguments {
        ProxyArguments {
            from: from.into(),
            to: vec![to.into()],
            host: UpstreamHost::Changed,
            certificates: UpstreamCertificates::Ignored,
            fields_up: vec!["X-Up: 1".into()],
            fields_down: vec!["-Server".into()],
            options: vec!["local_certs"],
            access_log: AccessLog::On,
            log_level: LogDetail::Debug,
        }
    }

    #[test]
    fn one_answer() {
        let config = respond_config(&respond("say \"hi\""), &environment()).unwrap().config;
        assert_eq!(config.servers[0].listen, Listen::Tcp("127.0.0.1:8080".parse().unwrap()));
        let routes = &config.servers[0].sites[0].routes;
        assert!(matches!(&routes[0].handler, Handler::Header(ops) if ops[0].value == Template::text("b c")));
        let Handler::Respond { status, body, .. } = &routes[1].handler else { panic!("{routes:?}") };
        assert_eq!((status, body), (&Template::text("201"), &Template::text("say \"hi\"")));
        assert!(respond_config(&respond("a\\b"), &environment()).is_err());
    }

    #[test]
    fn one_upstream() {
        let mut site = proxy(":8080", "https://127.0.0.1:9000");
        assert!(proxy_config(&site, &environment()).unwrap_err().to_string().contains("--header-down"));
        site.fields_down.clear();
        let config = proxy_config(&site, &environment()).unwrap().config;
        assert_eq!(config.proxies[0].header_up.len(), 2);
        assert_eq!(config.servers[0].sites[0].access_logs.len(), 1);
        assert!(proxy_config(&proxy("a b", "x"), &environment()).is_err());
    }
}
