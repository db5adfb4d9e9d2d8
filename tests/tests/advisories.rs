//! The holes that FrankenPHP and Caddy have mended in 2026, tried here as far as no other file does: docs/museum.md has a table.
#![forbid(unsafe_code)]

use http::Request;
use regent_tests::fastcgi::{END, STDOUT, record, responder};
use regent_tests::h2::Http2;
use regent_tests::h3::block_on;
use regent_tests::{Conn, Gate, STOP_AT_GATE, Server, Setup, TlsClient, Upstream, Visitor, heard, until};
use rustix::net::sockopt::set_socket_linger;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

// --- Which file a path names ---------------------------------------------------------------------------------------------

/// Says which script ran. The source does not have those words.
const NAMES_ITSELF: &str = "<?php echo 'RA', 'N ', $_SERVER['SCRIPT_NAME'];";

/// Paths of which a part looks like a script, and the script that each may run.
const PATHS: [(&str, Option<&str>); 10] = [
    ("/uploads/a.php", Some("/uploads/a.php")),
    ("/uploads/a.php/b.php", Some("/uploads/a.php")),
    ("/uploads/a.php.txt/b.php", None),
    ("/uploads/a.php.txt/b.php/c", None),
    ("/uploads/photos.php.php/avatar.jpg", None),
    ("/uploads/photos.php.php/avatar.jpg/x", None),
    ("/uploads/dir.php/avatar.jpg", None),
    ("/uploads/a.php%2etxt/b.php", None),
    // Letters that are a `p` to Unicode, and one that has more bytes when it is in lower case.
    ("/uploads/a.%EF%BD%90hp", None),
    ("/uploads/%C8%BA%C8%BA%C8%BA.txt/a.php.txt", None),
];

fn with_uploads(setup: Setup) -> Setup {
    [
        "index.php",
        "uploads/a.php",
        "uploads/photos.php",
        "uploads/photos.php.php/avatar.jpg",
        "uploads/dir.php/avatar.jpg",
        "uploads/a.\u{ff50}hp",
        "uploads/\u{23a}\u{23a}\u{23a}.txt/a.php.txt",
    ]
    .into_iter()
    .fold(setup, |setup, path| setup.file(path, NAMES_ITSELF))
}

#[track_caller]
fn assert_scripts(server: &Server, front: &str) {
    for (path, script) in PATHS {
        let ran = server.get(path).text();
        let expected = format!("RAN {}", script.unwrap_or(front));
        assert!(ran == expected || (script.is_none() && !ran.contains("RAN")), "{path}: {ran}");
    }
}

#[test]
fn no_part_of_a_name_makes_a_file_a_script() {
    let server = with_uploads(Setup::new()).start();
    assert_scripts(&server, "/index.php");
    server.stop();
    let worker =
        "<?php while (frankenphp_handle_request(function () { echo 'RAN ', $_SERVER['SCRIPT_NAME']; })) {}";
    let server = with_uploads(
        Setup::new()
            .site("php_server {\nworker {\nfile ROOT/front.php\nnum 1\n}\ntry_files {path} front.php\n}"),
    )
    .php_options("num_threads 3")
    .file("front.php", worker)
    .start();
    assert_scripts(&server, "/front.php");
    server.stop();
}

#[test]
fn no_part_of_a_name_makes_a_file_a_script_of_a_responder() {
    let upstream = responder(|asked| {
        let (name, file) = (asked.get("SCRIPT_NAME"), asked.get("SCRIPT_FILENAME"));
        assert!(file.ends_with(name) && file.ends_with(".php"), "{file}");
        format!("Content-Type: text/plain\r\n\r\nRAN {name}").into_bytes()
    });
    let site = format!("php_fastcgi {}\nfile_server", upstream.address());
    let server = with_uploads(Setup::new().site(&site).php_options("num_threads 1")).start();
    assert_scripts(&server, "/index.php");
    server.stop();
}

#[test]
fn a_redirect_to_a_directory_stays_on_the_host() {
    let upstream = responder(|_| b"Content-Type: text/plain\r\n\r\nran".to_vec());
    let fastcgi = format!("php_fastcgi {}\nfile_server", upstream.address());
    for site in ["php_server", "file_server", fastcgi.as_str()] {
        let server = Setup::new()
            .site(site)
            .php_options("num_threads 1")
            .file("blog/index.php", "<?php")
            .file("blog/index.html", "blog")
            .start();
        for target in [
            "//evil.test/..%2fblog",
            "//evil.test/..%2Fblog",
            "///evil.test/..%2fblog",
            "/%2fevil.test/..%2fblog",
            "/%5cevil.test/..%2fblog",
            "/\\evil.test/..%2fblog",
            "/%09/evil.test/..%2fblog",
            "http://evil.test//evil.test/..%2fblog",
        ] {
            let answer = server.raw(format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
            let location = answer
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("location: ").map(str::to_owned));
            let stays = |to: &String| to.starts_with('/') && !to[1..].starts_with(['/', '\\', '%']);
            assert!(location.as_ref().is_none_or(stays), "{site} {target}: {answer}");
        }
        server.get("/blog").expect(308);
        server.stop();
    }
}

#[test]
fn a_matcher_and_what_stands_behind_it_see_one_path() {
    let server = Setup::new()
        .site("@public path /public/*\nhandle @public {\nfile_server\n}\nhandle {\nrespond 403\n}")
        .php_options("num_threads 1")
        .file("public/page.txt", "public")
        .file("admin/page.txt", "SECRET")
        .start();
    for target in [
        "/public/..%2fadmin/page.txt",
        "/public/%2e%2e/admin/page.txt",
        "/public/%2e%2e%2fadmin%2fpage.txt",
        "/public/..%5cadmin/page.txt",
        "/public//../../admin/page.txt",
        "/public/.%00./admin/page.txt",
    ] {
        let answer = server.raw(format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        assert!(!answer.contains("SECRET"), "{target}: {answer}");
    }
    assert_eq!(server.get("/public/page.txt").expect(200).text(), "public");
    server.stop();
}

#[test]
fn the_host_of_a_dot_reached_the_files_of_all_hosts() {
    for site in [
        "root * ROOT/{host}\n\tfile_server",
        "root ./www/{host}\n\tfile_server",
        "file_server {\n\t\troot ROOT/{host}\n\t}",
        "php_server {\n\t\troot ROOT/{http.request.host.labels.1}.{http.request.host.labels.0}\n\t}",
        "root * ROOT/{hostport}\n\tphp_server",
    ] {
        let text = format!("{{\n\tadmin off\n}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\t{site}\n}}\n");
        let server = Setup::new()
            .caddyfile(&text)
            .file("a.test/page.txt", "of a")
            .file("b.test/page.txt", "SECRET")
            .start();
        let ask = |host: &str, path: &str| {
            server.raw(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
        };
        assert!(ask("a.test", "/page.txt").ends_with("of a"), "{site}");
        for host in [".", "..", "", ":80", "./", "%2e", "a.test/.."] {
            let answer = ask(host, "/b.test/page.txt");
            assert!(!answer.contains("SECRET"), "{site} {host:?}: {answer}");
        }
        let answer = server.raw("GET /b.test/page.txt HTTP/1.0\r\n\r\n");
        assert!(!answer.contains("SECRET"), "{site}: {answer}");
        server.stop();
    }
}

// --- Who a request is from and for ---------------------------------------------------------------------------------------

const TWO_SITES: &str = "{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n}\n\
                         localhost, other.localhost {\n\troot * ROOT\n\tphp_server\n}\n";

#[test]
fn a_host_beside_another_authority_reaches_no_script() {
    let server = Setup::new()
        .caddyfile(TWO_SITES)
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .file("index.php", "<?php echo $_SERVER['HTTP_HOST'], ' ', $_SERVER['SERVER_NAME'];")
        .start();
    let port = server.tls_address().port();
    let own = format!("localhost:{port}");
    let other = format!("other.localhost:{port}");
    block_on(async {
        let client = TlsClient::credulous();
        let client = Http2::connect(&client, server.tls_address(), "localhost").await.expect("a connection");
        for (host, status) in [(own.as_str(), 200), (other.as_str(), 400), ("evil.test", 400)] {
            let request = Request::builder().uri(format!("https://{own}/")).header("host", host);
            let answer = client.send(request).await.expect("an answer").expect(status);
            assert!(status != 200 || answer.text() == format!("{own} localhost"), "{}", answer.text());
        }
    });
    server.stop();
}

/// Names that the server has not seen before, also those that no array of known names holds.
fn unusual_fields(number: usize) -> String {
    let names =
        [format!("X-Never-Seen-{number}"), "!#$%&'*+^`|~-".into(), format!("X{}", "y".repeat(2000 + number))];
    names.map(|name| format!("{name}: {number}\r\n")).concat()
}

/// A reset, and not an end: the server has the request, and learns that nobody waits for it.
fn reset(conn: &Conn) {
    set_socket_linger(conn.get_ref(), Some(Duration::ZERO)).expect("a socket");
}

/// Others that come before it had started when their clients left.
fn come(gate: &Gate, number: usize) -> Visitor {
    let name = number.to_string();
    until("the request comes to the gate", || gate.poll().filter(|visitor| visitor.name == name))
}

fn reset_while_others_wait(options: &str, script: &str) {
    let setup = Setup::new().php_options(options).file("index.php", script);
    let gate = Gate::of(&setup);
    let server = setup.start();
    let engine = server.engine();
    let ask = |number: usize| {
        let mut conn = server.connect();
        let fields = unusual_fields(number);
        conn.send(format!("GET /?{number} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
        conn.wait_until_read();
        conn
    };
    for round in 0..5 {
        let mut held = ask(round * 100);
        let visitor = come(&gate, round * 100);
        for number in 1..20 {
            reset(&ask(round * 100 + number));
        }
        let running = ask(round * 100 + 20);
        drop(visitor);
        held.response().expect(200);
        let visitor = come(&gate, round * 100 + 20);
        reset(&running);
        drop(running);
        drop(visitor);
    }
    let mut last = ask(999);
    drop(come(&gate, 999));
    assert_eq!(last.response().expect(200).text(), "999");
    assert_eq!(server.engine(), engine, "nothing has died");
    server.stop();
}

#[test]
fn clients_that_reset_with_names_never_seen_cost_nobody_anything() {
    let script =
        format!("<?php {STOP_AT_GATE} echo $_SERVER['HTTP_X_NEVER_SEEN_' . $_SERVER['QUERY_STRING']];");
    reset_while_others_wait("num_threads 1", &script);
    let worker = "worker {\nfile ROOT/index.php\nnum 1\n}";
    let script = format!(
        "<?php while (frankenphp_handle_request(function () {{ {STOP_AT_GATE} echo $_SERVER['HTTP_X_NEVER_SEEN_' . $_SERVER['QUERY_STRING']]; }})) {{}}"
    );
    reset_while_others_wait(&format!("num_threads 2\n{worker}"), &script);
}

// --- What is behind a connection that is kept ----------------------------------------------------------------------------

/// An old php-fpm takes what is left of a body on its connection for the next request (CVE-2026-129289).
#[test]
fn a_body_that_a_responder_leaves_unread_is_nobodys_request() {
    let (sender, ends) = mpsc::channel();
    let upstream = Upstream::talking(move |mut stream: TcpStream, _| {
        let mut begin = [0; 16];
        if stream.read_exact(&mut begin).is_err() {
            return;
        }
        let answer =
            [record(STDOUT, b"Content-Type: text/plain\r\n\r\nearly"), record(END, &[0; 8])].concat();
        let _ = stream.write_all(&answer);
        let keeps = begin[10] & 1;
        // An old php-fpm would go on with the next request here.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        let _ = sender.send(keeps);
    });
    let site = format!("php_fastcgi {}\nfile_server", upstream.address());
    let server = Setup::new().site(&site).php_options("num_threads 1").file("index.php", "").start();
    // Records of a second request.
    let forged =
        [&[1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0][..], &record(4, b""), &record(5, b"")].concat();
    for requests in 1..=5 {
        let answer = server.post("/index.php", "multipart/form-data; boundary=limit", forged.repeat(1000));
        assert_eq!(answer.expect(200).text(), "early");
        let keeps = heard(&ends, "the connection has ended");
        assert_eq!((keeps, upstream.connections()), (0, requests), "each has a connection of its own");
    }
    server.stop();
}

// --- What goes on when all is said ---------------------------------------------------------------------------------------

/// A proxy that still reads a body when its handler has returned met a time limit of a request that was gone (Caddy 2.11.6).
#[test]
fn an_upload_that_goes_on_after_its_answer_costs_no_other_request() {
    let upstream = Upstream::talking(|mut stream: TcpStream, _| {
        if stream.read_exact(&mut [0; 64]).is_ok() {
            let early = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly";
            let _ = stream.write_all(early);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    let site = format!("respond /ping pong\nreverse_proxy {}", upstream.address());
    let server = Setup::new().global_options("servers {\nprotocols h1 h2c\n}").site(&site).start();
    // Ten times what fits in the windows of a stream and of the connection.
    let body = vec![0; 10 << 20];
    block_on(async {
        let client = Http2::connect_plain(server.address()).await.expect("a connection");
        for _ in 0..20 {
            let (early, other) = tokio::join!(client.ask("/", Some(&body)), client.ask("/ping", None));
            assert_eq!(early.expect("an answer").expect(403).text(), "early");
            assert_eq!(other.expect("an answer").expect(200).text(), "pong");
        }
    });
    assert_eq!(server.get("/ping").text(), "pong");
    server.stop();
}
