//! `bind ADDRESS…`: the machine's own addresses that the site listens on; without it, all of them. The port is that of
//! the site's address.
//!
//! ```caddyfile
//! http://:8080 {
//!     bind 127.0.0.1 [::1]
//! }
//! ```

use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::Route;
use crate::problems::{error, not_built_as};
use regent_caddyfile::{Error, Token};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const DIRECTIVE: Directive =
    Directive { name: "bind", sorts_as: "bind", matchers: Matchers::None, parse: Parse::Routes(misplaced) };

/// All of the machine's addresses, of IPv6 and IPv4.
pub(crate) const ANY: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// The addresses of a `bind`.
pub(crate) fn addresses(call: &Call<'_>) -> Result<Vec<IpAddr>, Error> {
    call.without_block("bind ADDRESS…")?;
    call.some("bind ADDRESS…")?.iter().map(address).collect()
}

fn address(token: &Token) -> Result<IpAddr, Error> {
    let text = token.text.as_str();
    if text.contains('/') {
        return Err(not_built_as(token, &format!("bind {text}")));
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    match bare {
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        "0.0.0.0" => Ok(Ipv4Addr::UNSPECIFIED.into()),
        _ => bare.parse().map_err(|_| {
            error(
                token,
                format!("`{text}` is no address of this machine; write one such as `127.0.0.1` or `[::1]`"),
            )
        }),
    }
}

/// A `bind` at its place is taken out before the routes of a site are parsed.
fn misplaced(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Vec<Route>, Error> {
    Err(error(call.name, "`bind` has to stand directly in a site block"))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};

    #[test]
    fn a_site_listens_where_it_is_bound() {
        let config = config("http://:81 {\nbind 127.0.0.1 [::1]\n}\n:82 {\n}\n");
        let listen: Vec<_> = config.servers.iter().map(|server| format!("{:?}", server.listen)).collect();
        assert_eq!(listen, ["Tcp(127.0.0.1:81)", "Tcp([::1]:81)", "Tcp([::]:82)"]);
    }

    #[test]
    fn mistakes() {
        assert!(file_errors(":81 {\nbind example.com\n}")[0].contains("no address of this machine"));
        assert!(file_errors(":81 {\nbind unix//run/x.sock\n}")[0].contains("not built yet"));
        assert!(file_errors(":81 {\nroute {\nbind ::1\n}\n}")[0].contains("directly in a site block"));
    }
}
