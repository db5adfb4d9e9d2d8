//! Sites with TLS: the real server, and clients that verify it.
#![forbid(unsafe_code)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regent_tests::process::{children, is_alive};
use regent_tests::{Conn, Server, Setup, TlsClient, TlsConn, regent_command, until};
use rustix::process::Signal;
use rustls::HandshakeKind;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const ECHO: &str = "<?php echo $_SERVER['REQUEST_METHOD'], ' ', file_get_contents('php://input');";

/// A server with this site, and these lines of global options. All keep their files in the fresh directory.
fn setup(global_options: &str, site: &str) -> Setup {
    let text = format!(
        "{{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\t{global_options}\n\
         \tfrankenphp {{\n\t\tnum_threads 2\n\t\tmax_wait_time off\n\t}}\n}}\n{site}\n"
    );
    Setup::new().caddyfile(&text).env("XDG_DATA_HOME", "DIRECTORY/data")
}

/// `localhost` with PHP.
fn localhost() -> Setup {
    setup("", "localhost {\n\troot * ROOT\n\tphp_server\n}").file("index.php", ECHO)
}

fn storage(server: &Server) -> PathBuf {
    server.directory().join("data/caddy")
}

fn root_certificate(server: &Server) -> PathBuf {
    storage(server).join("pki/authorities/local/root.crt")
}

fn client(server: &Server) -> TlsClient {
    TlsClient::trusting(&root_certificate(server))
}

fn connect(server: &Server) -> TlsConn {
    client(server).connect(server.tls_address(), "localhost")
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

fn is_served(server: &Server, client: &TlsClient) -> bool {
    client.try_connect(server.tls_address(), "localhost").is_ok_and(|mut conn| {
        conn.try_send(get("/")).is_ok() && conn.try_response("GET").is_ok_and(|response| response.is_some())
    })
}

/// What the stream says at its end: `Ok` with `close_notify`.
fn end(conn: &mut TlsConn) -> std::io::Result<usize> {
    conn.read_some(&mut [0; 1])
}

/// A self-signed certificate for `localhost`, as two files.
fn write_pair(directory: &Path) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    fs::write(directory.join("site.key"), made.signing_key.serialize_pem()).expect("the directory is ours");
    fs::write(directory.join("site.crt"), made.cert.pem()).expect("the directory is ours");
}

#[test]
fn requests_are_served_over_tls_as_without() {
    let server = localhost().start();
    let mut conn = connect(&server);
    for body in ["", "one", "another"] {
        conn.send(format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        assert_eq!(conn.response().expect(200).text(), format!("POST {body}"));
    }
    conn.send(get("/"));
    assert_eq!(conn.response().expect(200).text(), "GET ");
    conn.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    conn.response().expect(200);
    assert_eq!(end(&mut conn).expect("close_notify"), 0);
    server.stop();
}

#[test]
fn large_bodies_arrive_whole_in_both_directions() {
    const SIZE: usize = 50 << 20;
    let hash = "<?php echo hash_file('crc32b', 'php://input');";
    let give =
        format!("<?php for ($i = 0; $i < {}; $i++) echo str_repeat(chr(97 + $i % 26), 1 << 20);", SIZE >> 20);
    let options = "servers {\n\t\ttimeouts {\n\t\t\tread_body 0\n\t\t}\n\t}";
    let server = setup(options, "localhost {\n\troot * ROOT\n\tphp_server\n}")
        .file("hash.php", hash)
        .file("give.php", give)
        .start();
    let body: Vec<u8> = (0..SIZE).map(|index| b'a' + (index >> 20) as u8 % 26).collect();
    let mut conn = connect(&server);
    conn.send(get("/give.php"));
    assert!(conn.response().expect(200).body == body, "50 MiB as they were sent");
    conn.send(format!("POST /hash.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: {SIZE}\r\n\r\n"));
    conn.send(&body);
    let mut hasher = flate2::Crc::new();
    hasher.update(&body);
    assert_eq!(conn.response().expect(200).text(), format!("{:08x}", hasher.sum()));
    server.stop();
}

#[test]
fn php_and_routes_know_that_a_request_came_over_tls() {
    let names = "['HTTPS', 'REQUEST_SCHEME', 'SERVER_PORT', 'SSL_PROTOCOL', 'SSL_CIPHER']";
    let script = format!("<?php echo json_encode(array_map(fn($name) => $_SERVER[$name] ?? null, {names}));");
    let site = "localhost, http://plain.localhost {\n\troot * ROOT\n\t@secure protocol https\n\trespond /scheme {scheme}\n\
                \theader @secure X-Secure {scheme}\n\tphp_server\n}";
    let server = setup("", site).file("index.php", script).start();
    let mut conn = connect(&server);
    conn.send(get("/"));
    let response = conn.response().expect(200);
    assert_eq!(response.header("x-secure"), Some("https"));
    let port = server.tls_address().port().to_string();
    let values = response.json();
    assert_eq!(values[0], "on");
    assert_eq!(values[1], "https");
    assert_eq!(values[2], port.as_str());
    assert_eq!(values[3], "TLSv1.3");
    assert!(values[4].as_str().is_some_and(|cipher| cipher.starts_with("TLS_")), "{values}");
    conn.send(get("/scheme"));
    assert_eq!(conn.response().expect(200).text(), "https");

    let plain =
        |target: &str| server.request("GET", target).header("Host", "plain.localhost").send().expect(200);
    assert_eq!(plain("/scheme").text(), "http");
    assert_eq!(plain("/").header("x-secure"), None);
    assert_eq!(plain("/").json()[0], serde_json::Value::Null);
    server.stop();
}

#[test]
fn plain_http_is_redirected() {
    let server = localhost().start();
    let response = server.request("GET", "/a?b=c").header("Host", "localhost").send().expect(308);
    let port = server.tls_address().port();
    let target = response.header("location").expect("a redirect");
    assert!(
        [format!("https://localhost:{port}/a?b=c"), "https://localhost/a?b=c".into()]
            .contains(&target.into()),
        "{target}"
    );
    server.stop();
}

#[test]
fn plain_http_on_the_port_of_tls_is_told_so() {
    let server = localhost().start();
    let mut conn = Conn::open(server.tls_address());
    conn.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let response = conn.response().expect(400);
    assert_eq!(response.version, "HTTP/1.0");
    assert_eq!(response.text(), "Client sent an HTTP request to an HTTPS server.\n");
    assert!(conn.is_closed());
    server.stop();
}

#[test]
fn plain_http_on_the_port_of_tls_can_be_redirected_there() {
    let wrappers = "servers {\n\t\tlistener_wrappers {\n\t\t\thttp_redirect\n\t\t\ttls\n\t\t}\n\t}";
    let server = setup(wrappers, "localhost {\n\trespond ok\n}").start();
    let address = server.tls_address();
    let mut conn = Conn::open(address);
    conn.send("GET /a?b H");
    conn.wait_until_read();
    conn.send(format!("TTP/1.1\r\nX-Own: y\r\nHost: localhost:{}\r\n\r\n", address.port()));
    let response = conn.response().expect(308);
    assert_eq!(response.header("location"), Some(&*format!("https://localhost:{}/a?b", address.port())));
    assert!(conn.is_closed());
    let mut conn = Conn::open(address);
    conn.send("GET / HTTP/1.0\r\n\r\n");
    conn.response().expect(400);
    assert!(is_served(&server, &client(&server)));
    server.stop();
}

#[test]
fn every_good_end_is_announced() {
    let idle = "servers {\n\t\ttimeouts {\n\t\t\tidle 1s\n\t\t}\n\t}";
    let server = setup(idle, "localhost {\n\troot * ROOT\n\tphp_server\n}").file("index.php", ECHO).start();
    let mut conn = connect(&server);
    conn.send(get("/"));
    conn.response().expect(200);
    assert_eq!(end(&mut conn).expect("close_notify after the idle time-out"), 0);
    server.stop();

    let mut server = localhost().start();
    let mut conn = connect(&server);
    conn.send(get("/"));
    conn.response().expect(200);
    server.signal(Signal::TERM);
    assert_eq!(end(&mut conn).expect("close_notify at the server's end"), 0);
    assert!(server.wait().success());
}

#[test]
fn a_response_that_breaks_off_is_seen_as_cut() {
    let script = "<?php echo str_repeat('x', 100000); flush(); posix_kill(getmypid(), SIGKILL);";
    let server = localhost().file("cut.php", script).start();
    let mut conn = connect(&server);
    conn.send("GET /cut.php HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let error = conn.try_response("GET").expect_err("without its end it is not whole");
    assert!(matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{error}");
}

#[test]
fn stalled_handshakes_hold_up_nobody_and_no_stop() {
    let server = localhost().start();
    let client = client(&server);
    let stalled: Vec<TcpStream> = (0..1000)
        .map(|index| {
            let mut socket = TcpStream::connect(server.tls_address()).expect("the server listens");
            if index % 2 == 0 {
                socket.write_all(&[22, 3, 1, 2, 0, 1, 0]).expect("there is room");
            }
            socket
        })
        .collect();
    for _ in 0..10 {
        assert!(is_served(&server, &client));
    }
    server.stop();
    drop(stalled);
}

/// It ends with its first request, under the terms that it began with.
#[test]
fn a_handshake_is_not_cut_by_a_configuration_with_other_terms() {
    let caddyfile = |options: &str, word: &str| {
        format!(
            "{{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\t{options}\n}}\n\
             localhost {{\n\trespond {word}\n}}\n"
        )
    };
    let setup = Setup::new().caddyfile(&caddyfile("", "old")).env("XDG_DATA_HOME", "DIRECTORY/data");
    let server = setup.start();
    until("the site is served", || is_served(&server, &TlsClient::credulous()).then_some(()));
    let mut conn = client(&server).half_connect(server.tls_address(), "localhost");
    let mut silent = client(&server).half_connect(server.tls_address(), "localhost");
    server.write_caddyfile(&caddyfile("servers {\n\t\tprotocols h1\n\t}", "new"));
    server.signal(Signal::HUP);
    server.wait_for_log("the new configuration is in use");
    conn.send(get("/"));
    let response = conn.response();
    assert_eq!((response.text().as_str(), response.header("connection")), ("old", Some("close")));
    assert_eq!(end(&mut conn).expect("close_notify"), 0);
    // One that does not ask for anything is not waited for.
    silent.send("");
    assert_eq!(end(&mut silent).expect("close_notify"), 0);
    let mut next = connect(&server);
    next.send(get("/"));
    assert_eq!(next.response().text(), "new");
    server.stop();
}

#[test]
fn garbage_harms_nobody() {
    let server = localhost().start();
    let client = client(&server);
    for bytes in [
        &[0_u8; 64][..],
        &[22, 3, 1, 255, 255, 0],
        &[22, 3, 3, 0, 5, 1, 0, 0, 1, 0],
        b"SSH-2.0-x\r\n",
        &[128, 46, 1, 3, 1],
    ] {
        let mut socket = TcpStream::connect(server.tls_address()).expect("the server listens");
        socket.write_all(bytes).expect("there is room");
        socket.shutdown(std::net::Shutdown::Write).expect("it is open");
        // An alert, or a reset.
        let _ = socket.read_to_end(&mut Vec::new());
    }
    assert!(is_served(&server, &client));
    server.stop();
}

#[test]
fn an_unknown_name_is_refused() {
    let server = localhost().start();
    let error = TlsClient::credulous().try_connect(server.tls_address(), "other.test").err();
    let error = error.expect("nobody has it").to_string();
    assert!(error.contains("UnrecognisedName"), "{error}");
    server.stop();
}

/// A CA's certificate, and the files of a certificate of it.
fn client_ca(directory: &Path) -> [PathBuf; 3] {
    let [ca, certificate, key] = ["ca.crt", "client.crt", "client.key"].map(|name| directory.join(name));
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_key = rcgen::KeyPair::generate().expect("a key");
    fs::write(&ca, params.self_signed(&ca_key).expect("a certificate").pem()).expect("ours");
    let issuer = rcgen::Issuer::new(params, ca_key);
    let client_key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(["client".to_owned()]).expect("a name");
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    fs::write(&certificate, params.signed_by(&client_key, &issuer).expect("a certificate").pem())
        .expect("ours");
    fs::write(&key, client_key.serialize_pem()).expect("ours");
    [ca, certificate, key]
}

#[test]
fn a_site_that_asks_for_certificates_gets_them_and_is_reached_by_no_other_way() {
    let closed = "localhost {\n\ttls internal {\n\t\tclient_auth {\n\t\t\ttrust_pool file DIRECTORY/ca.crt\n\t\t}\n\t}\n\trespond secret\n}";
    for strict in ["", "strict_sni_host insecure_off"] {
        let options = format!("servers {{\n\t\t{strict}\n\t}}");
        let options = if strict.is_empty() { "" } else { &options };
        let setup = setup(options, &format!("{closed}\nopen.localhost {{\n\trespond open\n}}"));
        let [_, certificate, key] = client_ca(setup.directory());
        let server = setup.start();
        assert!(!is_served(&server, &client(&server)), "without a certificate");
        let known = TlsClient::with_certificate(&root_certificate(&server), &certificate, &key);
        let mut conn = known.connect(server.tls_address(), "localhost");
        conn.send(get("/"));
        assert_eq!(conn.response().expect(200).text(), "secret");

        let mut conn = client(&server).connect(server.tls_address(), "open.localhost");
        conn.send("GET / HTTP/1.1\r\nHost: open.localhost\r\n\r\n");
        assert_eq!(conn.response().expect(200).text(), "open");
        conn.send(get("/"));
        conn.response().expect(421);
        server.stop();
    }
}

#[test]
fn a_wildcard_that_asks_for_certificates_asks_for_none_at_a_site_of_its_own() {
    let ask = "tls internal {\n\t\tclient_auth {\n\t\t\ttrust_pool file DIRECTORY/ca.crt\n\t\t}\n\t}";
    let sites = format!(
        "*.sub.localhost {{\n\t{ask}\n\trespond secret\n}}\nopen.sub.localhost {{\n\ttls internal\n\trespond open\n}}"
    );
    let setup = setup("", &sites);
    client_ca(setup.directory());
    let server = setup.start();
    let ask = |name: &str| {
        let mut conn = client(&server).connect(server.tls_address(), "open.sub.localhost");
        conn.send(format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n"));
        conn.response()
    };
    assert_eq!(ask("open.sub.localhost").expect(200).text(), "open");
    ask("closed.sub.localhost").expect(421);
    server.stop();
}

#[test]
fn a_site_knows_whom_a_certificate_of_a_client_names() {
    let ask = "tls internal {\n\t\tclient_auth {\n\t\t\tmode request\n\t\t\ttrust_pool inline {\n\t\t\t\ttrust_der CA\n\t\t\t}\n\t\t}\n\t}";
    let text = "respond \"{tls_version} {tls_cipher} {http.request.tls.server_name} [{tls_client_issuer}] \
                {http.request.tls.client.san.dns_names.0} {tls_client_fingerprint} {http.request.tls.resumed}\"";
    let first = setup("", "");
    let [ca, certificate, key] = client_ca(first.directory());
    let ca = rustls::pki_types::CertificateDer::from_pem_file(&ca).expect("a certificate");
    let ask = ask.replace("CA", &STANDARD.encode(&ca));
    let server = setup("", &format!("localhost {{\n\t{ask}\n\t{text}\n}}")).start();
    let said = |client: &TlsClient| {
        let mut conn = client.connect(server.tls_address(), "localhost");
        conn.send(get("/"));
        conn.response().expect(200).text()
    };
    let known = said(&TlsClient::with_certificate(&root_certificate(&server), &certificate, &key));
    let words: Vec<&str> = known.split(' ').collect();
    assert_eq!(words[0], "tls1.3");
    assert!(words[1].starts_with("TLS_") && words[2] == "localhost", "{known}");
    assert!(known.contains("[CN=") && known.contains(" client "), "{known}");
    assert_eq!(words[words.len() - 2].len(), 64, "{known}");
    let unknown = said(&client(&server));
    assert!(unknown.contains(" []  "), "{unknown}");
    server.stop();
}

#[test]
fn certificates_can_be_of_a_root_of_ones_own() {
    let pki = "pki {\n\t\tca local {\n\t\t\troot {\n\t\t\t\tcert DIRECTORY/mine.crt\n\t\t\t\tkey DIRECTORY/mine.key\n\t\t\t}\n\t\t}\n\t}";
    let setup = setup(pki, "localhost {\n\trespond ok\n}");
    let mine = setup.directory().join("mine.crt");
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("a key");
    fs::write(&mine, params.self_signed(&key).expect("a certificate").pem()).expect("ours");
    fs::write(setup.directory().join("mine.key"), key.serialize_pem()).expect("ours");
    let server = setup.start();
    assert!(is_served(&server, &TlsClient::trusting(&mine)));
    assert!(!root_certificate(&server).exists(), "none was made");
    server.stop();
}

#[test]
fn a_certificate_that_is_replaced_is_served_without_a_restart() {
    let setup = setup("", "localhost {\n\ttls DIRECTORY/site.crt DIRECTORY/site.key\n\trespond ok\n}");
    write_pair(setup.directory());
    let server = setup.start();
    let file = server.directory().join("site.crt");
    let before = TlsClient::trusting(&file);
    assert!(is_served(&server, &before));
    write_pair(server.directory());
    let after = TlsClient::trusting(&file);
    until("the new certificate is served", || is_served(&server, &after).then_some(()));
    server.stop();
}

fn command(directory: &Path) -> Command {
    let mut command = regent_command(directory);
    command.args(["run", "--config", "Caddyfile"]).env("XDG_DATA_HOME", directory.join("data"));
    command
}

#[test]
fn a_restart_keeps_tickets_and_the_ca() {
    let server = localhost().start();
    let root = fs::read(root_certificate(&server)).expect("the root is there");
    let client = client(&server);
    let kind = |address: SocketAddr| {
        let mut conn = client.connect(address, "localhost");
        conn.send(get("/"));
        conn.response().expect(200);
        conn.get_ref().conn.handshake_kind()
    };
    assert_eq!(kind(server.tls_address()), Some(HandshakeKind::Full));
    assert_eq!(kind(server.tls_address()), Some(HandshakeKind::Resumed));
    let server = server.restart(command);
    assert_eq!(kind(server.tls_address()), Some(HandshakeKind::Resumed));
    assert_eq!(fs::read(root_certificate(&server)).expect("the root is there"), root);
    server.stop();
}

#[test]
fn a_slow_reader_gets_everything() {
    let script = "<?php echo str_repeat('0123456789', 1 << 20);";
    let server = localhost().file("big.php", script).start();
    let mut slow = connect(&server);
    slow.send(get("/big.php"));
    let head = slow.head().expect("a head").expect("a response");
    for _ in 0..10 {
        assert!(is_served(&server, &client(&server)), "others are served meanwhile");
    }
    let body = slow.rest_of(head).expect("all of it").body;
    assert!(body == "0123456789".repeat(1 << 20).into_bytes(), "ten MiB as they were sent");
    server.stop();
}

#[test]
fn names_on_demand_and_shared_certificates_are_served() {
    let site = "localhost {\n\trespond named\n}\nhttps://:TLSPORT {\n\ttls internal {\n\t\ton_demand\n\t}\n\trespond any\n}";
    let server = setup("", site).start();
    let ip = server.tls_address().ip().to_string();
    for (name, expected) in [("localhost", "named"), ("whatever.test", "any"), (&ip, "any")] {
        let mut conn = client(&server).connect(server.tls_address(), name);
        conn.send(format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n"));
        assert_eq!(conn.response().expect(200).text(), expected, "{name}");
    }
    server.stop();
}

#[test]
fn errors_of_certificates_name_their_site() {
    let setup = Setup::new();
    let text = "{\n\tadmin off\n}\nhttps://shop.test:8443 {\n\ttls a.crt a.key\n\trespond a\n}\n\
                https://blog.test:8443 {\n\ttls b.crt b.key\n\trespond b\n}\n";
    fs::write(setup.directory().join("Caddyfile"), text).expect("ours");
    for file in ["a.crt", "a.key", "b.crt", "b.key"] {
        fs::write(setup.directory().join(file), "no PEM").expect("ours");
    }
    let output = command(setup.directory()).output().expect("it runs");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for expected in
        ["shop.test", "blog.test", ":8443", "a.crt holds no certificate", "b.crt holds no certificate"]
    {
        assert!(log.contains(expected), "{expected}: {log}");
    }
}

/// Pages of a process at once.
const CHUNK: u64 = 1 << 20;

/// Whether these bytes are anywhere in the memory of an engine that its pages hold now.
fn is_in_memory(engine: u32, needle: &[u8]) -> bool {
    assert!(is_alive(engine), "nothing would be found");
    is_in_processes(engine, needle)
}

/// PHP that is not thread-safe runs in processes below the one that speaks with the server.
fn is_in_processes(pid: u32, needle: &[u8]) -> bool {
    is_in_process(pid, needle) || children(pid).into_iter().any(|child| is_in_processes(child, needle))
}

fn is_in_process(pid: u32, needle: &[u8]) -> bool {
    let open = |file: &str| fs::File::open(format!("/proc/{pid}/{file}"));
    let (Ok(memory), Ok(pages)) = (open("mem"), open("pagemap")) else { return false };
    let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) else { return false };
    let ranges = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let bound = |text| u64::from_str_radix(text, 16).ok();
        // The memory of requests is 10 GiB of address space, nearly all of it untouched, and it is slow to look through.
        let is_looked_at = rest.starts_with('r') && !rest.contains("memfd:regent-wire");
        is_looked_at.then_some((bound(start)?, bound(end)?))
    });
    let mut chunks = ranges.flat_map(|(start, end)| {
        (start..end).step_by(CHUNK as usize).map(move |at| (at, (end - at).min(CHUNK + 64)))
    });
    chunks.any(|(at, length)| {
        // 8 bytes for each page, whose highest bits say whether it is there or swapped out.
        let mut entries = vec![0; length.div_ceil(4096) as usize * 8];
        pages.read_exact_at(&mut entries, at / 4096 * 8).is_ok()
            && entries.iter().skip(7).step_by(8).any(|byte| byte & 0xc0 != 0)
            && {
                let mut bytes = vec![0; length as usize];
                memory.read_exact_at(&mut bytes, at).is_ok() && contains(&bytes, needle)
            }
    })
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == needle[0]) {
        rest = &rest[at..];
        if rest.starts_with(needle) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

/// What engines inherit: no descriptor and no memory. Their user may read the files all the same (docs/https.md).
#[test]
fn keys_are_neither_in_descriptors_nor_in_memory_of_engines() {
    let server = localhost()
        .file("plant.php", "<?php static $kept; $kept = strrev('ecalp siht ni dnuof eb ot si siht'); echo 'planted'; while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); }")
        .start();
    assert!(is_served(&server, &client(&server)), "the key has been used");
    let file = storage(&server).join("certificates/local/localhost/localhost.key");
    let pem = fs::read_to_string(&file).expect("a key");
    let line = pem.lines().nth(2).expect("the second line of three");
    // PKCS #8 of a P-256 key: the private key is 32 bytes after 36 of structure (RFC 5915).
    let key = PrivateKeyDer::from_pem_file(&file).expect("a key");
    let engine = server.engine();
    for needle in [line.as_bytes(), &key.secret_der()[36..68]] {
        assert!(!is_in_memory(engine, needle), "an engine has a key");
    }
    let mut conn = connect(&server);
    conn.send(get("/plant.php"));
    until("what is there is found", || {
        is_in_memory(engine, b"this is to be found in this place").then_some(())
    });
    server.write("go", "now");
    conn.response().expect(200);

    let storage = storage(&server).canonicalize().expect("it is there");
    let open: Vec<_> = fs::read_dir(format!("/proc/{engine}/fd"))
        .expect("the engine is ours")
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .collect();
    assert!(!open.is_empty() && !open.iter().any(|target| target.starts_with(&storage)), "{open:?}");
    server.stop();
}

#[test]
fn the_default_caddyfile_of_frankenphp_serves_localhost() {
    const DEFAULT: &str =
        include_str!("../../crates/config/tests/golden/frankenphp-default-localhost.caddyfile");
    let setup = Setup::new();
    fs::write(setup.directory().join("Default"), DEFAULT).expect("the directory is ours");
    let server = setup
        .arguments(&["run", "--config", "DIRECTORY/Default"])
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .env("SERVER_NAME", "localhost")
        .env("SERVER_ROOT", "ROOT/")
        .env("CADDY_GLOBAL_OPTIONS", "admin off\ndefault_bind LOOPBACK\nhttp_port PORT\nhttps_port TLSPORT")
        .file("index.php", ECHO)
        .start();
    let mut conn = connect(&server);
    conn.send(get("/"));
    assert_eq!(conn.response().expect(200).text(), "GET ");
    server.request("GET", "/").header("Host", "localhost").send().expect(308);
    server.stop();
}
