//! `php_fastcgi`: requests that a php-fpm answers, or what says it is one.
#![forbid(unsafe_code)]

use regent_tests::fastcgi::{END, Fpm, STDERR, STDOUT, receive, record, responder};
use regent_tests::{Server, Setup, Upstream, keep_asking, own_address, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;

fn site(directives: &str) -> Setup {
    Setup::new()
        .site(&format!("{directives}\nfile_server"))
        .php_options("num_threads 1")
        .file("index.php", "")
}

fn proxy_to(upstream: &Upstream) -> Server {
    site(&format!("php_fastcgi {}", upstream.address())).start()
}

/// A responder that tells what it was asked, as lines.
fn mirror() -> Upstream {
    responder(|asked| {
        let lines = asked.variables.iter().map(|(name, value)| format!("{name}={value}\n"));
        format!("Content-Type: text/plain\r\n\r\n{}", lines.collect::<String>()).into_bytes()
    })
}

/// The value of a variable that [`mirror`] has told.
fn told(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
}

#[test]
fn a_responder_is_told_what_cgi_tells() {
    let upstream = mirror();
    let server =
        site(&format!("php_fastcgi {} {{\nenv STAGE test\nenv SERVER_SOFTWARE mine\n}}", upstream.address()))
            .file("dir/x.php", "")
            .start();
    let request =
        server.request("GET", "/dir/x.php/a%20b?q=1&r").header("X-Own", "1").header("Proxy", "evil");
    let response = request.header("X_Own", "2").header("Connection", "x-own").send().expect(200);
    let text = response.text();
    let root = server.root().display().to_string();
    for (name, value) in [
        ("SCRIPT_FILENAME", format!("{root}/dir/x.php")),
        ("DOCUMENT_ROOT", root.clone()),
        ("SCRIPT_NAME", "/dir/x.php".into()),
        ("PATH_INFO", "/a b".into()),
        ("PATH_TRANSLATED", format!("{root}/a b")),
        ("REQUEST_URI", "/dir/x.php/a%20b?q=1&r".into()),
        ("QUERY_STRING", "q=1&r".into()),
        ("REQUEST_METHOD", "GET".into()),
        ("SERVER_PROTOCOL", "HTTP/1.1".into()),
        ("SERVER_SOFTWARE", "mine".into()),
        ("SERVER_NAME", server.address().ip().to_string()),
        ("SERVER_PORT", server.address().port().to_string()),
        ("REMOTE_ADDR", "127.0.0.1".into()),
        ("HTTP_HOST", server.address().to_string()),
        ("HTTP_X_FORWARDED_FOR", "127.0.0.1".into()),
        ("CONTENT_LENGTH", String::new()),
        ("STAGE", "test".into()),
    ] {
        assert_eq!(told(&text, name), Some(value), "{name} in\n{text}");
    }
    for name in ["HTTP_PROXY", "HTTPS", "HTTP_X_OWN", "HTTP_CONNECTION", "HTTP_X__OWN"] {
        assert_eq!(told(&text, name), None, "{name}");
    }
    server.stop();
}

#[test]
fn a_responder_was_sent_to_a_release_that_was_deleted_long_ago() {
    let upstream = mirror();
    let server = site(&format!(
        "php_fastcgi {} {{\nroot DIRECTORY/current\nresolve_root_symlink\n}}",
        upstream.address()
    ))
    .start();
    let directory = server.directory().canonicalize().unwrap();
    for release in ["1", "2"] {
        std::fs::create_dir(directory.join(release)).unwrap();
        std::fs::write(directory.join(release).join("index.php"), "").unwrap();
        let link = directory.join("current");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(release, &link).unwrap();
        let text = server.get("/index.php").expect(200).text();
        let script = directory.join(release).join("index.php").display().to_string();
        assert_eq!(told(&text, "SCRIPT_FILENAME"), Some(script), "{text}");
        std::fs::remove_dir_all(directory.join(release)).unwrap();
    }
    server.stop();
}

#[test]
fn a_responder_was_told_an_ipv6_address_without_brackets() {
    let upstream = mirror();
    let server = site(&format!("php_fastcgi {}", upstream.address())).file("x.php", "").start();
    let text = server.request("GET", "/x.php").header("Host", "[::1]:81").send().expect(200).text();
    assert_eq!(told(&text, "SERVER_NAME").as_deref(), Some("[::1]"), "{text}");
    server.stop();
}

#[test]
fn files_directories_and_the_front_controller_are_found_as_in_caddy() {
    let upstream = mirror();
    let server = site(&format!("php_fastcgi {}", upstream.address()))
        .file("dir/index.php", "")
        .file("style.css", "body {}")
        .file("upload/evil.jpg", "<?php")
        .start();
    assert_eq!(server.get("/style.css").expect(200).text(), "body {}");
    let redirect = server.get("/dir?x=1").expect(308);
    assert_eq!(redirect.header("location"), Some("/dir/?x=1"));
    let script = |target: &str| {
        let text = server.get(target).expect(200).text();
        (told(&text, "SCRIPT_NAME").unwrap(), told(&text, "PATH_INFO"))
    };
    assert_eq!(script("/dir/"), ("/dir/index.php".into(), None));
    assert_eq!(script("/"), ("/index.php".into(), None));
    assert_eq!(script("/route/of/app?x"), ("/index.php".into(), None));
    assert_eq!(script("/index.php/rest"), ("/index.php".into(), Some("/rest".into())));
    assert_eq!(script("/missing.php"), ("/index.php".into(), None));
    // What would make a php-fpm with `cgi.fix_pathinfo` run an upload.
    assert_eq!(script("/upload/evil.jpg/x.php"), ("/index.php".into(), None));
    assert_eq!(script("/../../../etc/passwd"), ("/index.php".into(), None));
    server.get("/index.php%00.jpg").expect(400);
    server.stop();
}

/// CVE-2019-11043: php-fpm took a PATH_INFO that is there and empty for a pointer into the script's name.
#[test]
fn a_path_info_that_ends_in_a_slash_stays_as_it_came() {
    let upstream = mirror();
    let address = upstream.address();
    let written_out = format!(
        "@files file {{\ntry_files {{path}} {{path}}/index.php index.php\nsplit_path .php\n}}\nrewrite @files {{file_match.relative}}\n\
         @php path *.php\nreverse_proxy @php {address} {{\ntransport fastcgi {{\nsplit .php\n}}\n}}"
    );
    for directives in [format!("php_fastcgi {address}"), written_out] {
        let server = site(&directives).start();
        for (path, info) in [
            ("/index.php/2024/01/post/", Some("/2024/01/post/")),
            ("/index.php/2024/01/post", Some("/2024/01/post")),
            ("/index.php/", Some("/")),
            ("/2024/01/post/", None),
        ] {
            let text = server.get(path).expect(200).text();
            let told = |name| told(&text, name).filter(|value| !value.is_empty());
            assert_eq!(told("SCRIPT_NAME").as_deref(), Some("/index.php"), "{path}");
            assert_eq!(told("PATH_INFO").as_deref(), info, "{path} of {directives}");
        }
        server.stop();
    }
}

#[test]
fn no_line_end_in_a_path_makes_an_empty_path_info() {
    let upstream = mirror();
    let server = proxy_to(&upstream);
    for target in [
        "/index.php/%0a",
        "/index.php/PHP%0Ais_the_shittiest_lang.php?QQQQ",
        "/index.php%0a/x",
        "/index.php/",
    ] {
        let text = server.get(target).expect(200).text();
        assert_ne!(told(&text, "PATH_INFO"), Some(String::new()), "{target}");
        assert_eq!(told(&text, "SCRIPT_NAME"), Some("/index.php".into()), "{target}");
    }
    server.stop();
}

#[test]
fn bodies_come_whole_with_their_length_however_they_are_sent() {
    let upstream = responder(|asked| {
        let sum: u64 = asked.body.iter().map(|byte| u64::from(*byte)).sum();
        format!("\r\n{} {} {sum}", asked.get("CONTENT_LENGTH"), asked.body.len()).into_bytes()
    });
    let server = proxy_to(&upstream);
    let body: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
    let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
    let whole = server.post("/index.php", "text/plain", body.clone()).expect(200).text();
    assert_eq!(whole, format!("{} {} {sum}", body.len(), body.len()));
    let mut chunked = b"POST /index.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for part in body.chunks(70_000) {
        chunked.extend(format!("{:x}\r\n", part.len()).into_bytes());
        chunked.extend_from_slice(part);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let mut conn = server.connect();
    conn.send(chunked);
    assert_eq!(conn.response().expect(200).text(), whole);
    assert_eq!(server.post("/index.php", "text/plain", "").expect(200).text(), "0 0 0");
    server.stop();
}

#[test]
fn a_body_that_breaks_off_reaches_nobody() {
    let upstream = mirror();
    let server = proxy_to(&upstream);
    let answer = server.raw_cut_off("POST /index.php HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(upstream.connections(), 0);
    server.stop();
}

#[test]
fn heads_are_passed_on_and_lengths_are_kept() {
    let upstream = responder(|asked| {
        match asked.get("QUERY_STRING") {
        "404" => b"Status: 404 Nothing here\r\nX-A: 1\r\nX-A: 2\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nno".to_vec(),
        "location" => b"Location: /there\r\n\r\n".to_vec(),
        "long" => b"Content-Length: 2\r\n\r\nokSMUGGLED".to_vec(),
        "head" => b"Content-Length: 5\r\n\r\n".to_vec(),
        "304" => b"Status: 304 Not Modified\r\nETag: \"a\"\r\n\r\nbody that must not be".to_vec(),
        _ => b"Content-Type: text/plain\n\nline ends alone".to_vec(),
    }
    });
    let server = proxy_to(&upstream);
    let response = server.get("/index.php?404").expect(404);
    assert_eq!((response.text().as_str(), response.header_all("x-a")), ("no", vec!["1", "2"]));
    assert_eq!(response.header("location"), None);
    assert_eq!(server.get("/index.php?location").expect(302).header("location"), Some("/there"));
    assert_eq!(server.get("/index.php").expect(200).text(), "line ends alone");
    let mut conn = server.connect();
    for (target, body) in [("long", "ok"), ("404", "no"), ("304", ""), ("", "line ends alone")] {
        conn.send(format!("GET /index.php?{target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(conn.response().text(), body, "{target}");
    }
    let head = server.request("HEAD", "/index.php?head").send().expect(200);
    assert_eq!(head.header("content-length"), Some("5"));
    server.stop();
}

/// What a responder sends for a request, as bytes.
fn raw(bytes: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Upstream {
    Upstream::talking(move |mut stream, _| {
        if receive(&mut stream).is_some() {
            let _ = stream.write_all(&bytes());
        }
    })
}

#[test]
fn what_is_no_response_is_502() {
    let too_large = || {
        let lines = record(STDOUT, &b"X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(1000));
        lines.repeat(4)
    };
    let overloaded = || record(END, &[0, 0, 0, 0, 2, 0, 0, 0]);
    let hostile: [(&str, Upstream); 8] = [
        ("nothing", raw(Vec::new)),
        ("http", raw(|| b"HTTP/1.1 200 OK\r\n\r\nhello".to_vec())),
        ("an end at once", raw(|| record(END, &[0; 8]))),
        ("a head without an end", raw(|| [record(STDOUT, b"X-A: 1\r\n"), record(END, &[0; 8])].concat())),
        ("a head that is too large", raw(too_large)),
        ("no room", raw(overloaded)),
        ("another protocol", raw(|| record(STDOUT, b"Status: 101 Switching\r\nUpgrade: websocket\r\n\r\n"))),
        ("errors only", raw(|| [record(STDERR, &[b'e'; 60_000]), record(END, &[0; 8])].concat())),
    ];
    for (what, upstream) in &hostile {
        let server = proxy_to(upstream);
        assert_eq!(server.get("/index.php").status, 502, "{what}");
        server.stop();
    }
    let server = site(&format!("php_fastcgi {}", own_address())).start();
    server.get("/index.php").expect(502);
    server.stop();
}

#[test]
fn a_response_that_breaks_off_is_not_taken_for_whole() {
    let upstream = raw(|| record(STDOUT, b"Content-Type: text/plain\r\n\r\nhalf"));
    let server = proxy_to(&upstream);
    let text = server.raw("GET /index.php HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(text.contains("half") && !text.contains("\r\n0\r\n"), "{text}");
    server.stop();
}

#[test]
fn a_client_that_leaves_ends_the_connection_to_the_responder() {
    let (sender, ends) = mpsc::channel();
    let upstream = Upstream::talking(move |mut stream, _| {
        if receive(&mut stream).is_none() {
            return;
        }
        let _ = stream.write_all(&record(STDOUT, b"Content-Type: text/plain\r\n\r\nfirst"));
        let _ = sender.send(stream.read(&mut [0; 1]).unwrap_or(0));
    });
    let server = proxy_to(&upstream);
    let mut conn = server.ask("/index.php");
    conn.read_until("first");
    drop(conn);
    assert_eq!(ends.recv_timeout(regent_tests::DEADLINE), Ok(0), "the connection has ended");
    server.stop();
}

#[test]
fn a_responder_that_answers_before_it_reads_is_no_deadlock() {
    const LENGTH: usize = 8_000_000;
    let upstream = Upstream::talking(|mut stream: TcpStream, _| {
        let head = format!("Content-Length: {LENGTH}\r\n\r\n");
        let mut sent = record(STDOUT, head.as_bytes());
        sent.extend(record(STDOUT, &[b'x'; 64_000]).repeat(LENGTH / 64_000));
        if stream.write_all(&sent).is_ok() && receive(&mut stream).is_some() {
            let _ = stream.write_all(&record(END, &[0; 8]));
        }
    });
    let server = proxy_to(&upstream);
    let response = server.post("/index.php", "text/plain", vec![b'y'; LENGTH]).expect(200);
    assert_eq!(response.body.len(), LENGTH);
    server.stop();
}

#[test]
fn errors_of_scripts_go_to_the_log_if_that_is_asked_for() {
    let upstream = raw(|| {
        let warning = record(STDERR, b"PHP Warning:  something is odd\n");
        [warning, record(STDOUT, b"\r\nfine"), record(END, &[0; 8])].concat()
    });
    let text = format!("php_fastcgi {} {{\ncapture_stderr\n}}", upstream.address());
    let server = site(&text).start();
    assert_eq!(server.get("/index.php").expect(200).text(), "fine");
    server.wait_for_log("PHP Warning:  something is odd");
    server.stop();
}

#[test]
fn a_request_goes_to_another_server_when_one_is_down() {
    let upstream = mirror();
    let text =
        format!("php_fastcgi {} {} {{\nlb_policy first\nlb_retries 1\n}}", own_address(), upstream.address());
    let server = site(&text).start();
    server.get("/index.php").expect(200);
    server.post("/index.php", "text/plain", "body").expect(200);
    assert_eq!(upstream.connections(), 2);
    server.stop();
}

#[test]
fn a_silent_responder_is_given_up_in_time() {
    let upstream = Upstream::talking(|mut stream, _| {
        let _ = receive(&mut stream);
        let _ = stream.read(&mut [0; 1]);
    });
    let server = site(&format!("php_fastcgi {} {{\nread_timeout 300ms\n}}", upstream.address())).start();
    server.get("/index.php").expect(504);
    server.stop();
}

/// The real thing, where the distribution's package is installed.
#[test]
fn a_php_fpm_serves_a_site() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(fpm) = Fpm::start(directory.path()) else {
        eprintln!("php-fpm is not installed: this test has shown nothing");
        return;
    };
    let server = site(&format!("php_fastcgi unix/{} {{\ncapture_stderr\n}}", fpm.socket().display()))
        .file("index.php", "<?php echo 'front ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['PHP_SELF'];")
        .file("info.php", "<?php echo $_SERVER['PATH_INFO'] ?? 'none', ' ', php_sapi_name();")
        .file(
            "post.php",
            "<?php error_log('noted'); http_response_code(201); header('X-Script: yes');
             echo array_sum(array_map('strlen', $_POST)), ' ', $_FILES['f']['size'] ?? strlen(file_get_contents('php://input'));",
        )
        .file("who.php", "<?php echo $_SERVER['HTTP_REMOTE_USER'] ?? 'nobody';")
        .file("large.php", "<?php for ($i = 0; $i < 300; $i++) { echo str_repeat('x', 10000); flush(); }")
        .file("app.txt", "static")
        .start();
    assert_eq!(server.get("/some/route?x=1").expect(200).text(), "front /some/route?x=1 /index.php");
    assert_eq!(server.get("/app.txt").expect(200).text(), "static");
    assert_eq!(server.get("/info.php/a/b").expect(200).text(), "/a/b fpm-fcgi");
    assert_eq!(server.get("/info.php").expect(200).text(), "none fpm-fcgi");
    // It takes both for the first one's name.
    for name in ["Remote.User", "Remote_User"] {
        assert_eq!(
            server.request("GET", "/who.php").header(name, "root").send().expect(200).text(),
            "nobody"
        );
    }
    let posted = server.post("/post.php", "application/x-www-form-urlencoded", "a=12&b=345").expect(201);
    assert_eq!((posted.text().as_str(), posted.header("x-script")), ("5 10", Some("yes")));
    let body = vec![b'z'; 3_000_000];
    assert_eq!(server.post("/post.php", "application/octet-stream", body).expect(201).text(), "0 3000000");
    assert_eq!(server.get("/large.php").expect(200).body.len(), 3_000_000);
    assert_eq!(server.request("HEAD", "/large.php").send().expect(200).body.len(), 0);
    server.wait_for_log("noted");
    until("both processes are free again", || (server.get("/info.php").status == 200).then_some(()));
    server.stop();
}

/// As docs/from-php-fpm.md has it.
#[test]
fn a_site_moves_from_php_fpm_and_back_under_load_without_a_lost_request() {
    let upstream = responder(|_| b"Content-Type: text/plain\r\n\r\nfpm".to_vec());
    let caddyfile = |site: &str| {
        format!(
            "{{\n\tadmin ADMIN\n\tfrankenphp {{\n\t\tnum_threads 2\n\t\tmax_wait_time off\n\t}}\n}}\n\
             http://:PORT {{\n\tbind LOOPBACK\n\troot * ROOT\n\tencode zstd br gzip\n\t{site}\n}}\n"
        )
    };
    let of_fpm = caddyfile(&format!("php_fastcgi {}\n\tfile_server", upstream.address()));
    let own = caddyfile("php_server");
    let server = Setup::new().file("index.php", "<?php echo 'own';").caddyfile(&of_fpm).start();
    let answers = keep_asking(&server, 4, "/", || {
        for (text, expected) in [(&own, "own"), (&of_fpm, "fpm"), (&own, "own")] {
            server.write_caddyfile(text);
            server.admin().request("POST", "/regent/reload").send().expect(200);
            assert_eq!(server.get("/").expect(200).text(), expected);
        }
    });
    for answer in answers {
        assert!(["own", "fpm"].contains(&answer.expect(200).text().as_str()));
    }
    server.stop();
}
