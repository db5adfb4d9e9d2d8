//! Chromium, over HTTP/2 and HTTP/3: the long tier.
#![forbid(unsafe_code)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::PublicKeyData;
use regent_tests::{Server, Setup};
use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Once;

const PAGE: &str = "<!doctype html><title>Regent</title><p id=protocol><?= $_SERVER['SERVER_PROTOCOL'] ?></p>\
                    <script src=/script.js></script>";
const SCRIPT: &str = "document.title = performance.getEntriesByType('navigation')[0].nextHopProtocol";

/// `None`: there is none, and that was said.
fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all = std::env::split_paths(&path);
    let found =
        all.flat_map(|directory| names.map(|name| directory.join(name))).find(|program| program.is_file());
    if found.is_none() {
        static SAID: Once = Once::new();
        let text = "SKIPPED: Chromium: install it (package chromium)";
        SAID.call_once(|| writeln!(std::io::stderr(), "{text}").expect("standard error is open"));
    }
    found
}

/// A server with a certificate that no authority has signed, and what Chromium calls its key.
fn start() -> (Server, String) {
    let setup = Setup::new();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let write = |name: &str, text: String| {
        std::fs::write(setup.directory().join(name), text).expect("the directory is ours");
    };
    write("site.crt", made.cert.pem());
    write("site.key", made.signing_key.serialize_pem());
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else { unreachable!() };
    let hash = suite.common.hash_provider.hash(&made.signing_key.subject_public_key_info());
    let text = "{\n\tadmin off\n\thttp_port PORT\n\thttps_port TLSPORT\n\tfrankenphp {\n\t\tnum_threads 2\n\t}\n}\n\
                localhost {\n\ttls DIRECTORY/site.crt DIRECTORY/site.key\n\troot * ROOT\n\tencode\n\tphp_server\n}\n";
    let server = setup.caddyfile(text).file("index.php", PAGE).file("script.js", SCRIPT).start();
    (server, STANDARD.encode(hash.as_ref()))
}

/// The page as the browser has it after its scripts have run.
fn load(program: PathBuf, server: &Server, key: &str, options: &[&str]) -> String {
    let profile = tempfile::tempdir().expect("a directory");
    let mut browser = Command::new(program);
    browser
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--ignore-certificate-errors-spki-list={key}"))
        .args(options)
        .args(["--timeout=20000", "--dump-dom"])
        .arg(format!("https://localhost:{}/", server.tls_address().port()))
        .stdin(Stdio::null());
    let output = browser.output().expect("it is a program");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "long: starts Chromium"]
fn chromium_loads_a_page_over_http2() {
    let Some(program) = chromium() else { return };
    let (server, key) = start();
    let page = load(program, &server, &key, &["--disable-quic"]);
    assert!(page.contains("<p id=\"protocol\">HTTP/2.0</p>"), "{page}");
    assert!(page.contains("<title>h2</title>"), "{page}");
    server.stop();
}

#[test]
#[ignore = "long: starts Chromium"]
fn chromium_loads_a_page_over_http3() {
    let Some(program) = chromium() else { return };
    let (server, key) = start();
    let force = format!("--origin-to-force-quic-on=localhost:{}", server.tls_address().port());
    let page = load(program, &server, &key, &["--enable-quic", &force]);
    assert!(page.contains("<p id=\"protocol\">HTTP/3.0</p>"), "{page}");
    assert!(page.contains("<title>h3</title>"), "{page}");
    server.stop();
}
