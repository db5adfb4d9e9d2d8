use super::*;
use crate::filters::encode::encoder::tests::decode;
use http_body_util::{BodyExt, Full};
use regent_config as config;

type Plain = http_body_util::combinators::MapErr<Full<Bytes>, fn(std::convert::Infallible) -> io::Error>;

fn encode() -> Arc<Encode> {
    let formats = vec![EncodeFormat::Brotli { level: 4 }, EncodeFormat::Gzip { level: 5 }];
    let encode = config::Encode { formats, minimum_length: 512, matcher: None };
    Arc::new(Encode::compile(&encode, &Arc::default()).unwrap())
}

fn encoding(method: Method, fields: &[(&'static str, &'static str)]) -> Encoding {
    encode().encoding(method, &mut headers(fields))
}

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    fields
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

fn response(status: u16, fields: &[(&'static str, &'static str)], body: impl Into<Bytes>) -> Response<Plain> {
    let body: Plain = Full::new(body.into()).map_err((|never| match never {}) as fn(_) -> _);
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    *response.headers_mut() = headers(fields);
    response
}

/// The header as lines, and how the body is.
fn treated(encoding: &Encoding, response: Response<Plain>) -> (Vec<String>, &'static str) {
    let response = encoding.apply(response);
    let line = |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
    let mut lines: Vec<_> = response.headers().iter().map(line).collect();
    lines.sort();
    let body = match response.body() {
        MaybeEncoded::Plain(_) => "plain",
        MaybeEncoded::Whole(_) => "whole",
        MaybeEncoded::Streamed(_) => "streamed",
    };
    (lines, body)
}

const HTML: (&str, &str) = ("content-type", "text/html");
const ACCEPTS: (&str, &str) = ("accept-encoding", "gzip");

#[test]
fn the_header_tells_of_the_encoded_form() {
    let fields = [
        HTML,
        ("content-length", "100000"),
        ("accept-ranges", "bytes"),
        ("content-md5", "x"),
        ("repr-digest", "x"),
        ("etag", "\"a\""),
        ("vary", "Cookie"),
    ];
    let (lines, body) =
        treated(&encoding(Method::GET, &[ACCEPTS]), response(200, &fields, vec![b'a'; 100_000]));
    let expected = [
        "content-encoding: gzip",
        "content-type: text/html",
        "etag: \"a-gzip\"",
        "vary: Accept-Encoding",
        "vary: Cookie",
    ];
    assert_eq!((&lines[..], body), (&expected.map(str::to_owned)[..], "streamed"));
    let (head, body) = treated(&encoding(Method::HEAD, &[ACCEPTS]), response(200, &fields, ""));
    assert_eq!((head, body), (lines, "plain"));
}

#[test]
fn a_short_body_keeps_a_length() {
    let content = "hello ".repeat(1000);
    let response = encoding(Method::GET, &[ACCEPTS]).apply(response(404, &[HTML], content.clone()));
    let MaybeEncoded::Whole(encoded) = response.body() else { panic!("not encoded at once") };
    assert_eq!(response.headers()["content-length"], encoded.len().to_string());
    assert_eq!(decode(EncodeFormat::Gzip { level: 5 }, encoded, true).unwrap(), content.as_bytes());
}

#[test]
fn what_is_left_alone_and_what_only_varies() {
    let long = || vec![b'a'; 512];
    let accepts = encoding(Method::GET, &[ACCEPTS]);
    let refuses = encoding(Method::GET, &[]);
    let vary = "vary: Accept-Encoding";
    for (name, encoding, response, is_encoded, varies) in [
        ("long enough", &accepts, response(200, &[HTML], long()), true, true),
        ("too short", &accepts, response(200, &[HTML], vec![b'a'; 511]), false, false),
        ("empty", &accepts, response(200, &[HTML], ""), false, false),
        ("other type", &accepts, response(200, &[("content-type", "image/png")], long()), false, false),
        ("no type", &accepts, response(200, &[], long()), false, false),
        ("encoded", &accepts, response(200, &[HTML, ("content-encoding", "br")], long()), false, false),
        ("identity", &accepts, response(200, &[HTML, ("content-encoding", "identity")], long()), true, true),
        (
            "forbidden",
            &accepts,
            response(200, &[HTML, ("cache-control", "no-transform")], long()),
            false,
            false,
        ),
        ("error page", &accepts, response(500, &[HTML], long()), true, true),
        ("no content", &accepts, response(204, &[HTML], long()), false, false),
        ("reset content", &accepts, response(205, &[HTML], long()), false, false),
        ("partial", &accepts, response(206, &[HTML], long()), false, true),
        ("no range", &accepts, response(416, &[HTML], long()), false, true),
        ("range", &accepts, response(200, &[HTML, ("content-range", "bytes 0-9/99")], long()), false, true),
        ("not modified", &accepts, response(304, &[], ""), false, true),
        ("plain client", &refuses, response(200, &[HTML], long()), false, true),
        ("varies already", &refuses, response(200, &[HTML, ("vary", "*")], long()), false, false),
    ] {
        let (lines, body) = treated(encoding, response);
        assert_eq!(body != "plain", is_encoded, "{name}");
        assert_eq!(lines.iter().any(|line| line == vary), varies, "{name}: {lines:?}");
    }
}

#[test]
fn vary_is_there_once() {
    let refuses = encoding(Method::GET, &[]);
    for vary in ["Accept-Encoding", "cookie, accept-encoding", "*"] {
        let (lines, _) = treated(&refuses, response(200, &[HTML, ("vary", vary)], vec![b'a'; 600]));
        let found: Vec<_> = lines.iter().filter(|line| line.starts_with("vary")).collect();
        assert_eq!(found, [&format!("vary: {vary}")]);
    }
}

#[test]
fn a_head_of_unknown_length_is_left_alone() {
    let (lines, _) =
        treated(&encoding(Method::HEAD, &[ACCEPTS]), response(200, &[HTML, ("etag", "\"a\"")], ""));
    assert_eq!(lines, ["content-type: text/html", "etag: \"a\"", "vary: Accept-Encoding"]);
}

#[test]
fn a_client_that_knows_the_encoded_form_is_told_so() {
    let mut request = headers(&[ACCEPTS, ("if-none-match", "\"a-gzip\"")]);
    let encoding = encode().encoding(Method::GET, &mut request);
    assert_eq!(request["if-none-match"], "\"a\"");
    let (lines, _) = treated(&encoding, response(304, &[("etag", "\"a\"")], ""));
    assert_eq!(lines, ["etag: \"a-gzip\"", "vary: Accept-Encoding"]);

    let mut request = headers(&[ACCEPTS, ("if-none-match", "\"a\"")]);
    let encoding = encode().encoding(Method::GET, &mut request);
    let (lines, _) = treated(&encoding, response(304, &[("etag", "\"a\"")], ""));
    assert_eq!(lines, ["etag: \"a\"", "vary: Accept-Encoding"]);
}

#[test]
fn weak_tags_stay() {
    let fields = [HTML, ("etag", "W/\"a\"")];
    let (lines, _) = treated(&encoding(Method::GET, &[ACCEPTS]), response(200, &fields, vec![b'a'; 600]));
    assert!(lines.contains(&"etag: W/\"a\"".to_owned()), "{lines:?}");
}

#[test]
fn event_streams_are_known_by_their_type() {
    for (kind, want) in [
        ("text/event-stream", Flushing::EachFrame),
        ("Text/Event-Stream ; charset=utf-8", Flushing::EachFrame),
        ("text/event-streams", Flushing::OnPause),
        ("text/html", Flushing::OnPause),
    ] {
        assert_eq!(flushing(&headers(&[("content-type", kind)])), want, "{kind}");
    }
}

#[test]
fn a_response_goes_out_as_it_is_when_encoders_hold_all_they_may() {
    let encode = encode();
    let format = EncodeFormat::Brotli { level: 9 };
    let mut held: Vec<_> = std::iter::from_fn(|| encode.budget.reserve(format)).collect();
    held.extend(std::iter::from_fn(|| encode.budget.reserve(EncodeFormat::Gzip { level: 5 })));
    let encoding = encode.encoding(Method::GET, &mut headers(&[ACCEPTS]));
    let long = || response(200, &[HTML], vec![b'a'; 100_000]);
    let (lines, body) = treated(&encoding, long());
    assert_eq!(
        (&lines[..], body),
        (&["content-type: text/html", "vary: Accept-Encoding"].map(str::to_owned)[..], "plain")
    );
    drop(held);
    assert_eq!(treated(&encoding, long()).1, "streamed");
}
