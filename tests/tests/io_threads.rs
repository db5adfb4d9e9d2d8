//! Several I/O threads, which a machine has from five cores on, or without PHP from two: this one is said to have eight.
#![forbid(unsafe_code)]

use regent_tests::h3::{Http3, block_on};
use regent_tests::{Server, Setup, TlsClient};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// RFC 9114 section 8.1.
const NO_ERROR: u64 = 0x100;
const CONNECTIONS: usize = 12;
const BODY: usize = 300_000;

/// What a process asks of its system to learn how many cores it has.
const EIGHT_CORES: &str = "
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    memset(set, 0, size);
    for (int cpu = 0; cpu < 8; cpu++) {
        CPU_SET(cpu, set);
    }
    return 0;
}
";

/// A library to be loaded before that of C. It is built with what builds Regent.
fn eight_cores(directory: &Path) -> PathBuf {
    let (source, library) = (directory.join("cores.c"), directory.join("cores.so"));
    std::fs::write(&source, EIGHT_CORES).expect("the directory is ours");
    let mut compiler = Command::new("cc");
    let status = compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(status.expect("there is a compiler").success());
    library
}

fn io_threads(server: &Server) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it runs");
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    // One that a thread has just started has its name for a moment.
    names.filter(|name| name.starts_with("io-")).collect::<BTreeSet<_>>().len()
}

#[test]
fn a_server_without_php_has_one_for_each_core_and_keeps_them_when_php_comes() {
    let caddyfile = |directive: &str| {
        format!(
            "{{\n\tadmin ADMIN\n\tfrankenphp {{\n\t\tnum_threads 2\n\t}}\n}}\n\
             http://:PORT {{\n\tbind LOOPBACK\n\troot ROOT\n\t{directive}\n}}\n"
        )
    };
    let setup =
        Setup::new().caddyfile(&caddyfile("respond static")).file("index.php", "<?php echo 'script';");
    let library = eight_cores(setup.directory());
    let server = setup.env("LD_PRELOAD", library.to_str().expect("text")).start();
    assert_eq!(server.get("/").expect(200).text(), "static");
    assert_eq!(io_threads(&server), 8);
    server.write_caddyfile(&caddyfile("php_server"));
    server.admin().request("POST", "/regent/reload").send().expect(200);
    for _ in 0..2 * CONNECTIONS {
        assert_eq!(server.get("/").expect(200).text(), "script");
    }
    assert_eq!(io_threads(&server), 8);
    server.stop();
}

#[test]
fn connections_of_http3_are_served_by_all_io_threads_and_drain_on_each() {
    let text = "{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\tfrankenphp {\n\t\tnum_threads 2\n\t\tmax_wait_time off\n\t}\n}\n\
                localhost {\n\troot * ROOT\n\tphp_server\n}\n";
    let setup = Setup::new()
        .caddyfile(text)
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .file("index.php", "<?php echo strlen(file_get_contents('php://input')), str_repeat('x', 100_000);");
    let library = eight_cores(setup.directory());
    let mut server = setup.env("LD_PRELOAD", library.to_str().expect("text")).start();
    assert_eq!(io_threads(&server), 2);
    let root = server.directory().join("data/caddy/pki/authorities/local/root.crt");
    let (address, client) = (server.tls_address(), TlsClient::trusting(&root));
    block_on(async {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(Http3::connect(&client, address, "localhost").await.expect("a connection"));
        }
        let body = vec![b'a'; BODY];
        let mut exchanges = tokio::task::JoinSet::new();
        for mut client in clients {
            let body = body.clone();
            exchanges.spawn(async move {
                for _ in 0..3 {
                    let request = client.request("POST", "/");
                    let response = client.send_with(request, &body).await.expect("a response").expect(200);
                    let text = response.text();
                    assert!(text.starts_with(&BODY.to_string()) && text.len() == 100_006, "{}", text.len());
                }
                client
            });
        }
        let mut ends = tokio::task::JoinSet::new();
        for client in exchanges.join_all().await {
            // From now on: what a client sends late is reset, and quinn takes that for the reason.
            ends.spawn(async move { client.closed().await });
        }
        server.signal(Signal::TERM);
        assert_eq!(ends.join_all().await, [NO_ERROR; CONNECTIONS]);
    });
    assert!(server.wait().success());
}
