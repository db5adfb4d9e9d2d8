//! Fields of requests whose names PHP would take for another's: `expected_underscore_headers`, `expected_dot_headers`.
#![forbid(unsafe_code)]

use regent_tests::upstream::ok;
use regent_tests::{Server, Setup, Upstream, until};

/// What PHP has of them: the variables, and the names by themselves.
const FIELDS: &str = "<?php
    $fields = array_filter($_SERVER, fn ($name) => str_starts_with($name, 'HTTP_X_'), ARRAY_FILTER_USE_KEY);
    ksort($fields);
    echo http_build_query($fields, '', ' ');";

fn server(options: &str, site: &str) -> Server {
    Setup::new()
        .global_options(&format!("servers {{\n{options}\n}}"))
        .site(site)
        .file("index.php", FIELDS)
        .start()
}

fn ask(server: &Server, names: &[&str]) -> String {
    let request = server.request("GET", "/");
    names.iter().fold(request, |request, name| request.header(name, *name)).send().expect(200).text()
}

#[test]
fn php_has_no_field_that_would_pass_for_another() {
    let server = server("max_header_size 64KiB", "php_server");
    assert_eq!(ask(&server, &["X_User", "X.User", "X_User.Name"]), "");
    assert_eq!(ask(&server, &["X_User", "X-User", "X.User"]), "HTTP_X_USER=X-User");
    server.stop();
}

#[test]
fn php_has_those_that_are_expected_instead_of_those_with_hyphens() {
    let options = "expected_underscore_headers X_Signature x_hook_*\nexpected_dot_headers x.trace";
    let server = server(options, "php_server");
    let names = ["X-Signature", "x_signature", "X_Hook_Id", "X-Hook-Id", "X.Trace", "X_Other", "X-Plain"];
    assert_eq!(
        ask(&server, &names),
        "HTTP_X_HOOK_ID=X_Hook_Id HTTP_X_PLAIN=X-Plain HTTP_X_SIGNATURE=x_signature HTTP_X_TRACE=X.Trace"
    );
    assert_eq!(ask(&server, &["x_signature", "X_Signature"]), "", "one of two may be anybody's");
    server.stop();
}

#[test]
fn upstreams_and_logs_do_not_have_them_either() {
    let upstream = Upstream::answering(|_| ok("", "seen"));
    let site = format!("log {{\noutput file ROOT/access.log\n}}\nreverse_proxy {}", upstream.address());
    let server = server("expected_dot_headers x.b", &site);
    assert_eq!(ask(&server, &["X_A", "X.A", "X.B", "X-C"]), "seen");
    let seen = upstream.last();
    let fields = ["x_a", "x.a", "x.b", "x-c"].map(|name| seen.field(name));
    assert_eq!(fields, ["", "", "X.B", "X-C"]);
    let line = until("the request is in the log", || {
        server.wait_for_file("access.log").lines().find(|line| line.contains("X-C")).map(str::to_owned)
    });
    assert!(line.contains("X.B") && !line.contains("X.A") && !line.contains("X_A"), "{line}");
    server.stop();
}
