//! Bodies far larger than memory should be, and clients slower than threads should wait.
//!
//! The gigabyte tests are the long tier: `make test-long`.
#![forbid(unsafe_code)]

use bytes::{Buf, Bytes};
use regent_tests::h3::{self, Http3};
use regent_tests::{Conn, Server, Setup, TlsClient};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const GIB: u64 = 1 << 30;
/// What the server and the engine may each hold while a gigabyte goes through them.
const MEMORY_LIMIT: u64 = 150 << 20;

/// Runs `transfer` while the memory of server and engine is watched, and checks that neither grew past the limit.
fn with_memory_watched(server: &Server, transfer: impl FnOnce()) {
    let done = AtomicBool::new(false);
    let (server_peak, engine_peak) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut peak = (0, 0);
            while !done.load(Ordering::Relaxed) {
                let (server, engine) = server.memory();
                // Pages of the shared memory are counted by their share, and those of a program's file not at all.
                peak = (peak.0.max(server.pss), peak.1.max(engine.pss));
                regent_tests::pause(Duration::from_millis(20));
            }
            peak
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(transfer));
        done.store(true, Ordering::Relaxed);
        let peak = watcher.join().expect("the watcher does not panic");
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
        peak
    });
    println!("peak memory: server {} MiB, engine {} MiB", server_peak >> 20, engine_peak >> 20);
    assert!(server_peak < MEMORY_LIMIT, "the server held {} MiB", server_peak >> 20);
    assert!(engine_peak < MEMORY_LIMIT, "the engine held {} MiB", engine_peak >> 20);
}

/// Sends `total` bytes, block by block.
fn send_bytes(conn: &mut Conn, total: u64) {
    let block = vec![b'x'; 1 << 20];
    for _ in 0..total / block.len() as u64 {
        conn.send(&block);
    }
}

/// Reads `total` bytes of a body and checks that each is an `x`.
fn read_bytes(conn: &mut Conn, total: u64) {
    let mut buffer = vec![0; 1 << 20];
    let mut left = total;
    while left > 0 {
        let room = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = conn.read_some(&mut buffer[..room]).expect("the body goes on");
        assert!(count > 0, "the body ends {left} bytes early");
        assert!(buffer[..count].iter().all(|byte| *byte == b'x'));
        left -= count as u64;
    }
}

#[test]
#[ignore = "long: moves a gigabyte"]
fn a_gigabyte_goes_up_in_little_memory() {
    let script = "<?php $in = fopen('php://input', 'r'); $n = 0; while (!feof($in)) { $n += strlen(fread($in, 65536)); } echo $n;";
    let server = Setup::new()
        .php_options("num_threads 2\n\t\tphp_ini max_execution_time 0")
        .file("index.php", script)
        .start();
    with_memory_watched(&server, || {
        let mut conn = server.connect();
        conn.send(format!(
            "PUT / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: {GIB}\r\n\r\n"
        ));
        send_bytes(&mut conn, GIB);
        assert_eq!(conn.response().expect(200).text(), GIB.to_string());
    });
    server.stop();
}

#[test]
#[ignore = "long: moves a gigabyte"]
fn a_gigabyte_form_upload_goes_to_a_file() {
    let script = "<?php $f = $_FILES['doc']; echo $f['error'], ' ', filesize($f['tmp_name']);";
    let server = Setup::new()
        .php_options("num_threads 2\n\t\tphp_ini post_max_size 2G\n\t\tphp_ini upload_max_filesize 2G\n\t\tphp_ini max_execution_time 0")
        .file("index.php", script)
        .start();
    let start = "--B\r\nContent-Disposition: form-data; name=\"doc\"; filename=\"a\"\r\n\r\n";
    let end = "\r\n--B--\r\n";
    with_memory_watched(&server, || {
        let mut conn = server.connect();
        let length = GIB + (start.len() + end.len()) as u64;
        conn.send(format!(
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: {length}\r\n\r\n{start}"
        ));
        send_bytes(&mut conn, GIB);
        conn.send(end);
        assert_eq!(conn.response().expect(200).text(), format!("0 {GIB}"));
    });
    server.stop();
}

#[test]
#[ignore = "long: moves a gigabyte"]
fn a_gigabyte_comes_down_in_little_memory() {
    let script = "<?php header('Content-Length: ' . (1 << 30)); $block = str_repeat('x', 65536); \
                  while (ob_get_level()) { ob_end_flush(); } for ($i = 0; $i < 16384; $i++) { echo $block; }";
    let server = Setup::new()
        .php_options("num_threads 2\n\t\tphp_ini max_execution_time 0")
        .file("index.php", script)
        .start();
    with_memory_watched(&server, || {
        let mut conn = server.connect();
        conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        let head = conn.head().expect("a response").expect("a response, not the end");
        assert_eq!(head.status, 200);
        read_bytes(&mut conn, GIB);
    });
    server.stop();
}

#[test]
#[ignore = "long: moves a gigabyte"]
fn a_gigabyte_file_comes_down_in_little_memory() {
    let server = Setup::new().file("index.php", "<?php echo 'ok';").start();
    let file = std::fs::File::create(server.root().join("large.bin")).expect("the directory is ours");
    file.set_len(GIB).expect("a sparse file");
    with_memory_watched(&server, || {
        let mut conn = server.connect();
        conn.send("GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n");
        let head = conn.head().expect("a response").expect("a response, not the end");
        assert_eq!(head.header("content-length"), Some(GIB.to_string().as_str()));
        let mut buffer = vec![0; 1 << 20];
        let mut left = GIB;
        while left > 0 {
            let count = conn.read_some(&mut buffer).expect("the body goes on");
            assert!(count > 0, "the body ends {left} bytes early");
            left -= count as u64;
        }
    });
    server.stop();
}

#[test]
fn a_slow_reader_holds_no_thread_after_the_script_has_ended() {
    let server = Setup::new()
        .php_options("num_threads 1")
        .file("large.php", "<?php for ($i = 0; $i < 512; $i++) { echo str_repeat('x', 65536); }")
        .file("index.php", "<?php echo 'quick';")
        .start();
    let mut slow = server.connect();
    slow.send("GET /large.php HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut byte = [0];
    assert_eq!(slow.read_some(&mut byte).expect("the answer begins"), 1);
    // 32 MiB wait for a client that reads no further, far more than the socket's buffers: the only thread is free.
    assert_eq!(server.get("/").expect(200).text(), "quick");
    let mut rest = 1;
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = slow.read_some(&mut buffer) {
        rest += count;
    }
    assert!(rest > 512 * 65536, "the slow client gets all of it in the end: {rest} bytes");
    server.stop();
}

#[test]
fn slow_writers_hold_no_other_request_up() {
    let server = Setup::new()
        .php_options("num_threads 2")
        .file("index.php", "<?php echo strlen(file_get_contents('php://input'));")
        .start();
    // Ten uploads that stand still, on two threads.
    let mut slow: Vec<_> = (0..10).map(|_| server.connect()).collect();
    for conn in &mut slow {
        conn.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc");
    }
    assert_eq!(server.get("/").expect(200).text(), "0");
    for conn in &mut slow {
        conn.send("defghij");
        assert_eq!(conn.response().expect(200).text(), "10");
    }
    server.stop();
}

/// With HTTP/2 and HTTP/3 on, and a certificate of the local CA.
fn start_secured(script: &str) -> (Server, PathBuf) {
    let text = "{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\tfrankenphp {\n\t\tnum_threads 2\n\t\t\
                php_ini max_execution_time 0\n\t}\n}\nlocalhost {\n\troot * ROOT\n\tphp_server\n}\n";
    let setup = Setup::new().caddyfile(text).env("XDG_DATA_HOME", "DIRECTORY/data");
    let server = setup.file("index.php", script).start();
    let root = server.directory().join("data/caddy/pki/authorities/local/root.crt");
    (server, root)
}

const COUNTS: &str = "<?php $in = fopen('php://input', 'r'); $n = 0; while (!feof($in)) { $n += strlen(fread($in, 65536)); } echo $n;";

fn gives(total: u64) -> String {
    format!("<?php $block = str_repeat('x', 1 << 20); for ($i = 0; $i < {}; $i++) echo $block;", total >> 20)
}

/// An HTTP/2 client of another making.
fn curl(server: &Server, root: &Path, arguments: &[&str]) -> Child {
    let mut curl = Command::new("curl");
    let (ip, port) = (server.tls_address().ip(), server.tls_address().port());
    curl.args(["--silent", "--show-error", "--fail", "--http2", "--cacert"]).arg(root).args(arguments);
    curl.args(["--resolve", &format!("localhost:{port}:{ip}"), &format!("https://localhost:{port}/")]);
    curl.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("curl is installed")
}

#[test]
#[ignore = "long: moves a gigabyte"]
fn a_gigabyte_goes_up_over_http2_in_little_memory() {
    let (server, root) = start_secured(COUNTS);
    with_memory_watched(&server, || {
        let arguments =
            ["--upload-file", "-", "--header", "Content-Type: text/plain", "--write-out", " %{http_version}"];
        let mut curl = curl(&server, &root, &arguments);
        let mut input = curl.stdin.take().expect("it is a pipe");
        let block = vec![b'x'; 1 << 20];
        (0..GIB >> 20).for_each(|_| input.write_all(&block).expect("curl reads on"));
        drop(input);
        let output = curl.wait_with_output().expect("curl ends");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{GIB} 2"));
    });
    server.stop();
}

#[test]
#[ignore = "long: moves a gigabyte"]
fn a_gigabyte_comes_down_over_http2_in_little_memory() {
    let (server, root) = start_secured(&gives(GIB));
    with_memory_watched(&server, || {
        let mut curl = curl(&server, &root, &[]);
        let mut output = curl.stdout.take().expect("it is a pipe");
        let (mut buffer, mut total) = (vec![0; 1 << 20], 0);
        loop {
            let count = output.read(&mut buffer).expect("curl writes on");
            if count == 0 {
                break;
            }
            assert!(buffer[..count].iter().all(|byte| *byte == b'x'));
            total += count as u64;
        }
        assert!(curl.wait().expect("curl ends").success());
        assert_eq!(total, GIB);
    });
    server.stop();
}

#[test]
#[ignore = "long: moves a quarter of a gigabyte each way"]
fn much_goes_up_and_down_over_http3_in_little_memory() {
    const SIZE: u64 = GIB / 4;
    let script = format!(
        "<?php if ($_SERVER['REQUEST_METHOD'] === 'GET') {{ {} return; }} {}",
        &gives(SIZE)[5..],
        &COUNTS[5..]
    );
    let (server, root) = start_secured(&script);
    with_memory_watched(&server, || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let client = TlsClient::trusting(&root);
            let connected = Http3::connect(&client, server.tls_address(), "localhost").await;
            let mut client = connected.expect("a connection");
            let request = client.request("PUT", "/").header("content-type", "text/plain");
            let mut stream = client.open(request).await.expect("a stream");
            let block = Bytes::from(vec![b'x'; 1 << 20]);
            for _ in 0..SIZE >> 20 {
                stream.send_data(block.clone()).await.expect("it is read");
            }
            stream.finish().await.expect("it is read");
            let head = stream.recv_response().await.expect("a response");
            let counted = h3::receive(&mut stream, head).await.expect("a response").expect(200);
            assert_eq!(counted.text(), SIZE.to_string());

            let mut stream = client.open(client.request("GET", "/")).await.expect("a stream");
            stream.finish().await.expect("a stream");
            assert_eq!(stream.recv_response().await.expect("a response").status(), 200);
            let mut total = 0;
            while let Some(data) = stream.recv_data().await.expect("it goes on") {
                total += data.remaining() as u64;
            }
            assert_eq!(total, SIZE);
        });
    });
    server.stop();
}
