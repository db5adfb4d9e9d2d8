//! `reverse_proxy` whose upstreams DNS knows.
#![forbid(unsafe_code)]

use regent_tests::upstream::ok;
use regent_tests::{Dns, Mood, Server, Setup, Upstream, own_address, until};
use std::net::{Ipv4Addr, SocketAddr};

const FIRST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A site whose requests all go to the proxy, but for the one with which the harness asks whether it is ready.
fn site(directives: &str) -> Server {
    Setup::new()
        .site(&format!("handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\n{directives}\n}}"))
        .php_options("num_threads 1")
        .admin("ADMIN")
        .start()
}

fn named(name: &'static str) -> impl Fn(&regent_tests::upstream::Received) -> Vec<u8> {
    // Once it is dropped, no connection is left that still answers.
    move |_| ok("Connection: close\r\n", name)
}

/// Two upstreams at one port of two addresses.
fn two_at_one_port() -> (Upstream, Upstream) {
    let port = own_address().port();
    let at = |ip: Ipv4Addr, name| Upstream::answering_at(SocketAddr::from((ip, port)), named(name));
    (at(FIRST, "first"), at(SECOND, "second"))
}

fn upstreams(server: &Server) -> Vec<String> {
    let listed = server.admin().get("/reverse_proxy/upstreams").expect(200).json();
    let address = |upstream: &serde_json::Value| upstream["address"].as_str().unwrap_or_default().to_owned();
    listed.as_array().expect("a list").iter().map(address).collect()
}

/// Ends when a request is answered so.
fn until_answered(server: &Server, text: &str) {
    until(&format!("an answer of {text}"), || (server.get("/").text() == text).then_some(()));
}

#[test]
fn the_addresses_of_a_name_are_upstreams_and_come_and_go_with_it() {
    let (dns, (first, _second)) = (Dns::default(), two_at_one_port());
    let port = first.address().port();
    dns.addresses("app.test", &[FIRST, SECOND]);
    let server = site(&format!(
        "reverse_proxy {{\nlb_policy round_robin\ndynamic a app.test {port} {{\nresolvers {}\nrefresh 100ms\n}}\n}}",
        dns.address()
    ));
    let texts: Vec<String> = (0..4).map(|_| server.get("/").expect(200).text()).collect();
    assert_eq!(texts.iter().filter(|text| *text == "first").count(), 2, "{texts:?}");
    assert_eq!(upstreams(&server), [format!("127.0.0.1:{port}"), format!("127.0.0.2:{port}")]);
    dns.addresses("app.test", &[SECOND]);
    until_answered(&server, "second");
    until("the first to be gone", || {
        server.get("/").expect(200);
        (upstreams(&server) == [format!("127.0.0.2:{port}")]).then_some(())
    });
    dns.addresses("app.test", &[FIRST]);
    until_answered(&server, "first");
    server.stop();
}

#[test]
fn while_dns_is_down_the_last_answer_is_used() {
    let (dns, (first, _second)) = (Dns::default(), two_at_one_port());
    dns.addresses("app.test", &[FIRST]);
    let server = site(&format!(
        "reverse_proxy {{\ndynamic a app.test {} {{\nresolvers {}\nrefresh 100ms\ndial_timeout 1s\n}}\n}}",
        first.address().port(),
        dns.address()
    ));
    // Each I/O thread asks for itself.
    let mut client = server.connect();
    let mut get = || {
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        client.response()
    };
    assert_eq!(get().expect(200).text(), "first");
    for mood in [Mood::Failing, Mood::Silent] {
        dns.is(mood);
        let before = dns.questions();
        until("DNS to be asked", || {
            assert_eq!(get().expect(200).text(), "first", "{mood:?}");
            (dns.questions() > before + 1).then_some(())
        });
        server.wait_for_log("DNS gives no answer: the last one is used on");
        assert_eq!(get().expect(200).text(), "first", "{mood:?}");
    }
    dns.is(Mood::Well);
    dns.addresses("app.test", &[SECOND]);
    until_answered(&server, "second");
    server.stop();
}

#[test]
fn services_have_ports_of_their_own_and_an_order() {
    let (dns, first, second) =
        (Dns::default(), Upstream::answering(named("first")), Upstream::answering(named("second")));
    dns.addresses("one.test", &[FIRST]);
    dns.addresses("two.test", &[FIRST]);
    let servers = [("one.test", first.address().port()), ("two.test", second.address().port())];
    dns.services("_http._tcp.app.test", &servers);
    let server = site(&format!(
        "reverse_proxy {{\nlb_policy first\nlb_retries 1\nfail_duration 1m\n\
         dynamic srv app.test {{\nservice http\nproto tcp\nresolvers {}\nrefresh 100ms\n}}\n}}",
        dns.address()
    ));
    assert_eq!(server.get("/").expect(200).text(), "first");
    let own = format!("one.test:{}", first.address().port());
    assert_eq!(upstreams(&server)[0], own);
    // What is known of an upstream stays with its address, whatever else DNS says.
    drop(first);
    assert_eq!(server.get("/").expect(200).text(), "second", "the first has failed, and is left out");
    let fails = |server: &Server| {
        let listed = server.admin().get("/reverse_proxy/upstreams").expect(200).json();
        listed
            .as_array()
            .and_then(|all| all.iter().find(|one| one["address"] == *own).cloned())
            .map(|one| one["fails"].clone())
    };
    assert_eq!(fails(&server), Some(1.into()));
    dns.services("_http._tcp.app.test", &servers[1..]);
    until("the first to be gone", || {
        server.get("/").expect(200);
        (!upstreams(&server).contains(&own)).then_some(())
    });
    dns.services("_http._tcp.app.test", &servers);
    until("the first to be back", || {
        server.get("/").expect(200);
        upstreams(&server).contains(&own).then_some(())
    });
    assert_eq!(fails(&server), Some(1.into()));
    assert_eq!(server.get("/").expect(200).text(), "second");
    server.stop();
}

#[test]
fn what_is_written_is_for_when_dns_knows_none() {
    let (dns, (first, second)) = (Dns::default(), two_at_one_port());
    let port = first.address().port();
    let server = site(&format!(
        "reverse_proxy {} {{\ndynamic multi {{\n\
         a {{\nname {{header.X-App}}.test\nport {port}\nresolvers {}\nrefresh 100ms\nversions ipv4\n}}\n\
         srv _none._tcp.test {{\nresolvers {}\n}}\n}}\n}}",
        second.address(),
        dns.address(),
        dns.address()
    ));
    let ask = |app: &str| server.request("GET", "/").header("X-App", app).send().expect(200).text();
    dns.addresses("own.test", &[FIRST]);
    assert_eq!(ask("own"), "first", "the request says which name");
    assert_eq!(ask("other"), "second", "there is no such name");
    assert_eq!(ask("not a name..."), "second");
    server.stop();
}

#[test]
fn without_any_upstream_the_answer_is_503() {
    let dns = Dns::default();
    let nobody = own_address();
    let server =
        site(&format!("reverse_proxy {{\ndynamic a none.test 80 {{\nresolvers {}\n}}\n}}", dns.address()));
    server.get("/").expect(503);
    server.stop();
    let server = site(&format!(
        "reverse_proxy {{\ndynamic a any.test 80 {{\nresolvers {nobody}\ndial_timeout 50ms\n}}\n}}"
    ));
    server.get("/").expect(503);
    server.stop();
}

#[test]
fn names_of_upstreams_may_have_resolvers_of_their_own() {
    let (dns, upstream) = (Dns::default(), Upstream::answering(named("found")));
    dns.addresses("app.test", &[FIRST]);
    let server = site(&format!(
        "reverse_proxy app.test:{} {{\ntransport http {{\nresolvers {}\n}}\n}}",
        upstream.address().port(),
        dns.address()
    ));
    assert_eq!(server.get("/").expect(200).text(), "found");
    server.stop();
}
