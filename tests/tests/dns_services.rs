//! The DNS challenge at services with interfaces of their own (`dns SERVICE`): the real server against pebble, Let's
//! Encrypt's test CA, and a name server that the service's records come to.
#![forbid(unsafe_code)]

use regent_tests::{Pebble, PowerDns, Server, Setup, TlsConn, forward_proxy, own_addresses, until};
use std::net::SocketAddr;

/// A server with these sites, whose certificates the CA issues.
fn caddyfile(pebble: &Pebble, [http, https]: [SocketAddr; 2], options: &str, sites: &str) -> String {
    format!(
        "{{\n\tadmin ADMIN\n\tdefault_bind {}\n\thttp_port {}\n\thttps_port {}\n\tacme_ca {}\n\tacme_ca_root {}\n{options}\n\
         \tfrankenphp {{\n\t\tnum_threads 2\n\t}}\n}}\n{sites}\n\
         http://:PORT {{\n\tbind LOOPBACK\n\trespond ready\n}}\n",
        http.ip(),
        http.port(),
        https.port(),
        pebble.url(),
        pebble.certificate().display(),
    )
}

fn text(conn: &mut TlsConn, host: &str) -> String {
    conn.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    conn.response().expect(200).text()
}

fn last_error(server: &Server, name: &str) -> Option<String> {
    let listed = server.admin().get("/regent/certificates").expect(200).json();
    let all = listed["certificates"].as_array().expect("a list");
    let of_name = all.iter().find(|certificate| certificate["name"] == name).expect("the name is known");
    of_name["last_error"].as_str().map(str::to_owned)
}

/// The two names have their records at the same name, at the same time.
#[test]
fn a_wildcard_and_its_parent_are_proved_by_powerdns_which_is_cleaned_up() {
    let [http, https] = own_addresses();
    let setup = Setup::new();
    let dns = PowerDns::start(setup.directory(), "pdns.test");
    let Some(pebble) = Pebble::asking(dns.dns(), setup.directory(), [http, https]) else { return };
    let options =
        format!("\tacme_dns powerdns {} {{env.PDNS_KEY}}\n\ttls_resolvers {}", dns.url(), dns.dns());
    let sites = "pdns.test, *.pdns.test {\n\trespond {host}\n}";
    let server = setup
        .caddyfile(&caddyfile(&pebble, [http, https], &options, sites))
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .env("PDNS_KEY", PowerDns::API_KEY)
        .env("NO_PROXY", &dns.dns().ip().to_string())
        .start();
    let client = pebble.client();
    for name in ["pdns.test", "any.pdns.test"] {
        let mut conn = until(&format!("{name} has a certificate"), || client.try_connect(https, name).ok());
        assert_eq!(text(&mut conn, name), name);
    }
    until("the records are gone", || {
        dns.texts("pdns.test", "_acme-challenge.pdns.test.").is_empty().then_some(())
    });
    // They were looked up before the CA was told: here, by the server that is configured.
    assert!(dns.log().contains("wants '_acme-challenge.pdns.test|TXT'"), "{}", dns.log());
    server.wait_for_log("changed a record of a DNS challenge");
    assert!(!server.log().contains(PowerDns::API_KEY));
    server.stop();
}

#[test]
fn what_a_service_refuses_is_said_and_nothing_is_ordered_in_vain() {
    let [http, https] = own_addresses();
    let setup = Setup::new();
    let dns = PowerDns::start(setup.directory(), "pdns.test");
    let Some(pebble) = Pebble::asking(dns.dns(), setup.directory(), [http, https]) else { return };
    let options = format!("\tacme_dns powerdns {} another-key\n\ttls_resolvers {}", dns.url(), dns.dns());
    let sites = "*.pdns.test {\n\trespond {host}\n}\n*.elsewhere.test {\n\trespond {host}\n}";
    let caddyfile = caddyfile(&pebble, [http, https], &options, sites);
    let setup = setup.caddyfile(&caddyfile).env("XDG_DATA_HOME", "DIRECTORY/data");
    let server = setup.env("NO_PROXY", &dns.dns().ip().to_string()).start();
    let refused = until("the key is refused", || last_error(&server, "*.pdns.test"));
    assert_eq!(
        refused,
        "the service for the DNS challenge, powerdns, does not accept what is configured to log in with"
    );
    let unknown = until("the zone is not found", || last_error(&server, "*.elsewhere.test"));
    assert!(unknown.contains("DNS does not say whether elsewhere.test. is a zone"), "{unknown}");
    assert!(!server.log().contains("another-key"));
    server.stop();
}

/// Cloudflare itself is played by a PHP script behind a certificate for its name, which a proxy leads to.
#[test]
fn a_wildcard_is_proved_by_cloudflare_with_a_token_alone() {
    let [http, https] = own_addresses();
    let [plain, api] = own_addresses();
    let setup = Setup::new();
    let dns = PowerDns::start(setup.directory(), "cf.test");
    let Some(pebble) = Pebble::asking(dns.dns(), setup.directory(), [http, https]) else { return };
    let cloudflare = cloudflare([plain, api], &dns);
    let root = cloudflare.directory().join("data/caddy/pki/authorities/local/root.crt");
    until("the certificate is there", || root.exists().then_some(()));
    let proxy = forward_proxy(move |_| Some(api));
    let options = format!("\ttls_resolvers {}", dns.dns());
    let sites = "*.cf.test {\n\ttls {\n\t\tdns cloudflare {env.CF_API_TOKEN}\n\t}\n\trespond {host}\n}";
    let server = setup
        .caddyfile(&caddyfile(&pebble, [http, https], &options, sites))
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .env("CF_API_TOKEN", "the-token")
        .env("HTTPS_PROXY", &format!("http://{proxy}"))
        .env("SSL_CERT_FILE", &root.display().to_string())
        .start();
    let client = pebble.client();
    let mut conn = until("any.cf.test has a certificate", || client.try_connect(https, "any.cf.test").ok());
    assert_eq!(text(&mut conn, "any.cf.test"), "any.cf.test");
    until("the record is gone", || dns.texts("cf.test", "_acme-challenge.cf.test.").is_empty().then_some(()));
    let requests = cloudflare.wait_for_file("requests.txt");
    assert!(requests.contains("POST /client/v4/zones/the-zone/dns_records\n"), "{requests}");
    assert!(requests.contains("DELETE /client/v4/zones/the-zone/dns_records/record-"), "{requests}");
    server.stop();
    cloudflare.stop();
}

fn cloudflare([http, https]: [SocketAddr; 2], dns: &PowerDns) -> Server {
    let caddyfile = format!(
        "{{\n\tadmin ADMIN\n\tdefault_bind {}\n\thttp_port {}\n\thttps_port {}\n\tskip_install_trust\n\
         \tfrankenphp {{\n\t\tnum_threads 2\n\t}}\n}}\n\
         api.cloudflare.com {{\n\ttls internal\n\troot ROOT\n\trewrite cloudflare.php?{{query}}\n\tphp_server\n}}\n\
         http://:PORT {{\n\tbind LOOPBACK\n\trespond ready\n}}\n",
        http.ip(),
        http.port(),
        https.port(),
    );
    let script = include_str!("../fixtures/dns/cloudflare.php");
    Setup::new()
        .file("cloudflare.php", script)
        .caddyfile(&caddyfile)
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .env("PDNS_URL", &dns.url())
        .env("PDNS_KEY", PowerDns::API_KEY)
        .start()
}
