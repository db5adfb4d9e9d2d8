//! HTTP/3: the real server, and a client of another making.
#![forbid(unsafe_code)]

use quinn::ConnectionError;
use regent_tests::h3::{Http3, block_on, connect_quic, receive};
use regent_tests::{Gate, STOP_AT_GATE, Server, Setup, TlsClient};
use rustix::process::Signal;
use std::net::UdpSocket;

/// RFC 9114 section 8.1.
const NO_ERROR: u64 = 0x100;
const INTERNAL_ERROR: u64 = 0x102;
const REQUEST_CANCELLED: u64 = 0x10c;

/// A server with this site, and these lines of global options.
fn setup(global_options: &str, site: &str) -> Setup {
    let text = format!(
        "{{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\t{global_options}\n\
         \tfrankenphp {{\n\t\tnum_threads 2\n\t\tmax_wait_time off\n\t}}\n}}\n{site}\n"
    );
    Setup::new().caddyfile(&text).env("XDG_DATA_HOME", "DIRECTORY/data")
}

/// `localhost` with PHP.
fn localhost() -> Setup {
    setup("", "localhost {\n\troot * ROOT\n\trespond /ping pong\n\tphp_server\n}")
}

fn client(server: &Server) -> TlsClient {
    TlsClient::trusting(&server.directory().join("data/caddy/pki/authorities/local/root.crt"))
}

async fn connect(server: &Server) -> Http3 {
    let connected = Http3::connect(&client(server), server.tls_address(), "localhost").await;
    connected.unwrap_or_else(|error| panic!("{error}\n{}", server.log()))
}

#[test]
fn requests_are_served_as_over_tcp() {
    let names = "['HTTPS', 'REQUEST_SCHEME', 'SERVER_PROTOCOL', 'SERVER_PORT', 'SSL_PROTOCOL', 'REMOTE_ADDR', 'HTTP_COOKIE']";
    let script = format!(
        "<?php echo json_encode(array_map(fn($name) => $_SERVER[$name] ?? null, {names})), ' ', $_SERVER['REQUEST_METHOD'], \
         ' ', file_get_contents('php://input');"
    );
    let server =
        setup("", "localhost {\n\troot * ROOT\n\trespond /proto {http.request.proto}\n\tphp_server\n}")
            .file("index.php", script)
            .start();
    block_on(async {
        let mut client = connect(&server).await;
        let request = client.request("GET", "/").header("cookie", "a=b").header("cookie", "c=d");
        let port = server.tls_address().port();
        let response = client.send(request).await.expect("a response").expect(200);
        let expected =
            format!(r#"["on","https","HTTP\/3.0","{port}","TLSv1.3","127.0.0.1","a=b; c=d"] GET "#);
        assert_eq!(response.text(), expected);
        assert!(response.header("date").is_some() && response.header("alt-svc").is_none(), "{response:?}");
        for body in ["one", "another"] {
            let request = client.request("POST", "/");
            let response = client.send_with(request, body.as_bytes()).await.expect("a response").expect(200);
            assert!(response.text().ends_with(&format!("POST {body}")), "{response:?}");
        }
        assert_eq!(client.get("/proto").await.text(), "HTTP/3.0");
        let head = client.request("HEAD", "/");
        let response = client.send(head).await.expect("a response").expect(200);
        assert!(response.body.is_empty());
    });
    server.stop();
}

#[test]
fn large_bodies_arrive_whole_in_both_directions() {
    const SIZE: usize = 20 << 20;
    let give =
        format!("<?php for ($i = 0; $i < {}; $i++) echo str_repeat(chr(97 + $i % 26), 1 << 20);", SIZE >> 20);
    let server = localhost()
        .file("hash.php", "<?php echo hash_file('crc32b', 'php://input');")
        .file("give.php", give)
        .start();
    let body: Vec<u8> = (0..SIZE).map(|index| b'a' + (index >> 20) as u8 % 26).collect();
    block_on(async {
        let mut client = connect(&server).await;
        assert!(client.get("/give.php").await.body == body, "20 MiB as they were sent");
        let request = client.request("POST", "/hash.php");
        let response = client.send_with(request, &body).await.expect("a response").expect(200);
        let mut hasher = flate2::Crc::new();
        hasher.update(&body);
        assert_eq!(response.text(), format!("{:08x}", hasher.sum()));
    });
    server.stop();
}

#[test]
fn early_hints_come_before_the_response() {
    let script = "<?php header('Link: </style.css>; rel=preload'); headers_send(103); echo 'page';";
    let server = localhost().file("index.php", script).start();
    block_on(async {
        let mut client = connect(&server).await;
        let mut stream = client.open(client.request("GET", "/")).await.expect("a stream");
        stream.finish().await.expect("a stream");
        let hints = stream.recv_response().await.expect("hints");
        assert_eq!(hints.status(), 103);
        assert_eq!(hints.headers()["link"], "</style.css>; rel=preload");
        let head = stream.recv_response().await.expect("a response");
        assert_eq!(receive(&mut stream, head).await.expect("a response").expect(200).text(), "page");
    });
    server.stop();
}

#[test]
fn a_request_that_its_client_cancels_never_starts() {
    let script = format!("<?php {STOP_AT_GATE} echo 'done';");
    let text = "{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\tfrankenphp {\n\t\tnum_threads 1\n\t\t\
                max_wait_time off\n\t}\n}\nlocalhost {\n\troot * ROOT\n\trespond /ping pong\n\tphp_server\n}\n";
    let setup = Setup::new().caddyfile(text).env("XDG_DATA_HOME", "DIRECTORY/data").file("index.php", script);
    let gate = Gate::of(&setup);
    let server = setup.start();
    block_on(async {
        let mut client = connect(&server).await;
        let mut first = client.open(client.request("GET", "/?first")).await.expect("a stream");
        first.finish().await.expect("a stream");
        let at_gate = gate.next();
        assert_eq!(at_gate.name, "first");
        let mut second = client.open(client.request("GET", "/?second")).await.expect("a stream");
        second.finish().await.expect("a stream");
        second.stop_sending(h3::error::Code::from(REQUEST_CANCELLED));
        // The server has read that, when it has answered what came after it.
        assert_eq!(client.get("/ping").await.text(), "pong");
        let mut third = client.open(client.request("GET", "/?third")).await.expect("a stream");
        third.finish().await.expect("a stream");
        drop(at_gate);
        assert_eq!(gate.next().name, "third");
    });
    server.stop();
}

#[test]
fn a_stop_lets_requests_end_and_refuses_new_ones() {
    let setup = localhost().file("index.php", format!("<?php {STOP_AT_GATE} echo 'done';"));
    let gate = Gate::of(&setup);
    let mut server = setup.start();
    block_on(async {
        let mut client = connect(&server).await;
        let idle = connect(&server).await;
        let mut stream = client.open(client.request("GET", "/?a")).await.expect("a stream");
        stream.finish().await.expect("a stream");
        let at_gate = gate.next();
        server.signal(Signal::TERM);
        assert_eq!(idle.closed().await, NO_ERROR);
        // The other one is told at the same time, and waits for its request.
        while client.send(client.request("GET", "/ping")).await.is_ok() {}
        assert!(client.quic.close_reason().is_none());
        drop(at_gate);
        let head = stream.recv_response().await.expect("a response");
        assert_eq!(receive(&mut stream, head).await.expect("a response").expect(200).text(), "done");
        drop(stream);
        assert_eq!(client.closed().await, NO_ERROR);
    });
    assert!(gate.poll().is_none(), "nothing else was begun");
    assert!(server.wait().success());
}

#[test]
fn a_response_that_breaks_off_is_seen_as_cut() {
    let script = "<?php echo str_repeat('x', 100000); flush(); posix_kill(getmypid(), SIGKILL);";
    let server = localhost().file("cut.php", script).start();
    block_on(async {
        let mut client = connect(&server).await;
        let error = client.send(client.request("GET", "/cut.php")).await.expect_err("it is not whole");
        let h3::error::StreamError::RemoteTerminate { code, .. } = &error else { panic!("{error}") };
        assert_eq!(code.value(), INTERNAL_ERROR);
        let error = client.send(client.request("GET", "/cut.php")).await;
        assert!(error.is_err(), "the connection goes on: {error:?}");
    });
}

#[test]
fn a_request_for_another_name_is_misdirected() {
    let site = "localhost, LOOPBACK {\n\trespond hello\n}";
    let server = setup("servers {\n\t\tstrict_sni_host on\n\t}", site).start();
    block_on(async {
        let mut client = connect(&server).await;
        assert_eq!(client.get("/").await.expect(200).text(), "hello");
        let other = http::Request::get(format!("https://{}/", server.tls_address().ip()));
        client.send(other).await.expect("a response").expect(421);
    });
    server.stop();
}

/// Clients name no address in their hello.
#[test]
fn a_site_is_found_by_the_address_that_the_client_came_to() {
    let server =
        setup("", "LOOPBACK, [::1] {\n\tbind LOOPBACK [::1]\n\trespond {http.request.local.host}\n}").start();
    let port = server.tls_address().port();
    block_on(async {
        let ip = server.tls_address().ip().to_string();
        for (name, address) in [(&*ip, &*ip), ("::1", "[::1]")] {
            let at = format!("{address}:{port}").parse().expect("an address");
            let mut client = Http3::connect(&client(&server), at, name).await.expect("a connection");
            let request = http::Request::get(format!("https://{address}:{port}/"));
            assert_eq!(client.send(request).await.expect("a response").expect(200).text(), name);
        }
    });
    server.stop();
}

#[test]
fn a_response_can_come_before_the_body_that_nobody_wants() {
    let server = localhost().start();
    block_on(async {
        let mut client = connect(&server).await;
        let mut stream = client.open(client.request("POST", "/ping")).await.expect("a stream");
        // More than all windows: the client is told that it may stop.
        while stream.send_data(vec![0; 1 << 20].into()).await.is_ok() {}
        let head = stream.recv_response().await.expect("a response");
        assert_eq!(receive(&mut stream, head).await.expect("a response").expect(200).text(), "pong");
        assert_eq!(client.get("/ping").await.text(), "pong", "the connection goes on");
    });
    server.stop();
}

#[test]
fn a_client_that_waits_is_asked_for_its_body() {
    let server = localhost().file("index.php", "<?php echo file_get_contents('php://input');").start();
    block_on(async {
        let mut client = connect(&server).await;
        let request =
            client.request("POST", "/").header("expect", "100-continue").header("content-length", "4");
        let mut stream = client.open(request).await.expect("a stream");
        assert_eq!(stream.recv_response().await.expect("a response").status(), 100);
        stream.send_data("body".into()).await.expect("room");
        stream.finish().await.expect("a stream");
        let head = stream.recv_response().await.expect("a response");
        assert_eq!(receive(&mut stream, head).await.expect("a response").expect(200).text(), "body");
    });
    server.stop();
}

#[test]
fn a_client_without_a_site_or_the_certificate_that_it_needs_is_refused() {
    let made = rcgen::generate_simple_self_signed(["client".to_owned()]).expect("a certificate");
    let site = "localhost {\n\ttls {\n\t\tclient_auth {\n\t\t\ttrusted_ca_cert_file DIRECTORY/ca.crt\n\t\t}\n\t}\n\trespond hello\n}";
    let server = setup("", site)
        .file("../ca.crt", made.cert.pem())
        .file("../ca.key", made.signing_key.serialize_pem())
        .start();
    let directory = server.directory();
    let root = directory.join("data/caddy/pki/authorities/local/root.crt");
    block_on(async {
        let refused = Http3::connect(&TlsClient::credulous(), server.tls_address(), "other.localhost").await;
        let Err(ConnectionError::ConnectionClosed(closed)) = refused else { panic!() };
        // `unrecognized_name`.
        assert_eq!(u64::from(closed.error_code), 0x170);
        // Its own handshake is through before the server has looked.
        let without = connect_quic(&client(&server), server.tls_address(), "localhost").await;
        let ended = match without {
            Ok((_endpoint, connection)) => connection.closed().await,
            Err(error) => error,
        };
        let ConnectionError::ConnectionClosed(closed) = ended else { panic!("{ended}") };
        // `certificate_required`.
        assert_eq!(u64::from(closed.error_code), 0x174);
        let certified =
            TlsClient::with_certificate(&root, &directory.join("ca.crt"), &directory.join("ca.key"));
        for _ in 0..2 {
            let mut client =
                Http3::connect(&certified, server.tls_address(), "localhost").await.expect("a connection");
            assert_eq!(client.get("/").await.expect(200).text(), "hello");
        }
    });
    server.stop();
}

#[test]
fn responses_by_tcp_say_where_http3_is() {
    let site = "localhost {\n\theader /silent -Alt-Svc\n\theader /own Alt-Svc clear\n\trespond hello\n}";
    let alt_svc = |server: &Server, path: &str| {
        let mut conn = client(server).connect(server.tls_address(), "localhost");
        conn.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        conn.response().expect(200).header("alt-svc").map(str::to_owned)
    };
    let server = setup("", site).start();
    let expected = format!("h3=\":{}\"; ma=2592000", server.tls_address().port());
    assert_eq!(alt_svc(&server, "/"), Some(expected));
    assert_eq!(alt_svc(&server, "/silent"), None);
    assert_eq!(alt_svc(&server, "/own").as_deref(), Some("clear"));
    let plain = server.request("GET", "/").header("Host", "localhost").send();
    assert_eq!(plain.header("alt-svc"), None, "without TLS there is none");
    server.stop();

    let server = setup("servers {\n\t\tprotocols h1 h2\n\t}", site).start();
    assert_eq!(alt_svc(&server, "/"), None);
    UdpSocket::bind(server.tls_address()).expect("the port is free");
    server.stop();
}
