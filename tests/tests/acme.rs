//! Certificates of a public CA: the real server against pebble, Let's Encrypt's test CA.
#![forbid(unsafe_code)]

use regent_tests::{Bind, Conn, Pebble, Server, Setup, TlsConn, own_addresses, regent_command, until};
use std::net::SocketAddr;

/// One site by each challenge that needs nothing but this server.
const SITES: &str = "
shop.test {
    tls {
        issuer acme {
            disable_tlsalpn_challenge
        }
    }
    respond \"the shop\"
}
blog.test {
    tls {
        issuer acme {
            disable_http_challenge
        }
    }
    respond \"the blog\"
}
http://:PORT {
    bind LOOPBACK
    respond ready
}
";

/// Global options of a server that listens at these addresses and gets its certificates from the CA.
fn options(pebble: &Pebble, [http, https]: [SocketAddr; 2]) -> String {
    format!(
        "\tadmin ADMIN\n\tdefault_bind {}\n\thttp_port {}\n\thttps_port {}\n\tacme_ca {}\n\tacme_ca_root {}\n\
         \tfrankenphp {{\n\t\tnum_threads 2\n\t}}\n",
        http.ip(),
        http.port(),
        https.port(),
        pebble.url(),
        pebble.certificate().display(),
    )
}

#[test]
fn a_name_that_ask_allows_gets_its_certificate_in_the_first_handshake() {
    let [http, https, ask] = own_addresses();
    let setup = Setup::new();
    let Some(pebble) = Pebble::start(setup.directory(), [http, https]) else { return };
    let caddyfile = format!(
        "{{\n{}\ton_demand_tls {{\n\t\task http://{ask}/known?key=1\n\t}}\n}}\n\
         https:// {{\n\ttls {{\n\t\ton_demand\n\t}}\n\trespond \"{{host}}\"\n}}\n\
         http://{ask} {{\n\t@known query domain=shop.test key=1\n\trespond @known 200\n\trespond 404\n}}\n\
         http://:PORT {{\n\tbind LOOPBACK\n\trespond ready\n}}\n",
        options(&pebble, [http, https]),
    );
    let server = setup.caddyfile(&caddyfile).env("XDG_DATA_HOME", "DIRECTORY/data").start();
    let client = pebble.client();
    for _ in 0..20 {
        client.try_connect(https, "other.test").map(|_| ()).expect_err("the name is refused");
    }
    assert_eq!(pebble.orders(), 0, "{}", pebble.log());
    assert_eq!(text(&mut client.connect(https, "shop.test"), "shop.test"), "shop.test");
    let orders = pebble.orders();
    assert_eq!(text(&mut client.connect(https, "shop.test"), "shop.test"), "shop.test");
    assert!(certificate(&server, "shop.test")["last_error"].is_null());
    assert_eq!(pebble.orders(), orders, "{}", pebble.log());
    server.stop();
}

#[test]
fn a_wildcard_is_proved_by_a_signed_update_of_bind_which_is_taken_back() {
    let [http, https] = own_addresses();
    let setup = Setup::new();
    let bind = Bind::start(setup.directory(), "bind.test");
    let Some(pebble) = Pebble::asking(bind.address(), setup.directory(), [http, https]) else { return };
    let (key, secret) = Bind::KEY;
    let caddyfile = format!(
        "{{\n{}}}\n\
         *.bind.test {{\n\ttls {{\n\t\tdns rfc2136 {{\n\t\t\tserver {}\n\t\t\tkey_name {key}\n\t\t\tkey {secret}\n\
         \t\t}}\n\t}}\n\trespond \"{{host}}\"\n}}\n\
         http://:PORT {{\n\tbind LOOPBACK\n\trespond ready\n}}\n",
        options(&pebble, [http, https]),
        bind.address(),
    );
    let server = setup.caddyfile(&caddyfile).env("XDG_DATA_HOME", "DIRECTORY/data").start();
    let client = pebble.client();
    let mut conn = until("*.bind.test has a certificate", || client.try_connect(https, "any.bind.test").ok());
    assert_eq!(text(&mut conn, "any.bind.test"), "any.bind.test");
    let log = until("the record is gone", || Some(bind.log()).filter(|log| log.contains("deleting an RR")));
    assert!(log.contains("adding an RR at '_acme-challenge.bind.test' TXT"), "{log}");
    assert!(!log.contains("denied"), "{log}");
    server.stop();
}

fn text(conn: &mut TlsConn, host: &str) -> String {
    conn.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    conn.response().expect(200).text()
}

fn certificate(server: &Server, name: &str) -> serde_json::Value {
    let listed = server.admin().get("/regent/certificates").expect(200).json();
    let all = listed["certificates"].as_array().expect("a list");
    all.iter().find(|certificate| certificate["name"] == name).expect("the name is known").clone()
}

#[test]
fn sites_get_certificates_by_both_challenges_and_keep_them() {
    let [http, https] = own_addresses();
    let setup = Setup::new();
    let Some(pebble) = Pebble::start(setup.directory(), [http, https]) else { return };
    let options = options(&pebble, [http, https]);
    let server =
        setup.caddyfile(&format!("{{\n{options}}}\n{SITES}")).env("XDG_DATA_HOME", "DIRECTORY/data").start();
    let client = pebble.client();
    for (name, body) in [("shop.test", "the shop"), ("blog.test", "the blog")] {
        let mut conn = until(&format!("{name} has a certificate"), || client.try_connect(https, name).ok());
        assert_eq!(text(&mut conn, name), body);
        let listed = certificate(&server, name);
        assert_eq!(listed["source"], "acme");
        assert!(listed["issuer"].as_str().is_some_and(|issuer| issuer.starts_with("Pebble")), "{listed}");
        assert!(listed["days_left"].as_i64().is_some_and(|days| (80..=90).contains(&days)), "{listed}");
        assert!(listed["last_error"].is_null() && listed["next_try_unix_ms"].is_u64(), "{listed}");
    }
    let ends = server.admin().metric("regent_certificate_not_after_seconds", &[("name", "shop.test")]);
    let listed = certificate(&server, "shop.test")["not_after_unix_ms"].as_u64().expect("it has an end");
    assert_eq!(ends as u64, listed / 1000);
    let redirected = |target: &str| {
        let mut conn = Conn::open(http);
        conn.send(format!("GET {target} HTTP/1.1\r\nHost: shop.test\r\n\r\n"));
        let response = conn.response().expect(308);
        assert!(response.header("location").is_some_and(|to| to.starts_with("https://shop.test")));
    };
    redirected("/");
    redirected("/.well-known/acme-challenge/unknown");

    let orders = pebble.orders();
    let server = server.restart(|directory| {
        let mut command = regent_command(directory);
        command.args(["run", "--config"]).arg(directory.join("Caddyfile"));
        command.env("XDG_DATA_HOME", directory.join("data"));
        command
    });
    for (name, body) in [("shop.test", "the shop"), ("blog.test", "the blog")] {
        assert_eq!(text(&mut client.connect(https, name), name), body);
    }
    assert_eq!(pebble.orders(), orders, "{}", pebble.log());
    server.stop();
}
