//! `resolvers IP[:PORT]…`: servers of DNS that are asked instead of the system's.

use crate::call::Call;
use crate::context::Context;
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::net::{IpAddr, SocketAddr};

/// Servers that one question may be put to, and sources of one directive.
const MOST_SERVERS: usize = 16;

/// The servers of a line.
pub(crate) fn parse(cx: &Context<'_>, line: &Call<'_>) -> Result<Vec<SocketAddr>, Error> {
    let tokens = line.some("resolvers ADDRESS…")?;
    if tokens.len() > MOST_SERVERS {
        return Err(error(line.name, format!("at most {MOST_SERVERS} servers are asked")));
    }
    tokens.iter().map(|token| server(token, &cx.fixed_text(token)?)).collect()
}

fn server(token: &Token, text: &str) -> Result<SocketAddr, Error> {
    let text = text.strip_prefix("udp/").unwrap_or(text);
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let with_default = || bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 53));
    let found = with_default().or_else(|| text.parse().ok()).filter(|server| server.port() != 0);
    found.ok_or_else(|| {
        let message =
            format!("`{}` is no address of a DNS server; write `10.0.0.2` or `127.0.0.1:8600`", token.text);
        error(token, message)
    })
}
