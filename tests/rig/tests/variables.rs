//! `$_SERVER`, as the server writes it.

use regent_rig::{Call, Conn, Rig, Setup};

fn call_for(rig: &Rig, request: &str) -> (Conn, Call) {
    let client = rig.send(request);
    (client, rig.call())
}

#[track_caller]
fn assert_has(call: &Call, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(call.variable(name), Some(*value), "{name}");
    }
}

#[test]
fn a_request_is_described_as_by_cgi() {
    let rig = Setup::new().start();
    let (client, call) =
        call_for(&rig, "GET /index.php?a=1&b=%20 HTTP/1.1\r\nHost: example.com:8080\r\n\r\n");
    let root = rig.root().display().to_string();
    let (remote, local) = (client.local_address(), rig.address());
    assert_has(
        &call,
        &[
            ("REQUEST_METHOD", "GET"),
            ("REQUEST_URI", "/index.php?a=1&b=%20"),
            ("QUERY_STRING", "a=1&b=%20"),
            ("SCRIPT_NAME", "/index.php"),
            ("SCRIPT_FILENAME", &format!("{root}/index.php")),
            ("DOCUMENT_ROOT", &root),
            ("PHP_SELF", "/index.php"),
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("SERVER_NAME", "example.com"),
            ("REQUEST_SCHEME", "http"),
            ("GATEWAY_INTERFACE", "CGI/1.1"),
            ("REMOTE_ADDR", "127.0.0.1"),
            ("REMOTE_PORT", &remote.port().to_string()),
            ("SERVER_ADDR", &local.ip().to_string()),
            ("HTTP_HOST", "example.com:8080"),
        ],
    );
    assert_eq!(call.variable("HTTPS"), None);
    assert!(call.variable("SERVER_SOFTWARE").is_some_and(|name| name.starts_with("FrankenPHP")));
}

#[test]
fn the_name_of_a_server_that_is_reached_by_ipv6_had_no_brackets() {
    let rig = Setup::new().start();
    for (host, port) in [("[::1]:8080", "8080".to_owned()), ("[::1]", rig.address().port().to_string())] {
        let request = format!("GET /index.php HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let (_client, call) = call_for(&rig, &request);
        assert_has(&call, &[("SERVER_NAME", "[::1]"), ("SERVER_PORT", &port), ("HTTP_HOST", host)]);
    }
}

#[test]
fn what_follows_a_script_is_its_path_info() {
    let rig = Setup::new().start();
    let (_client, call) = call_for(&rig, "GET /index.php/a%20b/c?q HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_has(
        &call,
        &[
            ("SCRIPT_NAME", "/index.php"),
            ("PATH_INFO", "/a b/c"),
            ("PHP_SELF", "/index.php/a b/c"),
            ("REQUEST_URI", "/index.php/a%20b/c?q"),
        ],
    );
}

#[test]
fn what_is_no_file_goes_to_the_front_controller_with_the_uri_as_it_came() {
    let rig = Setup::new().start();
    let (_client, call) = call_for(&rig, "GET /some/page?q=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_has(
        &call,
        &[("SCRIPT_NAME", "/index.php"), ("REQUEST_URI", "/some/page?q=1"), ("QUERY_STRING", "q=1")],
    );
}

#[test]
fn fields_of_the_request_are_variables_and_what_comes_twice_is_one() {
    let rig = Setup::new().start();
    let request = "GET / HTTP/1.1\r\nHost: x\r\nX-Own-Field: a\r\nAccept: text/html\r\nX-Own-Field: b\r\n\
                   Cookie: a=1\r\nCookie: b=2\r\nContent-Type: text/odd\r\n\r\n";
    let (_client, call) = call_for(&rig, request);
    assert_has(
        &call,
        &[
            ("HTTP_X_OWN_FIELD", "a, b"),
            ("HTTP_ACCEPT", "text/html"),
            ("HTTP_COOKIE", "a=1; b=2"),
            ("CONTENT_TYPE", "text/odd"),
        ],
    );
}

#[test]
fn a_field_named_proxy_does_not_become_the_proxy_of_scripts() {
    let rig = Setup::new().start();
    let (_client, call) = call_for(&rig, "GET / HTTP/1.1\r\nHost: x\r\nProxy: http://evil.example\r\n\r\n");
    assert_eq!(call.variable("HTTP_PROXY"), None);
}

#[test]
fn a_field_with_an_underscore_passes_for_no_other() {
    let rig = Setup::new().start();
    let request = "GET / HTTP/1.1\r\nHost: x\r\nX_Forwarded_For: 9.9.9.9\r\nX_Own: 1\r\n\r\n";
    let (_client, call) = call_for(&rig, request);
    assert_eq!((call.variable("HTTP_X_FORWARDED_FOR"), call.variable("HTTP_X_OWN")), (None, None));
}

#[test]
fn no_name_comes_twice() {
    let rig = Setup::new().site("php_server {\n\t\tenv TIER site\n\t\tenv HTTP_X_OWN site\n\t}").start();
    let request = "GET / HTTP/1.1\r\nHost: x\r\nX-Own: client\r\nTier: client\r\n\r\n";
    let (_client, call) = call_for(&rig, request);
    assert!(call.environment().contains(&"TIER"), "{:?}", call.environment());
    assert_has(&call, &[("TIER", "site"), ("HTTP_TIER", "client")]);
}

#[test]
fn what_a_site_knows_of_users_and_tls_comes_through_env_and_addresses_do_not() {
    let site = "php_server {\n\t\tenv REMOTE_USER {header.X-User}\n\t\tenv SSL_PROTOCOL TLSv1.3\n\t\tenv REMOTE_ADDR spoofed\n\t}";
    let rig = Setup::new().site(site).start();
    let (_client, call) = call_for(&rig, "GET / HTTP/1.1\r\nHost: x\r\nX-User: grace\r\n\r\n");
    let last = |name: &str| {
        let own = call.variables().iter().rev().find(|(own, _)| own == name);
        own.map(|(_, value)| value.as_str())
    };
    assert_eq!((last("REMOTE_USER"), last("SSL_PROTOCOL")), (Some("grace"), Some("TLSv1.3")));
    assert_eq!(last("REMOTE_ADDR"), Some("127.0.0.1"));
}

#[test]
fn nobody_is_the_user_whose_name_was_only_said() {
    let rig = Setup::new().start();
    let request = "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWRhOm9wZW4gc2VzYW1l\r\n\r\n";
    let (_client, call) = call_for(&rig, request);
    assert_eq!(call.variable("REMOTE_USER"), None);
    assert_has(&call, &[("HTTP_AUTHORIZATION", "Basic YWRhOm9wZW4gc2VzYW1l")]);
}

#[test]
fn a_client_behind_a_trusted_proxy_has_its_own_address() {
    let rig = Setup::new()
        .global("servers {\n\t\ttrusted_proxies static 127.0.0.1/32\n\t}")
        .site("php_server {\n\t\ttrust_client_address\n\t}")
        .start();
    let (_client, call) = call_for(&rig, "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n");
    assert_has(&call, &[("REMOTE_ADDR", "192.0.2.7")]);
}

#[test]
fn a_head_that_does_not_fit_gets_431_and_no_engine() {
    let rig = Setup::new().start();
    let mut client = rig.connect();
    // The server may hang up while it is being sent.
    let _ = client.try_send(format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "x".repeat(2 << 20)));
    if let Ok(Some(response)) = client.try_response("GET") {
        response.expect(431);
    }
    let (_client, call) = call_for(&rig, "GET /?next HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(call.uri(), "/?next");
}
