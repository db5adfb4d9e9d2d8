//! The addresses of a site, of `listen` and `server_name`.

use super::tree::Directive;

/// An address that a server listens on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listen {
    /// An address of this machine; empty: all.
    pub address: String,
    pub port: u16,
    pub has_tls: bool,
    pub is_default: bool,
}

pub(super) fn listens(server: &[Directive]) -> Vec<Listen> {
    let old_tls = server.iter().any(|line| line.name == "ssl" && line.arg(0) == "on");
    let lines = server.iter().filter(|line| line.name == "listen");
    let mut found: Vec<Listen> = Vec::new();
    for mut listen in lines.filter_map(|line| listen(line, old_tls)) {
        // The same in IPv6 is the same here.
        if listen.address == "[::]" || listen.address == "*" || listen.address == "0.0.0.0" {
            listen.address.clear();
        }
        if !found.contains(&listen) {
            found.push(listen);
        }
    }
    if found.is_empty() {
        found.push(Listen { address: String::new(), port: 80, has_tls: old_tls, is_default: false });
    }
    found
}

fn listen(line: &Directive, old_tls: bool) -> Option<Listen> {
    let text = line.arg(0);
    let options = &line.args[1..];
    let has = |name: &str| options.iter().any(|option| option == name);
    let (address, port) = match text.parse::<u16>() {
        Ok(port) => ("", port),
        Err(_) if text.starts_with("unix:") => return None,
        Err(_) => match text.rsplit_once(':') {
            // An address of IPv6 without a port ends with a bracket.
            Some((address, port)) if !port.ends_with(']') => (address, port.parse().ok()?),
            _ => (text, 80),
        },
    };
    let has_tls = has("ssl") || has("quic") || old_tls;
    let is_default = has("default_server") || has("default");
    Some(Listen { address: address.to_owned(), port, has_tls, is_default })
}

/// The names that a Caddyfile can have, and those that it cannot.
pub(super) fn names(server: &[Directive]) -> (Vec<String>, Vec<&Directive>) {
    let mut names = Vec::new();
    let mut others = Vec::new();
    for line in server.iter().filter(|line| line.name == "server_name") {
        for name in &line.args {
            match name.as_str() {
                "" | "_" => {}
                name if name.starts_with('~') || name.ends_with(".*") || name.contains('$') => {
                    others.push(line)
                }
                name => match name.strip_prefix('.') {
                    Some(domain) => names.extend([domain.to_owned(), format!("*.{domain}")]),
                    None => names.push(name.to_owned()),
                },
            }
        }
    }
    names.dedup();
    (names, others)
}

/// The addresses as a Caddyfile has them.
pub(super) fn written(names: &[String], listens: &[Listen]) -> Vec<String> {
    let any = [String::new()];
    let names = if names.is_empty() { &any[..] } else { names };
    let mut written = Vec::new();
    for name in names {
        for listen in listens {
            let address = match (listen.has_tls, listen.port) {
                (true, 443) if !name.is_empty() => name.clone(),
                (true, port) => format!("https://{name}:{port}"),
                (false, 80) if !name.is_empty() => format!("http://{name}"),
                (false, port) => format!("http://{name}:{port}"),
            };
            if !written.contains(&address) {
                written.push(address);
            }
        }
    }
    written
}
