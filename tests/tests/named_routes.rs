//! `map`, and routes with a name.
#![forbid(unsafe_code)]

use regent_tests::{Setup, Upstream, upstream::ok};

#[test]
fn a_map_makes_placeholders_of_ones_own() {
    let server = Setup::new()
        .site(
            "map {host}{path} {section} {kind} {\n~^[^/]*/(\\w+)/(?P<rest>.*)$ \"$1 of ${rest}\" long\n\
             LOOPBACK/ home -\ndefault other {method}\n}\n\
             header X-Kind {kind}\n@long vars {kind} long\n@found expression {section} == \"home\"\n\
             respond @long \"long {section}\"\nrespond @found home\nrespond \"{section} {unknown}\"",
        )
        .php_options("num_threads 1")
        .start();
    let get = |target: &str| {
        let response = server.get(target).expect(200);
        (response.text(), response.header("x-kind").unwrap_or_default().to_owned())
    };
    let pair = |text: &str, kind: &str| (text.to_owned(), kind.to_owned());
    assert_eq!(get("/blog/a/b"), pair("long blog of a/b", "long"));
    assert_eq!(get("/"), pair("home", "GET"));
    assert_eq!(get("/x"), pair("other {unknown}", "GET"));
    assert_eq!(get("/blog/%7Bmethod%7D$1").0, "long blog of {method}$1");
    server.stop();
}

#[test]
fn sites_share_a_named_route() {
    let upstream = Upstream::answering(|request| ok("", request.line()));
    let server = Setup::new()
        .caddyfile(&format!(
            "{{\n\tadmin off\n}}\n&(app) {{\n\theader X-Route app\n\treverse_proxy {}\n}}\n\
             http://ADDRESS {{\n\thandle /is-it-ready.txt {{\n\t\troot * ROOT\n\t\tfile_server\n\t}}\n\
             \thandle_path /api/* {{\n\t\tinvoke app\n\t}}\n\thandle {{\n\t\tinvoke /x* app\n\t\trespond none\n\t}}\n}}\n",
            upstream.address()
        ))
        .start();
    let response = server.get("/api/users").expect(200);
    assert_eq!((response.text().as_str(), response.header("x-route")), ("GET /users HTTP/1.1", Some("app")));
    assert_eq!(server.get("/xyz").expect(200).text(), "GET /xyz HTTP/1.1");
    assert_eq!(server.get("/other").expect(200).text(), "none");
    server.stop();
}
