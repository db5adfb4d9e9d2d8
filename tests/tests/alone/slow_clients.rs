//! Clients that send or take their bodies slowly: they hold no PHP thread, and a disk that fails is their trouble alone.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Server, Setup, regent_command, until};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

const MIB: usize = 1 << 20;
/// Gives the body back, and says in a field how long PHP was told that it is.
const ECHO: &str = "<?php header('X-Length: ' . ($_SERVER['CONTENT_LENGTH'] ?: 'unknown')); \
                    header('Content-Type: application/octet-stream'); fpassthru(fopen('php://input', 'rb'));";
/// 32 MiB, far more than the buffers of a connection hold.
const LARGE: &str = "<?php for ($i = 0; $i < 512; $i++) { echo str_repeat(chr($i % 256), 65536); }";
const QUICK: &str = "<?php echo 'quick';";

/// One PHP thread, and a spool of 128 KiB in memory with its files in a directory of their own.
fn with_small_memory() -> Setup {
    let setup = Setup::new()
        .php_options(
            "num_threads 1\n\t\tspool {\n\t\t\tmemory 128KiB\n\t\t\tdirectory DIRECTORY/spool\n\t\t}",
        )
        .file("echo.php", ECHO)
        .file("large.php", LARGE)
        .file("index.php", QUICK);
    fs::create_dir(setup.directory().join("spool")).expect("the directory is ours");
    setup
}

fn spool_directory(server: &Server) -> PathBuf {
    server.directory().canonicalize().expect("it exists").join("spool")
}

/// The server's open files in the spool directory: they have no names, but `/proc` tells where they are.
fn spool_files(server: &Server) -> usize {
    let directory = spool_directory(server);
    let open = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("the server runs");
    open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.starts_with(&directory))
        .count()
}

fn wait_for_spool_files(server: &Server, count: usize) {
    until(&format!("there are {count} spool files"), || (spool_files(server) == count).then_some(()));
}

/// Bytes in which every shift and every loss shows.
fn content(size: usize) -> Vec<u8> {
    (0..size as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// The head of an upload to `path` that announces `length` bytes.
fn upload_head(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
    )
}

#[track_caller]
fn expect_echo(conn: &mut Conn, body: &[u8]) {
    let answer = conn.response().expect(200);
    assert_eq!(answer.header("x-length"), Some(body.len().to_string().as_str()));
    assert!(answer.body == body, "{} bytes came back, not the same", answer.body.len());
}

// --- Uploads --------------------------------------------------------------------------------------------------------

#[test]
fn a_slow_upload_holds_no_thread() {
    let server =
        Setup::new().php_options("num_threads 1").file("echo.php", ECHO).file("index.php", QUICK).start();
    let body = content(2 * MIB);
    let mut slow = server.connect();
    slow.send(upload_head("/echo.php", body.len()));
    slow.send(&body[..MIB]);
    slow.wait_until_read();
    assert_eq!(server.get("/").expect(200).text(), "quick", "the only thread is free");
    slow.send(&body[MIB..]);
    expect_echo(&mut slow, &body);
    server.stop();
}

#[test]
fn a_slow_chunked_upload_holds_no_thread_and_gets_a_length() {
    let server = with_small_memory().start();
    let body = content(2 * MIB);
    let mut slow = server.connect();
    slow.send(
        "POST /echo.php HTTP/1.1\r\nHost: x\r\nContent-Type: text/x\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    let (first, last) = body.split_at(MIB + 12_345);
    for part in first.chunks(10_007) {
        slow.send(format!("{:x}\r\n", part.len()));
        slow.send(part);
        slow.send("\r\n");
    }
    slow.wait_until_read();
    assert_eq!(server.get("/").expect(200).text(), "quick", "the only thread is free");
    slow.send(format!("{:x}\r\n", last.len()));
    slow.send(last);
    slow.send("\r\n0\r\n\r\n");
    expect_echo(&mut slow, &body);
    server.stop();
}

#[test]
fn what_memory_does_not_hold_waits_in_a_file() {
    let server = with_small_memory().start();
    let body = content(3 * MIB);
    let mut slow = server.connect();
    slow.send(upload_head("/echo.php", body.len()));
    slow.send(&body[..2 * MIB]);
    wait_for_spool_files(&server, 1);
    slow.send(&body[2 * MIB..]);
    expect_echo(&mut slow, &body);
    wait_for_spool_files(&server, 0);
    assert_eq!(
        fs::read_dir(spool_directory(&server)).expect("it is there").count(),
        0,
        "files without a name"
    );
    server.stop();
}

#[test]
fn many_slow_uploads_arrive_whole_beside_each_other() {
    let server = with_small_memory().start();
    let bodies: Vec<_> = (0..20).map(|i| content(300_000 + i * 1_111)).collect();
    let mut conns: Vec<_> = bodies.iter().map(|_| server.connect()).collect();
    let parts = |body: &[u8], part: usize| body[body.len() * part / 5..body.len() * (part + 1) / 5].to_vec();
    for (conn, body) in conns.iter_mut().zip(&bodies) {
        conn.send(upload_head("/echo.php", body.len()));
    }
    for part in 0..5 {
        for (conn, body) in conns.iter_mut().zip(&bodies) {
            conn.send(parts(body, part));
        }
        if part < 4 {
            assert_eq!(server.get("/").expect(200).text(), "quick");
        }
    }
    for (conn, body) in conns.iter_mut().zip(&bodies) {
        expect_echo(conn, body);
    }
    server.stop();
}

#[test]
fn a_body_beyond_the_bounds_streams_and_arrives_whole() {
    let setup = Setup::new()
        .php_options("num_threads 1\n\t\tspool {\n\t\t\tmemory 128KiB\n\t\t\tfile 256KiB\n\t\t}")
        // Says that it runs, before it reads.
        .file("echo.php", format!("<?php file_put_contents('started', 'yes'); ?>{ECHO}"));
    let server = setup.start();
    let body = content(3 * MIB);
    let mut slow = server.connect();
    // PUT, since PHP reads the body of a POST before the script starts.
    slow.send(upload_head("/echo.php", body.len()).replacen("POST", "PUT", 1));
    slow.send(&body[..MIB]);
    assert_eq!(server.wait_for_file("started"), "yes", "the script runs while the client sends");
    slow.send(&body[MIB..]);
    expect_echo(&mut slow, &body);
    server.stop();
}

#[test]
fn a_client_that_leaves_in_the_middle_never_reaches_php() {
    let server = with_small_memory()
        .file("mark.php", "<?php file_put_contents('mark', 'reached'); echo 'ok';")
        .start();
    let mut leaving = server.connect();
    leaving.send(upload_head("/mark.php", 2 * MIB));
    leaving.send(content(MIB));
    wait_for_spool_files(&server, 1);
    drop(leaving);
    wait_for_spool_files(&server, 0);
    // In the order of arrival on one thread: it would have run before this one.
    assert_eq!(server.get("/").expect(200).text(), "quick");
    assert!(!server.root().join("mark").exists(), "half an upload must not run");
    server.get("/mark.php").expect(200);
    assert_eq!(server.wait_for_file("mark"), "reached", "the script does leave its mark");
    server.stop();
}

#[test]
fn too_large_a_body_is_refused_while_it_is_spooled() {
    let server = with_small_memory()
        .site("request_body {\n\t\tmax_size 1MiB\n\t}\n\tphp_server")
        .file("mark.php", "<?php file_put_contents('mark', 'reached');")
        .start();
    let mut large = server.connect();
    large.send("POST /mark.php HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n80000\r\n");
    large.send(content(0x80000));
    wait_for_spool_files(&server, 1);
    large.send(format!("\r\n{:x}\r\n", MIB));
    // The server may hang up as soon as it has seen enough.
    let _ = large.try_send(content(0x80001));
    let answer = large.response().expect(413);
    assert_eq!(answer.header("connection"), Some("close"));
    wait_for_spool_files(&server, 0);
    server.get("/").expect(200);
    assert!(!server.root().join("mark").exists());
    server.stop();
}

#[test]
fn a_client_is_told_to_continue_and_its_body_is_spooled() {
    let server = with_small_memory().start();
    let body = content(MIB);
    let mut conn = server.connect();
    let head = upload_head("/echo.php", body.len());
    conn.send(head.replacen("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n", 1));
    let interim = conn.head().expect("an answer").expect("an answer, not the end");
    assert_eq!(interim.status, 100);
    conn.send(&body[..MIB / 2]);
    conn.wait_until_read();
    assert_eq!(server.get("/").expect(200).text(), "quick");
    conn.send(&body[MIB / 2..]);
    expect_echo(&mut conn, &body);
    server.stop();
}

#[test]
fn without_buffering_the_script_reads_as_the_client_writes() {
    // PHP waits until its buffers are full, where it has some.
    let dialogue = "<?php $in = fopen('php://input', 'r'); stream_set_read_buffer($in, 0); \
                    while (ob_get_level()) { ob_end_flush(); } \
                    while (($word = fread($in, 5)) !== '' && $word !== false) { echo \"[$word]\"; flush(); }";
    let server = Setup::new()
        .site("php_server {\n\t\trequest_buffering off\n\t}")
        .file("dialogue.php", dialogue)
        .start();
    let mut conn = server.connect();
    // PUT, since PHP reads the body of a POST before the script starts.
    conn.send("PUT /dialogue.php HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\nfirst");
    conn.read_until("[first]");
    conn.send("again");
    conn.read_until("[again]");
    conn.send("after");
    conn.read_until("[after]");
    server.stop();
}

// --- Downloads ------------------------------------------------------------------------------------------------------

#[test]
fn an_answer_that_is_not_read_waits_in_a_file_and_arrives_whole() {
    let server = with_small_memory().start();
    let mut slow = server.connect();
    slow.send("GET /large.php HTTP/1.1\r\nHost: x\r\n\r\n");
    slow.wait_until_read();
    assert_eq!(server.get("/").expect(200).text(), "quick", "the script has ended, and its thread is free");
    assert_eq!(spool_files(&server), 1);
    let answer = slow.response().expect(200);
    assert_eq!(answer.body.len(), 512 << 16);
    let blocks = answer.body.chunks(1 << 16).enumerate();
    blocks
        .for_each(|(i, block)| assert!(block.iter().all(|byte| usize::from(*byte) == i % 256), "block {i}"));
    wait_for_spool_files(&server, 0);
    server.stop();
}

#[test]
fn a_client_that_leaves_an_answer_leaves_no_file() {
    let server = with_small_memory().start();
    let mut leaving = server.connect();
    leaving.send("GET /large.php HTTP/1.1\r\nHost: x\r\n\r\n");
    leaving.wait_until_read();
    assert_eq!(server.get("/").expect(200).text(), "quick");
    assert_eq!(spool_files(&server), 1);
    drop(leaving);
    wait_for_spool_files(&server, 0);
    server.stop();
}

// --- Disks that fail ------------------------------------------------------------------------------------------------

/// Sends the first half of an upload of `length` bytes, which the server is to refuse with 507 before the rest.
fn expect_refused_for_its_disk(server: &Server, length: usize) {
    let mut conn = server.connect();
    conn.send(upload_head("/echo.php", length));
    let _ = conn.try_send(content(length / 2));
    let answer = conn.response().expect(507);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(conn.is_closed());
}

fn upload(server: &Server, size: usize) {
    let body = content(size);
    let mut conn = server.connect();
    conn.send(upload_head("/echo.php", size));
    conn.send(&body);
    expect_echo(&mut conn, &body);
}

#[test]
fn without_its_directory_an_upload_is_refused_and_others_are_served() {
    let server = with_small_memory().start();
    let directory = spool_directory(&server);
    fs::remove_dir(&directory).expect("nothing is in it");
    let body = content(100_000);
    let mut beside = server.connect();
    beside.send(upload_head("/echo.php", body.len()));
    beside.send(&body[..50_000]);
    expect_refused_for_its_disk(&server, 2 * MIB);
    server.wait_for_log(&directory.display().to_string());
    beside.send(&body[50_000..]);
    expect_echo(&mut beside, &body);
    assert_eq!(server.get("/").expect(200).text(), "quick");
    fs::create_dir(&directory).expect("its place is free");
    upload(&server, 2 * MIB);
    server.stop();
}

/// Asks for an answer that there is no room for, and reads it when the server has said so.
fn expect_an_answer_that_waits(server: &Server) {
    let mut slow = server.connect();
    slow.send("GET /large.php HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_log("so the script of a response waits for its client");
    assert_eq!(slow.response().expect(200).body.len(), 512 << 16);
}

#[test]
fn without_its_directory_an_answer_waits_for_its_client() {
    let server = with_small_memory().start();
    fs::remove_dir(spool_directory(&server)).expect("nothing is in it");
    expect_an_answer_that_waits(&server);
    let mut leaves = server.connect();
    leaves.send("GET /large.php HTTP/1.1\r\nHost: x\r\n\r\n");
    leaves.wait_until_read();
    drop(leaves);
    assert_eq!(server.get("/").expect(200).text(), "quick", "the only thread is free again");
    server.stop();
}

#[test]
fn a_configured_directory_that_is_missing_is_an_error_at_the_start() {
    // Taken, so that a server that did not mind would end all the same.
    let address = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = address.local_addr().expect("it listens").port();
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let missing = directory.path().join("missing");
    let caddyfile = format!(
        "{{\n\tadmin off\n\tfrankenphp {{\n\t\tspool {{\n\t\t\tdirectory {}\n\t\t}}\n\t}}\n}}\n\
         http://127.0.0.1:{port} {{\n\tphp_server\n}}\n",
        missing.display()
    );
    fs::write(directory.path().join("Caddyfile"), caddyfile).expect("the directory is ours");
    let output = regent_command(directory.path()).arg("run").output().expect("regent can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(&missing.display().to_string()) && said.contains("spool { directory }"), "{said}");
}

#[test]
fn without_the_systems_directory_bodies_stream() {
    let server = Setup::new()
        // PHP has temporary files of its own for bodies.
        .php_options("spool {\n\t\t\tmemory 128KiB\n\t\t}\n\t\tphp_ini upload_tmp_dir DIRECTORY/tmp")
        .env("TMPDIR", "/nonexistent")
        .file("echo.php", ECHO)
        .file("large.php", LARGE)
        .start();
    server.wait_for_log("spool files cannot be made");
    upload(&server, 2 * MIB);
    assert_eq!(server.get("/large.php").expect(200).body.len(), 512 << 16);
    server.stop();
}

/// A file system of its own, of one megabyte. Unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where this is not allowed, as it is for root alone.
    fn mount(directory: &Path) -> Option<Self> {
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(directory).output();
        let mounted = mount.is_ok_and(|output| output.status.success());
        mounted.then(|| Self(directory.to_path_buf()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // At once, whoever still has files open there: the directory is to be removed.
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays mounted", self.0.display());
    }
}

#[test]
fn a_full_disk_refuses_uploads_that_it_cannot_hold_and_has_answers_wait() {
    let setup = with_small_memory();
    let Some(_disk) = SmallDisk::mount(&setup.directory().join("spool")) else {
        eprintln!("skipped: a full disk takes a file system of its own, and mounting one takes root");
        return;
    };
    let server = setup.start();
    for _ in 0..3 {
        expect_refused_for_its_disk(&server, 8 * MIB);
        wait_for_spool_files(&server, 0);
        // What the refused one had written is free again.
        upload(&server, MIB);
    }
    server.wait_for_log(&spool_directory(&server).display().to_string());
    expect_an_answer_that_waits(&server);
    upload(&server, MIB);
    server.stop();
}
