//! Chromium, over HTTP/2 and HTTP/3, and with pages that follow their files: the long tier.
#![forbid(unsafe_code)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::PublicKeyData;
use regent_tests::{Server, Setup, until};
use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;

const PAGE: &str = "<!doctype html><title>Regent</title><p id=protocol><?= $_SERVER['SERVER_PROTOCOL'] ?></p>\
                    <script src=/script.js></script>";
const SCRIPT: &str = "document.title = performance.getEntriesByType('navigation')[0].nextHopProtocol";

/// Says what it shows once it is told of changes, and is loaded anew then.
const FOLLOWING: &str = "<!doctype html><p><?php include __DIR__ . '/template.php'; ?></p><script>\
    const changes = new EventSource('<?= $_SERVER['FRANKENPHP_HOT_RELOAD'] ?>');\
    changes.onopen = () => fetch('/seen.php?' + document.querySelector('p').textContent);\
    changes.onmessage = () => location.reload();\
    </script>";

/// A browser that runs until it is dropped.
struct Open {
    browser: Child,
    _profile: tempfile::TempDir,
}

impl Drop for Open {
    fn drop(&mut self) {
        // It has ended by itself otherwise.
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}

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

fn command(program: PathBuf, profile: &Path) -> Command {
    let mut browser = Command::new(program);
    browser
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .stdin(Stdio::null());
    browser
}

/// A browser that shows the page, and goes on to.
fn open(program: PathBuf, url: &str) -> Open {
    let profile = tempfile::tempdir().expect("a directory");
    let mut browser = command(program, profile.path());
    browser.arg("--remote-debugging-port=0").arg(url).stderr(Stdio::null());
    Open { browser: browser.spawn().expect("it is a program"), _profile: profile }
}

/// The page as the browser has it after its scripts have run.
fn load(program: PathBuf, server: &Server, key: &str, options: &[&str]) -> String {
    let profile = tempfile::tempdir().expect("a directory");
    let mut browser = command(program, profile.path());
    browser
        .arg(format!("--ignore-certificate-errors-spki-list={key}"))
        .args(options)
        .args(["--timeout=20000", "--dump-dom"])
        .arg(format!("https://localhost:{}/", server.tls_address().port()));
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

#[test]
#[ignore = "long: starts Chromium"]
fn a_saved_template_changes_the_page_in_chromium() {
    let Some(program) = chromium() else { return };
    let seen = "<?php file_put_contents(__DIR__ . '/seen', $_SERVER['QUERY_STRING']);";
    let server = Setup::new()
        .site("mercure {\nanonymous\n}\nphp_server {\nhot_reload\n}")
        .file("index.php", FOLLOWING)
        .file("template.php", "first")
        .file("seen.php", seen)
        .start();
    let shows = |text: &str| {
        until("the page is loaded", || {
            std::fs::read_to_string(server.root().join("seen")).ok().filter(|seen| seen == text)
        });
    };
    let page = open(program, &format!("http://{}/", server.address()));
    shows("first");
    server.write("template.php", "second");
    shows("second");
    server.write("template.php", "third");
    shows("third");
    drop(page);
    server.stop();
}
