//! `reverse_proxy` with several upstreams, some of which fail, and what is changed for them.
#![forbid(unsafe_code)]

use regent_tests::upstream::{ok, receive};
use regent_tests::{Server, Setup, Upstream, heard, own_address, until};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

/// A site whose requests all go to the proxy, but for the one with which the harness asks whether it is ready.
fn site(directives: &str) -> Server {
    Setup::new()
        .site(&format!("handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\n{directives}\n}}"))
        .php_options("num_threads 1")
        .start()
}

/// Upstreams that say their number.
fn numbered(count: usize) -> Vec<Upstream> {
    (0..count).map(|number| Upstream::answering(move |_| ok("", &number.to_string()))).collect()
}

fn addresses(upstreams: &[Upstream]) -> String {
    upstreams.iter().map(|upstream| upstream.address().to_string()).collect::<Vec<_>>().join(" ")
}

fn texts(server: &Server, count: usize) -> String {
    (0..count).map(|_| server.get("/").expect(200).text()).collect()
}

#[test]
fn headers_are_changed_in_both_directions() {
    let upstream = Upstream::answering(|_| {
        ok("X-Gone: 1\r\nLocation: http://inner/a\r\nX-Kept: 1\r\nContent-Type: text/plain\r\n", "body")
    });
    let address = upstream.address();
    let server = site(&format!(
        "reverse_proxy {address} {{\n\
         header_up Host {{upstream_hostport}}\n\
         header_up X-Client {{remote_host}}\n\
         header_up +X-Own second\n\
         header_up -X-Secret*\n\
         header_up X-Path ^/a /b\n\
         header_up -X-Forwarded-Host\n\
         header_up Connection Upgrade\n\
         header_up Content-Length 3\n\
         header_down -X-Gone\n\
         header_down Location http://inner https://outer\n\
         header_down X-Took {{rp.upstream.address}},{{rp.status_code}},{{rp.header.X-Kept}}\n\
         header_down Content-Length 1\n\
         header_down Transfer-Encoding chunked\n\
         }}"
    ));
    let request = server.request("POST", "/").header("X-Own", "first").header("X-Secret-A", "1");
    let response = request.header("X-Path", "/a/c").body("text/plain", "hello").send().expect(200);
    assert_eq!(response.text(), "body", "what is said of the length does not count");
    assert_eq!(response.header("x-gone"), None);
    assert_eq!(response.header("location"), Some("https://outer/a"));
    assert_eq!(response.header("x-took"), Some(format!("{address},200,1").as_str()));
    let request = upstream.last();
    assert_eq!(request.field("host"), address.to_string());
    assert_eq!(request.field("x-client"), "127.0.0.1");
    assert_eq!(request.field("x-own"), "first|second");
    assert_eq!(request.field("x-path"), "/b/c");
    assert_eq!(request.field("x-forwarded-for"), "127.0.0.1");
    assert_eq!(request.field("content-length"), "5");
    for name in ["x-secret-a", "x-forwarded-host", "connection"] {
        assert_eq!(request.field(name), "", "{name}");
    }
    server.stop();
}

#[test]
fn method_and_target_may_be_others_for_the_upstream() {
    let upstream = Upstream::answering(|request| ok("", request.line()));
    let server =
        site(&format!("reverse_proxy {} {{\nmethod GET\nrewrite /check?uri={{uri}}\n}}", upstream.address()));
    let response = server.post("/a?b=c", "text/plain", "a body").expect(200);
    assert_eq!(response.text(), "GET /check?uri=%2Fa%3Fb%3Dc HTTP/1.1");
    assert!(upstream.last().body.is_empty());
    server.stop();
}

#[test]
fn requests_go_round() {
    let upstreams = numbered(3);
    let server = site(&format!("reverse_proxy {} {{\nlb_policy round_robin\n}}", addresses(&upstreams)));
    assert_eq!(texts(&server, 6), "012012");
    server.stop();
    let server = site(&format!(
        "reverse_proxy {} {{\nlb_policy weighted_round_robin 2 0 1\n}}",
        addresses(&upstreams)
    ));
    assert_eq!(texts(&server, 6), "002002");
    server.stop();
}

#[test]
fn a_client_stays_with_its_upstream() {
    let upstreams = numbered(4);
    let server =
        site(&format!("reverse_proxy {} {{\nlb_policy cookie sticky secret\n}}", addresses(&upstreams)));
    let first = server.get("/").expect(200);
    let cookie =
        first.header("set-cookie").expect("a cookie").split(';').next().unwrap_or_default().to_owned();
    assert!(cookie.starts_with("sticky="), "{cookie}");
    for _ in 0..8 {
        let again = server.request("GET", "/").header("Cookie", cookie.as_str()).send().expect(200);
        assert_eq!((again.text(), again.header("set-cookie")), (first.text(), None));
    }
    server.stop();
    let server = site(&format!("reverse_proxy {} {{\nlb_policy header X-User\n}}", addresses(&upstreams)));
    let of = |user: &str| server.request("GET", "/").header("X-User", user).send().expect(200).text();
    for user in ["ann", "bob", "cyd"] {
        assert_eq!(of(user), of(user));
    }
    server.stop();
}

#[test]
fn another_upstream_is_tried_when_one_is_not_there() {
    let upstreams = numbered(1);
    let nobody = own_address();
    let there = upstreams[0].address();
    let server = site(&format!("reverse_proxy {nobody} {there} {{\nlb_policy first\nlb_retries 1\n}}"));
    assert_eq!(server.post("/", "text/plain", "a body that nobody has seen").expect(200).text(), "0");
    assert_eq!(upstreams[0].last().body, b"a body that nobody has seen");
    server.stop();
    let server = site(&format!("reverse_proxy {nobody} {there} {{\nlb_policy first\n}}"));
    server.get("/").expect(502);
    server.stop();
}

#[test]
fn an_upstream_that_starts_late_is_waited_for() {
    let address = own_address();
    let server = site(&format!("reverse_proxy {address} {{\nlb_try_duration 20s\nlb_try_interval 10ms\n}}"));
    let mut conn = server.ask("/");
    let listener = TcpListener::bind(address).expect("the address is free");
    let (stream, _) = listener.accept().expect("the server tries again");
    answer(&stream, "late");
    assert_eq!(conn.response().expect(200).text(), "late");
    server.stop();
}

fn answer(mut stream: &TcpStream, text: &str) {
    let mut reader = BufReader::new(stream);
    receive(&mut reader, 0).expect("a request");
    stream.write_all(&ok("", text)).expect("the server reads");
}

#[test]
fn a_request_that_may_have_had_an_effect_is_not_tried_elsewhere() {
    let breaking = Upstream::talking(|stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        let _ = receive(&mut reader, number);
    });
    let other = numbered(1);
    let server = site(&format!(
        "reverse_proxy {} {} {{\nlb_policy first\nlb_retries 1\n}}",
        breaking.address(),
        other[0].address()
    ));
    server.post("/", "text/plain", "order").expect(502);
    assert!(other[0].requests().is_empty());
    assert_eq!(server.get("/").expect(200).text(), "0", "GET does no harm twice");
    server.stop();
}

#[test]
fn what_fails_too_often_gets_nothing_for_a_while() {
    let failing = Upstream::answering(|_| b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n".to_vec());
    let other = numbered(1);
    let server = site(&format!(
        "reverse_proxy {} {} {{\nlb_policy first\nfail_duration 1h\nmax_fails 2\nunhealthy_status 5xx\n}}",
        failing.address(),
        other[0].address()
    ));
    let statuses: Vec<u16> = (0..5).map(|_| server.get("/").status).collect();
    assert_eq!(statuses, [500, 500, 200, 200, 200]);
    server.stop();
    let server =
        site(&format!("reverse_proxy {} {{\nfail_duration 1h\nunhealthy_status 500\n}}", failing.address()));
    assert_eq!([server.get("/").status, server.get("/").status], [500, 503]);
    server.stop();
}

#[test]
fn what_is_busy_gets_no_more() {
    let (go, may_go) = mpsc::channel::<()>();
    let may_go = Mutex::new(may_go);
    let upstream = Upstream::talking(move |stream, _| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        while receive(&mut reader, 0).is_some() {
            heard(&may_go.lock().expect("one at a time"), "the test goes on");
            if (&stream).write_all(&ok("", "done")).is_err() {
                return;
            }
        }
    });
    let server = site(&format!("reverse_proxy {} {{\nunhealthy_request_count 1\n}}", upstream.address()));
    let mut first = server.ask("/");
    until("the upstream has a request", || (upstream.connections() == 1).then_some(()));
    server.get("/").expect(503);
    go.send(()).expect("the upstream waits");
    assert_eq!(first.response().expect(200).text(), "done");
    go.send(()).expect("the upstream waits");
    server.get("/").expect(200);
    server.stop();
}

#[test]
fn an_upstream_that_is_not_well_gets_nothing_until_it_is() {
    let is_well = Arc::new(AtomicBool::new(false));
    let says = Arc::clone(&is_well);
    let asked = Upstream::answering(move |request| match (request.line(), says.load(Ordering::SeqCst)) {
        ("GET /up HTTP/1.1", false) => ok("", "closing"),
        ("GET /up HTTP/1.1", true) => ok("", "open"),
        _ => ok("", "served"),
    });
    let server = site(&format!(
        "reverse_proxy {} {{\nhealth_uri /up\nhealth_interval 20ms\nhealth_body ^open$\n\
         health_headers {{\nX-Check yes\nHost health.example\n}}\n}}",
        asked.address()
    ));
    until("it is known to be down", || (server.get("/").status == 503).then_some(()));
    let check =
        asked.requests().into_iter().find(|request| request.line().contains("/up")).expect("a question");
    assert_eq!((check.field("x-check").as_str(), check.field("host").as_str()), ("yes", "health.example"));
    is_well.store(true, Ordering::SeqCst);
    until("it is known to be up", || (server.get("/").status == 200).then_some(()));
    server.stop();
}

#[test]
fn upstreams_are_listed_and_measured_and_a_reload_forgets_no_failure() {
    let failing = Upstream::answering(|_| b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n".to_vec());
    let address = failing.address().to_string();
    let directives = |text: &str| {
        format!(
            "{{\n\tadmin ADMIN\n\tfrankenphp {{\n\t\tnum_threads 1\n\t}}\n}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\troot * ROOT\n\
             \treverse_proxy /api* {address} {{\n\t\tfail_duration 1h\n\t\tmax_fails 2\n\t\tunhealthy_status 5xx\n\t}}\n\
             \trespond / {text}\n}}\n"
        )
    };
    let server = Setup::new().caddyfile(&directives("before")).start();
    let admin = server.admin();
    let listed = |fails: u64| {
        let found = admin.get("/reverse_proxy/upstreams").expect(200).json();
        assert_eq!(found, serde_json::json!([{ "address": address, "num_requests": 0, "fails": fails }]));
    };
    let healthy = || admin.metric("caddy_reverse_proxy_upstreams_healthy", &[("upstream", &address)]);
    listed(0);
    assert!(healthy() == 1.0);
    server.get("/api").expect(500);
    server.write_caddyfile(&directives("after"));
    admin.request("POST", "/regent/reload").send().expect(200);
    assert_eq!(server.get("/").expect(200).text(), "after");
    listed(1);
    server.get("/api").expect(500);
    listed(2);
    assert!(healthy() == 0.0);
    server.get("/api").expect(503);
    assert!(admin.metric("regent_proxy_requests_total", &[("upstream", &address)]) == 2.0);
    assert!(admin.metric("regent_proxy_failures_total", &[("upstream", &address)]) == 2.0);
    server.stop();
}

#[test]
fn lb_retry_match_says_what_may_be_sent_again() {
    let breaks_off = Upstream::talking(|stream, _| drop(receive(&mut BufReader::new(stream), 0)));
    let fine = Upstream::answering(|_| ok("", "fine"));
    let server = site(&format!(
        "reverse_proxy {} {} {{\nlb_policy first\nlb_retries 1\nlb_retry_match {{\nmethod POST\npath /safe/*\n}}\n\
         lb_retry_match path /also\n}}",
        breaks_off.address(),
        fine.address()
    ));
    for (method, target, status) in
        [("POST", "/safe/x", 200), ("POST", "/x", 502), ("GET", "/safe/x", 502), ("GET", "/also", 200)]
    {
        assert_eq!(server.request(method, target).send().status, status, "{method} {target}");
    }
    server.request("POST", "/safe/x").body("text/plain", "a body that is gone").send().expect(502);
    server.stop();
}
