//! ZeroSSL, which issues what Let's Encrypt does not: the real server against pebble as its ACME directory and a script as
//! its own interface, behind certificates for their names. A proxy leads there, and to nowhere else.
#![forbid(unsafe_code)]

use regent_tests::{Pebble, Server, Setup, forward_proxy, own_addresses, until};
use std::net::SocketAddr;
use std::path::PathBuf;

const EAB_ID: &str = "the-account";
const EAB_KEY: &str = "dGhlLWtleS1vZi10aGUtYWNjb3VudC1hdC16ZXJvc3Ns";

/// What plays ZeroSSL, and how it is reached.
struct ZeroSsl {
    server: Server,
    proxy: SocketAddr,
    root: PathBuf,
}

impl ZeroSsl {
    fn start(pebble: &Pebble) -> Self {
        let [http, https] = own_addresses();
        let directory = pebble.address();
        let caddyfile = format!(
            "{{\n\tadmin ADMIN\n\tdefault_bind {}\n\thttp_port {}\n\thttps_port {}\n\tskip_install_trust\n\tlocal_certs\n\
             \tfrankenphp {{\n\t\tnum_threads 2\n\t}}\n}}\n\
             api.zerossl.com {{\n\troot ROOT\n\trewrite zerossl.php?{{query}}\n\tphp_server\n}}\n\
             acme.zerossl.com {{\n\trewrite /v2/DV90 /dir\n\treverse_proxy https://{directory} {{\n\
             \t\theader_up Host {{host}}\n\t\ttransport http {{\n\t\t\ttls_trust_pool file {}\n\t\t}}\n\t}}\n}}\n\
             http://:PORT {{\n\tbind LOOPBACK\n\trespond ready\n}}\n",
            http.ip(),
            http.port(),
            https.port(),
            pebble.certificate().display(),
        );
        let server = Setup::new()
            .file("zerossl.php", include_str!("../fixtures/zerossl.php"))
            .caddyfile(&caddyfile)
            .env("XDG_DATA_HOME", "DIRECTORY/data")
            .env("EAB_ID", EAB_ID)
            .env("EAB_KEY", EAB_KEY)
            .start();
        let root = server.directory().join("data/caddy/pki/authorities/local/root.crt");
        until("the certificate is there", || root.exists().then_some(()));
        let is_zerossl = |host: &str| matches!(host, "api.zerossl.com" | "acme.zerossl.com");
        let proxy = forward_proxy(move |host| is_zerossl(host).then_some(https));
        Self { server, proxy, root }
    }

    /// What it was asked for outside of its directory.
    fn requests(&self) -> String {
        self.server.wait_for_file("requests.txt")
    }
}

/// The server of `shop.test`, with these lines.
fn shop(zerossl: &ZeroSsl, setup: Setup, [http, https]: [SocketAddr; 2], global: &str, site: &str) -> Server {
    let caddyfile = format!(
        "{{\n\tadmin ADMIN\n\tdefault_bind {}\n\thttp_port {}\n\thttps_port {}\n{global}\n\
         \tfrankenphp {{\n\t\tnum_threads 2\n\t}}\n}}\n\
         shop.test {{\n{site}\n\trespond {{host}}\n}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\trespond ready\n}}\n",
        http.ip(),
        http.port(),
        https.port(),
    );
    setup
        .caddyfile(&caddyfile)
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .env("HTTPS_PROXY", &format!("http://{}", zerossl.proxy))
        .env("SSL_CERT_FILE", &zerossl.root.display().to_string())
        .start()
}

fn serves(pebble: &Pebble, address: SocketAddr) {
    let client = pebble.client();
    let mut conn = until("shop.test has a certificate", || client.try_connect(address, "shop.test").ok());
    conn.send("GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), "shop.test");
}

#[test]
fn where_lets_encrypt_cannot_be_reached_zerossl_issues_for_the_address_alone() {
    let [http, https] = own_addresses();
    let setup = Setup::new();
    let Some(pebble) = Pebble::binding(EAB_ID, EAB_KEY, setup.directory(), [http, https]) else { return };
    let zerossl = ZeroSsl::start(&pebble);
    let server = shop(&zerossl, setup, [http, https], "\temail ops@example.com", "");
    serves(&pebble, https);
    assert_eq!(zerossl.requests(), "POST /acme/eab-credentials-email\n");
    let log = server.log();
    assert!(log.contains("the next CA is asked") && log.contains("acme-v02.api.letsencrypt.org"), "{log}");
    assert!(!log.contains(EAB_KEY));
    server.stop();
    zerossl.server.stop();
}

#[test]
fn an_account_at_zerossl_is_found_by_its_key() {
    let [http, https] = own_addresses();
    let setup = Setup::new();
    let Some(pebble) = Pebble::binding(EAB_ID, EAB_KEY, setup.directory(), [http, https]) else { return };
    let zerossl = ZeroSsl::start(&pebble);
    let site = "\ttls {\n\t\tissuer zerossl the-key\n\t}";
    let server = shop(&zerossl, setup, [http, https], "", site);
    serves(&pebble, https);
    assert_eq!(zerossl.requests(), "POST /acme/eab-credentials?access_key=the-key\n");
    assert!(!server.log().contains("the-key"));
    server.stop();
    zerossl.server.stop();
}

#[test]
fn what_zerossl_refuses_is_said_without_the_key() {
    let [http, https] = own_addresses();
    let setup = Setup::new();
    let Some(pebble) = Pebble::binding(EAB_ID, EAB_KEY, setup.directory(), [http, https]) else { return };
    let zerossl = ZeroSsl::start(&pebble);
    let site = "\ttls {\n\t\tissuer zerossl another-key\n\t}";
    let server = shop(&zerossl, setup, [http, https], "", site);
    until("the key is refused", || {
        let listed = server.admin().get("/regent/certificates").expect(200).json();
        let all = listed["certificates"].as_array().expect("a list");
        let says = |error: &str| error == "ZeroSSL gives no account: invalid_access_key (code 101)";
        all.iter().any(|certificate| certificate["last_error"].as_str().is_some_and(says)).then_some(())
    });
    assert!(!server.log().contains("another-key"));
    server.stop();
    zerossl.server.stop();
}
