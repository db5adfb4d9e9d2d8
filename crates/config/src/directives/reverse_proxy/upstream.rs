//! The addresses of upstreams (Caddy's reverseproxy/addresses.go).

use crate::call::Call;
use crate::context::Context;
use crate::model::{Part, Template, Upstream, UpstreamAddress};
use crate::problems::error;
use regent_caddyfile::{Error, Token};

/// Addresses that a range of ports may stand for.
const MOST_IN_A_RANGE: u16 = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Scheme {
    /// None is written.
    #[default]
    None,
    Http,
    Https,
    H2c,
}

/// Upstreams that are not written in the directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    None,
    Dynamic,
}

/// All upstreams of a directive so far.
#[derive(Default)]
pub(super) struct Upstreams {
    scheme: Option<Scheme>,
    upstreams: Vec<Upstream>,
    faulty: bool,
}

impl Upstreams {
    /// Mistakes are noted in `cx`.
    pub fn add(&mut self, cx: &mut Context<'_>, tokens: &[Token]) {
        for token in tokens {
            let added = self.add_one(cx, token);
            self.faulty |= cx.check(added).is_none();
        }
    }

    /// `call`: the directive.
    pub fn finish(self, call: &Call<'_>, others: Others) -> Result<(Scheme, Vec<Upstream>), Error> {
        if self.upstreams.is_empty() && !self.faulty && others == Others::None {
            let name = call.name();
            return Err(error(
                call.name,
                format!("`{name}` needs an upstream (is a variable not set?); write: {name} localhost:9000"),
            ));
        }
        Ok((self.scheme.unwrap_or_default(), self.upstreams))
    }

    fn add_one(&mut self, cx: &mut Context<'_>, token: &Token) -> Result<(), Error> {
        let (scheme, address) = scheme(token)?;
        if *self.scheme.get_or_insert(scheme) != scheme {
            return Err(error(token, "all upstreams of a directive need the same scheme"));
        }
        let template = Template::parse(address);
        let Some(text) = cx.fixed(&template) else {
            if scheme != Scheme::None {
                return Err(error(token, "an upstream with a placeholder can have no scheme"));
            }
            let templates = computed_in_range(with_environment(cx, template)).ok_or_else(|| {
                error(
                    token,
                    format!("`{}` is no range of ports; write one such as `{{host}}:8001-8003`", token.text),
                )
            })?;
            self.upstreams.extend(templates.into_iter().map(Upstream::Computed));
            return Ok(());
        };
        let invalid = || error(token, format!("`{}` is no address of an upstream; {HINT}", token.text));
        let text = if text.is_empty() { nowhere(cx, token, scheme) } else { with_port(&text, scheme) };
        for address in in_range(&text).ok_or_else(invalid)? {
            let address = UpstreamAddress::parse(&address).ok_or_else(invalid)?;
            check_port(token, scheme, &address)?;
            self.upstreams.push(Upstream::Fixed(address));
        }
        Ok(())
    }
}

const HINT: &str = "write `host:port`, `:port`, `https://host` or `unix//path/of.sock`";

/// What a scheme without a host stands for in Caddy: a variable that is not set, in most cases. Empty: there is no scheme
/// either.
fn nowhere(cx: &mut Context<'_>, token: &Token, scheme: Scheme) -> String {
    let port = match scheme {
        Scheme::None => return String::new(),
        Scheme::Http | Scheme::H2c => 80,
        Scheme::Https => 443,
    };
    let message = format!(
        "`{}` names no host (is a variable not set?): requests go to port {port} of this machine, as in Caddy",
        token.text
    );
    cx.warn(token, message);
    format!(":{port}")
}

/// The scheme, and what follows it.
fn scheme(token: &Token) -> Result<(Scheme, &str), Error> {
    let text = token.text.as_str();
    if let Some(path) = text.strip_prefix("unix+h2c/") {
        // The address is that of a Unix socket without the suffix.
        return Ok((Scheme::H2c, &text[text.len() - path.len() - 1..]));
    }
    let Some((scheme, rest)) = text.split_once("://") else { return Ok((Scheme::None, text)) };
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        "h2c" => Scheme::H2c,
        "ws" => return Err(error(token, "for WebSocket write `http://`: `ws://` is for browsers")),
        "wss" => return Err(error(token, "for WebSocket write `https://`: `wss://` is for browsers")),
        other => return Err(error(token, format!("`{other}://` is no scheme of an upstream; {HINT}"))),
    };
    match rest.find(['/', '?', '#']) {
        Some(_) => Err(error(token, "an upstream has no path: use `rewrite` before `reverse_proxy`")),
        None => Ok((scheme, rest)),
    }
}

/// Schemes have ports of their own.
fn with_port(text: &str, scheme: Scheme) -> String {
    match scheme {
        Scheme::H2c if text.starts_with('/') => format!("unix{text}"),
        Scheme::Https if !has_port(text) => format!("{text}:443"),
        _ => text.to_owned(),
    }
}

fn has_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'))
}

/// The addresses that `host:8001-8003` stands for. `None`: it is no range.
fn in_range(text: &str) -> Option<Vec<String>> {
    let ports = text.rsplit_once(':').filter(|_| !text.starts_with("unix/") && has_port(text));
    let Some((host, (first, last))) = ports.and_then(|(host, ports)| Some((host, ports.split_once('-')?)))
    else {
        return Some(vec![text.to_owned()]);
    };
    let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
    let is_range = first <= last && last - first < MOST_IN_A_RANGE;
    is_range.then(|| (first..=last).map(|port| format!("{host}:{port}")).collect())
}

/// The same for an address whose placeholders stand before the port.
fn computed_in_range(template: Template) -> Option<Vec<Template>> {
    let Some((Part::Text(last), first)) = template.0.split_last() else { return Some(vec![template]) };
    let is_port =
        |text: &str| text.rsplit_once(':').is_some_and(|(_, port)| port.contains('-') && !port.contains('/'));
    if !is_port(last) {
        return Some(vec![template]);
    }
    let with = |last: String| Template(first.iter().cloned().chain([Part::Text(last)]).collect());
    Some(in_range(last)?.into_iter().map(with).collect())
}

fn check_port(token: &Token, scheme: Scheme, address: &UpstreamAddress) -> Result<(), Error> {
    let UpstreamAddress::Tcp { port, .. } = address else { return Ok(()) };
    match (scheme, port) {
        (Scheme::Http | Scheme::H2c, 443) => Err(error(token, "port 443 is that of `https://`")),
        (Scheme::Https, 80) => Err(error(token, "port 80 is that of `http://`")),
        _ => Ok(()),
    }
}

/// Puts in what is known already, so that messages and metrics can show it.
pub(super) fn with_environment(cx: &Context<'_>, template: Template) -> Template {
    let part = |part: Part| match &part {
        Part::Placeholder(name) => match name.strip_prefix("env.") {
            Some(name) => Part::Text(cx.environment.variable(name).unwrap_or_default()),
            None => part,
        },
        Part::Text(_) => part,
    };
    Template(template.0.into_iter().map(part).collect())
}
