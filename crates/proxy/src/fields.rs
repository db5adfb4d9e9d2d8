//! Header fields that are between two neighbours, and no further.

use http::{HeaderMap, HeaderName, HeaderValue, Version, header};

/// Removes what is between two neighbours, and what `Connection` names.
pub(crate) fn remove_hop_by_hop(fields: &mut HeaderMap) {
    let named = tokens(fields, &header::CONNECTION).filter_map(|name| name.parse().ok());
    // Looked for among the few that there are: most heads have none of them.
    let own = fields.keys().filter(|name| is_hop_by_hop(name)).cloned();
    let removed: Vec<HeaderName> = named.chain(own).collect();
    removed.into_iter().for_each(|name| drop(fields.remove(name)));
}

/// RFC 9110 §7.6.1, and what Caddy removes besides (reverseproxy.go, `hopHeaders`).
fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "alt-svc"
            | "connection"
            | "proxy-connection"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// The members of a field that is a list.
pub(crate) fn tokens<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = fields.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|token| !token.is_empty())
}

/// Whether a list has this member.
pub(crate) fn has_token(fields: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(fields, name).any(|own| own.eq_ignore_ascii_case(token))
}

/// Names this server behind those that a message has come through (RFC 9110 §7.6.3).
pub(crate) fn add_via(fields: &mut HeaderMap, received: Version) {
    let via = match received {
        Version::HTTP_10 => "1.0 Regent",
        Version::HTTP_2 => "2.0 Regent",
        Version::HTTP_3 => "3.0 Regent",
        _ => "1.1 Regent",
    };
    fields.append(header::VIA, HeaderValue::from_static(via));
}

/// How often a message has been through a server like this one.
pub(crate) fn passages(fields: &HeaderMap) -> usize {
    tokens(fields, &header::VIA).filter(|member| member.ends_with(" Regent")).count()
}

/// The protocol that a message wants to change to, or changes to.
pub(crate) fn upgrade(fields: &HeaderMap) -> Option<HeaderValue> {
    has_token(fields, &header::CONNECTION, "upgrade").then(|| fields.get(header::UPGRADE).cloned()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(field).collect()
    }

    #[test]
    fn what_connection_names_goes_with_it() {
        let mut fields = fields(&[
            ("connection", "X-Own, close"),
            ("x-own", "1"),
            ("keep-alive", "5"),
            ("te", "gzip"),
            ("transfer-encoding", "chunked"),
            ("trailer", "x"),
            ("upgrade", "h2c"),
            ("proxy-authorization", "secret"),
            ("x-other", "1"),
        ]);
        remove_hop_by_hop(&mut fields);
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["x-other"]);
    }

    #[test]
    fn passages_are_counted() {
        let own = fields(&[("via", "1.1 Regent, 1.1 other"), ("via", "2.0 Regent")]);
        assert_eq!(passages(&own), 2);
    }

    #[test]
    fn an_upgrade_needs_both_fields() {
        assert!(
            upgrade(&fields(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")])).is_some()
        );
        assert!(upgrade(&fields(&[("upgrade", "websocket")])).is_none());
        assert!(upgrade(&fields(&[("connection", "upgrade")])).is_none());
    }
}
