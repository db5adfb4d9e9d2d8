//! `bind ADDRESS…`: where the site listens; without it, where the global option `default_bind` says, or else on all of the
//! machine's addresses.
//!
//! A site whose own address is of the loopback, such as `http://127.0.0.1:8080`, listens there only without `bind` and
//! `default_bind` too, unless another site listens on all addresses at that port. (Caddy listens on all of them and compares `Host`. Any other
//! address or name of a host is compared with `Host` only, here as there.)
//!
//! An address is one of the machine's own, with the port of the site's address, or a Unix socket: `unix/PATH`, or
//! `unix/PATH|MODE` with the permissions of its file in octal digits. An absolute path so has two slashes. Who may write to
//! the file can connect: without a mode, 0200, only the user that the server runs as.
//!
//! A socket's file that a dead server has left behind is replaced, and it is removed when the server stops. Requests that come
//! over a Unix socket have no client's address: `REMOTE_ADDR`, `REMOTE_PORT`, `SERVER_ADDR` and the placeholders for them
//! are empty, and no `remote_ip` fits. (nginx says `unix:`, which is no address either.)
//!
//! `fd/N` is the socket that systemd has passed as descriptor N: 3 is the first `ListenStream=` of the socket unit. The site has
//! no port of its own there. `fdgram/N` beside it has no effect: HTTP/3 is spoken at the `ListenDatagram=` that is bound as
//! `fd/…` is. An address does as well as a number: what systemd passes is found by it.
//!
//! `bind ADDRESS… { protocols h1 [h2] [h2c] [h3] }` says which protocols are spoken there, whatever [servers](#servers) says for
//! others. All that bind an address and say it say the same.
//!
//! ```caddyfile
//! http://:8080 {
//!     bind 127.0.0.1 [::1]
//! }
//! http://example.com {
//!     bind unix//run/regent/site.sock|0660
//! }
//! ```

use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::context::Context;
use crate::global::servers;
use crate::matchers::Scope;
use crate::model::{HttpProtocol, Listen, Route, UnixSocket};
use crate::problems::{error, not_built_as, unknown_option};
use crate::unix_socket;
use regent_caddyfile::{Error, Token};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(super) const DIRECTIVE: Directive =
    Directive { name: "bind", sorts_as: "bind", matchers: Matchers::None, parse: Parse::Routes(misplaced) };

/// Where a site listens, but for the port.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Interface {
    Ip(IpAddr),
    Unix(UnixSocket),
    Descriptor(u16),
}

/// The protocols that a `bind` says for an address of it.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    /// `None`: the socket for datagrams that is passed beside the others.
    pub interface: Option<Interface>,
    pub protocols: Vec<HttpProtocol>,
    pub place: Token,
}

/// Descriptors that sockets are passed as begin behind the standard streams (sd_listen_fds(3)).
const DESCRIPTORS: std::ops::RangeInclusive<u16> = 3..=1023;

impl Interface {
    /// All of the machine's addresses, of IPv6 and IPv4.
    pub const ANY: Self = Self::Ip(IpAddr::V6(Ipv6Addr::UNSPECIFIED));

    /// Where a site with this port listens; a Unix socket has none, and a socket that is passed its own.
    pub fn with_port(&self, port: u16) -> Listen {
        match self {
            Self::Ip(ip) => Listen::Tcp(SocketAddr::new(*ip, port)),
            Self::Unix(socket) => Listen::Unix(socket.clone()),
            Self::Descriptor(number) => Listen::Descriptor(*number),
        }
    }
}

/// The addresses of a `bind` or `default_bind`, with their places.
pub(crate) fn interfaces<'a>(
    cx: &mut Context<'_>,
    call: &Call<'a>,
) -> Result<Vec<(&'a Token, Interface)>, Error> {
    let addresses = Call { block: None, ..*call };
    let tokens = addresses.some(&format!("{} ADDRESS… [{{ protocols … }}]", call.name()))?;
    let protocols = protocols(call, tokens)?;
    let found: Vec<_> = tokens.iter().filter_map(|token| Some((token, read(cx, token)?))).collect();
    if let Some((place, protocols)) = protocols {
        let bound = |interface| Bound { interface, protocols: protocols.clone(), place: place.clone() };
        if found.is_empty() {
            cx.bound.push(bound(None));
        }
        cx.bound.extend(found.iter().map(|(_, interface)| bound(Some(interface.clone()))));
    }
    Ok(found)
}

/// What the block says, and where. Sockets for datagrams have HTTP/3 alone.
fn protocols<'a>(call: &Call<'a>, tokens: &[Token]) -> Result<Option<(&'a Token, Vec<HttpProtocol>)>, Error> {
    let mut found = None;
    for option in call.options() {
        if option.name() != "protocols" {
            return Err(unknown_option(option.name, call.name(), &["protocols"], &[]));
        }
        let is_of_datagrams = tokens.iter().all(|token| token.text.starts_with("fdgram/"));
        let protocols = match is_of_datagrams {
            true => option.some("protocols h3")?.iter().map(servers::protocol).collect::<Result<_, _>>()?,
            false => servers::protocols(&option)?,
        };
        found = Some((option.name, protocols));
    }
    Ok(found)
}

/// `None`: it is a mistake, or says nothing.
fn read(cx: &mut Context<'_>, token: &Token) -> Option<Interface> {
    let is_of_datagrams = cx.fixed_text(token).is_ok_and(|text| text.starts_with("fdgram/"));
    let interface = interface(cx, token);
    let interface = cx.check(interface)?;
    if interface == Interface::ANY && token.text.starts_with("tcp6/") {
        cx.warn(
            token,
            "this takes connections by IPv4 too; for IPv6 alone name the addresses of this machine that the site is to have",
        );
    }
    if is_of_datagrams {
        let message = "this has no effect: HTTP/3 is spoken at the socket for datagrams that is bound as `fd/…` of this site is";
        cx.warn(token, message);
        return None;
    }
    Some(interface)
}

fn interface(cx: &Context<'_>, token: &Token) -> Result<Interface, Error> {
    let fixed = cx.fixed_text(token)?;
    let text = fixed.as_str();
    if let Some(socket) = fixed.strip_prefix(unix_socket::PREFIX) {
        let socket = unix_socket::parse(socket, cx.environment);
        return socket.map(Interface::Unix).map_err(|message| error(token, message));
    }
    if let Some(number) = fixed.strip_prefix("fd/").or_else(|| fixed.strip_prefix("fdgram/")) {
        return descriptor(token, number).map(Interface::Descriptor);
    }
    let (family, text) = match text.split_once('/') {
        None | Some(("tcp", _)) => (Family::Any, text.strip_prefix("tcp/").unwrap_or(text)),
        Some(("tcp4", rest)) => (Family::Ipv4, rest),
        Some(("tcp6", rest)) => (Family::Ipv6, rest),
        Some((network, _)) => return Err(not_built_as(token, &format!("bind {network}/…"))),
    };
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let ip = match bare {
        "localhost" => Ipv4Addr::LOCALHOST.into(),
        "0.0.0.0" => Ipv4Addr::UNSPECIFIED.into(),
        _ => bare.parse().map_err(|_| {
            let message =
                format!("`{text}` is no address of this machine; write one such as `127.0.0.1` or `[::1]`");
            error(token, message)
        })?,
    };
    match (family, ip) {
        (Family::Ipv4, IpAddr::V6(_)) | (Family::Ipv6, IpAddr::V4(_)) => {
            Err(error(token, format!("`{text}` is no address of that version of IP")))
        }
        _ => Ok(Interface::Ip(ip)),
    }
}

/// The number behind `fd/`.
pub(crate) fn descriptor(token: &Token, number: &str) -> Result<u16, Error> {
    number.parse().ok().filter(|number| DESCRIPTORS.contains(number)).ok_or_else(|| {
        error(
            token,
            "a descriptor that a socket is passed as is a number from 3 on; write one such as `fd/3`",
        )
    })
}

/// Which addresses a network of Caddy's has.
enum Family {
    Any,
    Ipv4,
    Ipv6,
}

/// A `bind` at its place is taken out before the routes of a site are parsed.
fn misplaced(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Vec<Route>, Error> {
    Err(error(call.name, "`bind` has to stand directly in a site block"))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors, load, load_with};
    use crate::model::{Listen, LogLevel, Matcher, UnixSocket};
    use std::net::IpAddr;

    #[test]
    fn a_site_listens_where_it_is_bound() {
        let config = config("http://:81 {\nbind tcp4/127.0.0.1 tcp6/[::1]\n}\n:82 {\n}\n");
        let listen: Vec<_> = config.servers.iter().map(|server| format!("{:?}", server.listen)).collect();
        assert_eq!(listen, ["Tcp(127.0.0.1:81)", "Tcp([::1]:81)", "Tcp([::]:82)"]);
    }

    #[test]
    fn what_is_known_at_load_may_come_from_the_environment() {
        let text = "{\ndefault_bind {env.ADDRESS}\nlog {\nlevel {env.LEVEL}\n}\nservers {\ntrusted_proxies static {env.RANGE}\n\
                    listener_wrappers {\nproxy_protocol {\nallow {env.RANGE}\ndeny {env.ADDRESS}\n}\n}\n}\n}\n\
                    :81 {\nlog {\nlevel {env.LEVEL}\n}\n@near {\nremote_ip {env.RANGE}\nclient_ip {env.RANGE}\n}\n\
                    cache {\npurge_from {env.RANGE}\n}\nreverse_proxy @near a:1 {\ntrusted_proxies {env.RANGE}\n}\n}";
        let variables = [("ADDRESS", "127.0.0.9"), ("RANGE", "10.0.0.0/8"), ("LEVEL", "warn")];
        let loaded = load_with(text, &variables).unwrap_or_else(|errors| panic!("{errors}"));
        let server = &loaded.config.servers[0];
        assert_eq!(format!("{:?}", server.listen), "Tcp(127.0.0.9:81)");
        let range = (IpAddr::from([10, 0, 0, 0]), 8);
        assert_eq!(server.options.trusted_proxies.as_ref().unwrap().ranges, [range]);
        assert_eq!(loaded.config.proxies[0].trusted_proxies, [range]);
        assert_eq!(server.sites[0].access_logs[0].level, LogLevel::Warn);
        let near = [Matcher::RemoteIp(vec![range]), Matcher::ClientIp(vec![range])];
        assert!(server.sites[0].routes.iter().any(|route| route.matchers == [near.clone()]), "{server:?}");
        let found = file_errors(":81 {\nbind {env.NOT_SET}\n@a remote_ip {host}\nrespond @a x\n}");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found.iter().any(|message| message.contains("`{host}` cannot depend on the request")),
            "{found:?}"
        );
    }

    #[test]
    fn all_addresses_of_one_version_of_ip_are_those_of_both() {
        let warnings = |bind: &str| load(&format!("http://:81 {{\n{bind}\n}}")).unwrap().warnings.len();
        assert_eq!(warnings("bind tcp6/[::]"), 1);
        assert_eq!(warnings("bind [::]"), 0);
        assert_eq!(warnings("bind tcp6/[::1] tcp4/0.0.0.0"), 0);
    }

    #[test]
    fn unix_sockets() {
        let config = config(
            "http://a, http://b:81 {\nbind unix//run/x|0660 ::1\n}\n:80 {\nbind unix/y\n}\n\
             :82 {\nbind unix//run/x|0660\n}",
        );
        let servers: Vec<_> = config
            .servers
            .iter()
            .map(|server| {
                (server.listen.clone(), server.sites.iter().map(|site| site.hosts.clone()).collect())
            })
            .collect();
        let unix = |path: &str, mode| Listen::Unix(UnixSocket { path: path.into(), mode });
        let tcp = |address: &str| Listen::Tcp(address.parse().unwrap());
        let hosts = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        assert_eq!(
            servers,
            [
                (unix("/run/x", 0o660), vec![hosts(&["a", "b"]), hosts(&[])]),
                (tcp("[::1]:80"), vec![hosts(&["a"])]),
                (tcp("[::1]:81"), vec![hosts(&["b"])]),
                (unix("/srv/y", 0o200), vec![hosts(&[])]),
            ]
        );
    }

    #[test]
    fn sockets_that_are_passed_have_numbers() {
        let text = "https://localhost {\ntls internal\nbind fd/3\nbind fdgram/4\n}\nhttp://:81, http://a:82 {\nbind fd/5 ::1\n}";
        let loaded = load(text).unwrap();
        let listen: Vec<_> =
            loaded.config.servers.iter().map(|server| format!("{:?}", server.listen)).collect();
        assert_eq!(listen, ["Descriptor(3)", "Descriptor(5)", "Tcp([::1]:81)", "Tcp([::1]:82)"]);
        assert!(
            loaded.warnings[0].to_string().contains("4:6: this has no effect: HTTP/3"),
            "{:?}",
            loaded.warnings
        );
    }

    #[test]
    fn a_default_is_for_sites_that_do_not_say_it() {
        let listens = |text: &str| -> Vec<String> {
            config(text).servers.iter().map(|server| format!("{:?}", server.listen)).collect()
        };
        let default = "{\ndefault_bind 127.0.0.1\ndefault_bind [::1]\n}\n";
        assert_eq!(
            listens(&format!("{default}:81 {{\n}}\n:82 {{\nbind 127.0.0.2\n}}\nhttp://127.0.0.3:83 {{\n}}")),
            ["Tcp(127.0.0.1:81)", "Tcp([::1]:81)", "Tcp(127.0.0.2:82)", "Tcp(127.0.0.1:83)", "Tcp([::1]:83)"]
        );
        assert_eq!(
            listens("{\ndefault_bind 127.0.0.1\n}\nhttps://localhost {\ntls internal\n}"),
            ["Tcp(127.0.0.1:443)", "Tcp(127.0.0.1:80)"],
            "redirects too"
        );
        let unix = listens("{\ndefault_bind unix//run/x|0660\n}\nhttp://a {\n}\nhttp://b {\n}");
        assert_eq!(unix.len(), 1, "{unix:?}");
        assert!(unix[0].starts_with("Unix("), "{unix:?}");
    }

    #[test]
    fn mistakes_of_the_default() {
        let of = |options: &str, sites: &str| file_errors(&format!("{{\n{options}\n}}\n{sites}"));
        let found =
            of("default_bind\ndefault_bind example.com udp/::1\ndefault_bind ::1 {\nx\n}", ":81 {\n}");
        assert!(found[0].contains("`default_bind`"), "{found:?}");
        assert!(found[1].contains("no address of this machine"), "{found:?}");
        assert!(found.iter().any(|message| message.contains("unknown option `x`")), "{found:?}");
        assert_eq!(found.len(), 4, "{found:?}");
        let sites = ":81 {\nbind unix//x\n}\n:82 {\n}\nhttp://a:83 {\n}";
        let found = of("default_bind unix//x|0660", sites);
        assert_eq!(found, ["/x has the mode 0660 already (Caddyfile:2:14), not 0200"], "once, at the site");
    }

    #[test]
    fn mistakes() {
        assert!(file_errors(":81 {\nbind example.com\n}")[0].contains("no address of this machine"));
        for descriptor in ["fd/2", "fd/", "fd/x", "fd/70000", "fdgram/0"] {
            let found = file_errors(&format!(":81 {{\nbind ::1 {descriptor}\n}}"));
            assert!(found[0].contains("is a number from 3 on"), "{found:?}");
        }
        assert!(file_errors(":81 {\nbind fdgram/4\n}")[0].contains("`fd/…` or an address too"));
        assert!(file_errors(":81 {\nbind udp/127.0.0.1\n}")[0].contains("write the address alone"));
        assert!(file_errors(":81 {\nbind tcp4/[::1]\n}")[0].contains("that version of IP"));
        assert!(file_errors(":81 {\nbind unix/\n}")[0].contains("names no file"));
        assert_eq!(file_errors(":81 {\nbind unix//x|9 nowhere unix//{path}\n}").len(), 3);
        assert!(file_errors(":81 {\nroute {\nbind ::1\n}\n}")[0].contains("directly in a site block"));
    }
}
