//! `listen`: addresses such as `:443`, `127.0.0.1:8080-8085`, `unix//run/site.sock|0660` and `fd/3`.

use crate::document::Node;
use crate::reader::{Reader, line, word};
use regent_caddyfile::{Line, Token};

/// Ports of one range. More are a slip of the pen.
const MOST_PORTS: u16 = 1024;

/// One address to listen on.
pub(super) struct Place<'a> {
    pub at: &'a Node,
    /// What `bind` says of it; empty: all addresses of the machine.
    interface: String,
    /// `None`: it has none, as a Unix socket.
    pub port: Option<u16>,
}

/// Places with the same interfaces.
pub(super) struct Group<'a> {
    at: &'a Node,
    interfaces: Vec<String>,
    pub ports: Vec<u16>,
}

impl Place<'_> {
    /// As the option `servers` names it.
    pub fn address(&self) -> Token {
        let text = match self.port {
            Some(port) => format!("{}:{port}", self.interface),
            None => self.interface.clone(),
        };
        word(self.at, &text)
    }
}

impl Group<'_> {
    pub fn bind(&self) -> Vec<Line> {
        if self.interfaces.iter().all(String::is_empty) {
            return Vec::new();
        }
        let of = |interface: &String| if interface.is_empty() { "::".to_owned() } else { interface.clone() };
        vec![line(
            self.at,
            "bind",
            self.interfaces.iter().map(|interface| word(self.at, &of(interface))).collect(),
        )]
    }
}

/// The addresses that one text stands for.
pub(super) fn places<'a>(r: &mut Reader, node: &'a Node) -> Vec<Place<'a>> {
    let Some(text) = r.text(node) else { return Vec::new() };
    let text = text.text.as_str();
    if ["unix/", "fd/", "fdgram/"].iter().any(|network| text.starts_with(network)) {
        return vec![Place { at: node, interface: text.to_owned(), port: None }];
    }
    if let Some((network, _)) =
        text.split_once('/').filter(|(network, _)| !["tcp", "tcp4", "tcp6"].contains(network))
    {
        r.error(
            node,
            format_args!("Regent does not listen on `{network}/…`; it has `tcp/…`, `unix/…` and `fd/…`"),
        );
        return Vec::new();
    }
    let bare = text.strip_prefix("tcp/").unwrap_or(text);
    let Some((host, (first, last))) =
        bare.rsplit_once(':').and_then(|(host, ports)| Some((host, range(ports)?)))
    else {
        r.error(node, format_args!("`{text}` is no address to listen on; write one such as \":443\", \"127.0.0.1:8080\" or \"unix//run/site.sock\""));
        return Vec::new();
    };
    (first..=last).map(|port| Place { at: node, interface: host.to_owned(), port: Some(port) }).collect()
}

/// `443`, or `8080-8085`.
fn range(ports: &str) -> Option<(u16, u16)> {
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first > 0 && first <= last && last - first < MOST_PORTS).then_some((first, last))
}

/// The places by their interfaces. Sockets without a port go with the first group.
pub(super) fn groups<'a>(places: &[Place<'a>]) -> Vec<Group<'a>> {
    let mut ports: Vec<(u16, Group<'a>)> = Vec::new();
    for place in places {
        let Some(port) = place.port else { continue };
        match ports.iter_mut().find(|(known, _)| *known == port) {
            Some((_, group)) => group.interfaces.push(place.interface.clone()),
            None => {
                let interfaces = vec![place.interface.clone()];
                ports.push((port, Group { at: place.at, interfaces, ports: vec![port] }));
            }
        }
    }
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (port, group) in ports {
        match groups.iter_mut().find(|known| known.interfaces == group.interfaces) {
            Some(known) => known.ports.push(port),
            None => groups.push(group),
        }
    }
    let sockets: Vec<_> = places.iter().filter(|place| place.port.is_none()).collect();
    if let (true, Some(first)) = (groups.is_empty(), sockets.first()) {
        groups.push(Group { at: first.at, interfaces: Vec::new(), ports: Vec::new() });
    }
    if let Some(first) = groups.first_mut() {
        first.interfaces.extend(sockets.into_iter().map(|socket| socket.interface.clone()));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_ports() {
        assert_eq!(range("80"), Some((80, 80)));
        assert_eq!(range("8080-8085"), Some((8080, 8085)));
        for text in ["", "0", "x", "85-80", "1-65535", "80-", "-80"] {
            assert_eq!(range(text), None, "{text}");
        }
    }
}
