//! Placeholders by the names that Caddy gives them, in a request.

use super::*;
use crate::context::exchange::Exchange;
use crate::context::exchange::tests::{get, request};
use crate::context::failure::Failure;

fn value(exchange: &Exchange, name: &str) -> String {
    let mut out = Vec::new();
    if let Some(placeholder) = Placeholder::parse(name) {
        placeholder.write(exchange, &mut out);
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn request_values() {
    let exchange = request(
        "GET",
        "/a/b%20c.tar.gz?k=v+1&k=2&z",
        &[("host", "WWW.Example.com:8080"), ("cookie", "a=1; sid=x"), ("x-y", "1"), ("x-y", "2")],
    );
    for (name, want) in [
        ("http.request.method", "GET"),
        ("http.request.host", "www.example.com"),
        ("http.request.hostport", "WWW.Example.com:8080"),
        ("http.request.port", "8080"),
        ("http.request.host.labels.0", "com"),
        ("http.request.host.labels.2", "www"),
        ("http.request.uri", "/a/b%20c.tar.gz?k=v+1&k=2&z"),
        ("http.request.uri.path", "/a/b c.tar.gz"),
        ("http.request.uri.path.0", "a"),
        ("http.request.uri.path.1", "b c.tar.gz"),
        ("http.request.uri.path.9", ""),
        ("http.request.uri.path.dir", "/a/"),
        ("http.request.uri.path.file", "b c.tar.gz"),
        ("http.request.uri.path.file.base", "b c.tar"),
        ("http.request.uri.path.file.ext", ".gz"),
        ("http.request.uri.query", "k=v+1&k=2&z"),
        ("http.request.uri.prefixed_query", "?k=v+1&k=2&z"),
        ("http.request.uri.query.k", "v 1,2"),
        ("http.request.header.X-Y", "1,2"),
        ("http.request.header.Host", "WWW.Example.com:8080"),
        ("http.request.cookie.sid", "x"),
        ("http.request.proto", "HTTP/1.1"),
        ("http.request.scheme", "http"),
        ("http.request.remote.host", "192.0.2.7"),
        ("http.request.remote.host/24", "192.0.2.0/24"),
        ("http.request.remote.host/8,64", "192.0.0.0/8"),
        ("http.request.remote.host/x", ""),
        ("http.request.remote.port", "5000"),
        ("http.request.orig_uri.path", "/a/b c.tar.gz"),
        ("http.request.orig_uri.path.dir", "/a/"),
        ("http.request.orig_uri.path.file", "b c.tar.gz"),
        ("http.request.orig_uri.path.1", "b c.tar.gz"),
        ("http.request.orig_uri.query", "k=v+1&k=2&z"),
        ("http.request.uri_escaped", "%2Fa%2Fb%2520c.tar.gz%3Fk%3Dv%2B1%26k%3D2%26z"),
        ("http.request.uri.path_escaped", "%2Fa%2Fb+c.tar.gz"),
        ("http.request.uri.query_escaped", "k%3Dv%2B1%26k%3D2%26z"),
        ("http.request.nonsense", ""),
        ("vars.none", ""),
        ("re.none.1", ""),
        ("file_match.relative", ""),
    ] {
        assert_eq!(value(&exchange, name), want, "{name}");
    }
}

#[test]
fn an_ipv6_address_was_a_host_without_brackets() {
    for (field, host, port) in [("[::1]:8080", "[::1]", "8080"), ("[2001:DB8::1]", "[2001:db8::1]", "")] {
        let exchange = request("GET", "/", &[("host", field)]);
        assert_eq!(value(&exchange, "http.request.host"), host);
        assert_eq!(value(&exchange, "http.request.port"), port);
    }
}

#[test]
fn the_end_of_the_server_is_known_once_it_is_near() {
    let mut exchange = get("/");
    assert_eq!(
        (value(&exchange, "http.shutting_down"), value(&exchange, "http.time_until_shutdown")),
        ("false".into(), String::new())
    );
    exchange.stops_at = Some(std::time::Instant::now());
    assert_eq!(
        (value(&exchange, "http.shutting_down"), value(&exchange, "http.time_until_shutdown")),
        ("true".into(), "0ns".into())
    );
}

#[test]
fn a_uuid_stays_the_same_within_a_request() {
    let exchange = get("/");
    let first = value(&exchange, "http.request.uuid");
    assert_eq!(first, value(&exchange, "http.request.uuid"));
    assert_eq!(first.len(), 36);
    assert_ne!(first, value(&get("/"), "http.request.uuid"));
}

#[test]
fn a_request_knows_its_age_where_that_is_told() {
    let mut exchange = get("/");
    assert_eq!(value(&exchange, "http.request.duration"), "");
    exchange.came_at = Some(std::time::Instant::now());
    assert!(value(&exchange, "http.request.duration").ends_with('s'));
    assert!(value(&exchange, "http.request.duration_ms").parse::<f64>().unwrap() > 0.0);
}

#[test]
fn an_error_has_an_identifier() {
    let mut exchange = get("/");
    assert_eq!(value(&exchange, "http.error.id"), "");
    exchange.enter_error(Failure::new(http::StatusCode::NOT_FOUND));
    let id = value(&exchange, "http.error.id");
    assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
    assert_eq!(value(&exchange, "http.error.id"), id);
    assert_eq!(value(&exchange, "http.error"), format!("{{id={id}}}: HTTP 404: Not Found"));
}

#[test]
fn what_a_handshake_says_is_empty_without_one() {
    let mut exchange = get("/");
    assert_eq!(value(&exchange, "http.request.tls.version"), "");
    let tls = regent_exchange::Tls { protocol: "TLSv1.2", ..Default::default() };
    exchange.connection.tls = Some(std::sync::Arc::new(tls));
    assert_eq!(value(&exchange, "http.request.tls.version"), "tls1.2");
    assert_eq!(value(&exchange, "http.request.tls.client.subject"), "");
}

#[test]
fn times_have_their_formats() {
    let exchange = get("/");
    assert!(value(&exchange, "time.now.http").ends_with(" GMT"));
    assert!(value(&exchange, "time.now.unix").parse::<u64>().unwrap() > 1_600_000_000);
    assert!(value(&exchange, "time.now.common_log").ends_with(" +0000"));
    assert_eq!(value(&exchange, "time.now.year").len(), 4);
}
