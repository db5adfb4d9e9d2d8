use super::*;

pub(crate) fn get(uri: &str) -> Exchange {
    request("GET", uri, &[])
}

pub(crate) fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Exchange {
    let mut request = http::Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Exchange::new(
        request.body(()).unwrap().into_parts().0,
        Connection {
            remote: Some("192.0.2.7:5000".parse().unwrap()),
            local: Some("192.0.2.1:80".parse().unwrap()),
            tls: None,
        },
    )
}

#[test]
fn rewriting_keeps_the_original() {
    let mut exchange = get("/a?x=1");
    exchange.rewrite_path(b"/b c?").unwrap();
    assert_eq!(exchange.uri, "/b%20c%3F?x=1");
    assert_eq!(exchange.path(), b"/b c?");
    assert_eq!(exchange.original_uri, "/a?x=1");
}

#[test]
fn the_authority_of_the_uri_goes_before_host() {
    let exchange = request("GET", "http://A.example:81/x", &[("host", "b.example")]);
    assert_eq!(exchange.host, "a.example");
    assert_eq!(exchange.path(), b"/x");
}

#[test]
fn flaws_are_noticed() {
    assert_eq!(get("/%00").flaw(), Some(BadRequest::Nul));
    assert_eq!(get("*").flaw(), Some(BadRequest::NoPath));
    assert_eq!(request("GET", "/", &[("host", "a/b")]).flaw(), Some(BadRequest::Host));
    assert_eq!(request("CONNECT", "example.com:80", &[]).flaw(), Some(BadRequest::NoPath));
}
