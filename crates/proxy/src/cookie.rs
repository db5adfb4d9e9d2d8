//! The cookie that keeps a client at its upstream (`lb_policy cookie`).

use http::{HeaderValue, header};
use regent_config::CookiePolicy;
use regent_handlers::Exchange;
use regent_tls::keyed_digest;
use std::fmt::Write;

/// Which of these upstreams the client's cookie names.
pub(crate) fn named<'a>(
    policy: &CookiePolicy,
    exchange: &Exchange,
    mut names: impl Iterator<Item = &'a str>,
) -> Option<usize> {
    let value = sent(policy, exchange)?;
    names.position(|name| digest(policy, name).as_bytes() == value)
}

/// `Set-Cookie`.
pub(crate) fn set(policy: &CookiePolicy, exchange: &Exchange, upstream: &str) -> Option<HeaderValue> {
    let mut cookie = format!("{}={}; Path=/", policy.name, digest(policy, upstream));
    if let Some(max_age) = policy.max_age {
        // Writing to a string cannot fail.
        let _ = write!(cookie, "; Max-Age={}", max_age.as_secs());
    }
    cookie.push_str("; HttpOnly");
    // As in Caddy: what is secure may be used by pages of other sites.
    cookie.push_str(if exchange.connection.tls.is_some() {
        "; Secure; SameSite=None"
    } else {
        "; SameSite=Lax"
    });
    HeaderValue::try_from(cookie).ok()
}

/// Names an upstream without telling its address.
fn digest(policy: &CookiePolicy, upstream: &str) -> String {
    keyed_digest(policy.secret.as_bytes(), upstream.as_bytes())
}

fn sent<'a>(policy: &CookiePolicy, exchange: &'a Exchange) -> Option<&'a [u8]> {
    let fields = exchange.headers.get_all(header::COOKIE).into_iter();
    let mut pairs = fields.flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    pairs.find_map(|pair| {
        let pair = pair.trim_ascii();
        pair.strip_prefix(policy.name.as_bytes())?.strip_prefix(b"=")
    })
}
