//! The dashboard of Grafana and the alerts ask for metrics that a running server has.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, php, until};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging");

/// Of everything that has metrics of its own, something: a worker, a background script, a lane, a cache, an upstream, a
/// certificate, traces, and a page that crashes.
const CADDYFILE: &str = "{\n\tadmin ADMIN\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\tlocal_certs\n\
    \tcache {\n\t\tdisk DIRECTORY/pages 8MiB\n\t}\n\
    \tregent {\n\t\tnum_threads 2\n\t\tphp_ini ffi.enable true\n\t\tcircuit {\n\t\t\tfailures 1\n\t\t}\n\t\tworker ROOT/worker.php 1\n\t\ttask ROOT/task.php\n\
    \t\tlane pinned {\n\t\t\tthreads 1\n\t\t}\n\t}\n}\n\
    secure.test {\n\trespond secure\n}\n\
    http:// {\n\troot * ROOT\n\ttracing\n\tlane /pinned/* pinned\n\tcache /cached/*\n\treverse_proxy /up/* ADDRESS\n\tphp_server\n}\n";

fn started() -> Server {
    let worker = "<?php while (frankenphp_handle_request(fn () => print 'ok')) {}";
    let setup = Setup::new().caddyfile(CADDYFILE).env("XDG_DATA_HOME", "DIRECTORY/data");
    let setup = setup.file("index.php", "<?php echo 'ok';").file("worker.php", worker);
    let crash = "<?php FFI::cdef('size_t strlen(const char *s);')->strlen(FFI::cast('char *', 0));";
    setup.file("task.php", "<?php sleep(3600);").file("crash.php", crash).start()
}

/// Names of metrics of ours, Caddy's and FrankenPHP's in a text; those of histograms without their suffix.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let metrics = words.filter(|word| {
        let (namespace, rest) = word.split_once('_').unwrap_or_default();
        ["regent", "frankenphp", "caddy", "process"].contains(&namespace) && !rest.is_empty()
    });
    metrics.map(|word| word.strip_suffix("_bucket").unwrap_or(word).to_owned()).collect()
}

fn exported(server: &Server) -> BTreeSet<String> {
    let page = server.admin().get("/metrics").expect(200).text().to_owned();
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    types.map(str::to_owned).collect()
}

#[test]
fn what_the_dashboard_and_the_alerts_ask_for_is_there() {
    let server = started();
    server.get("/pinned/index.php").expect(200);
    server.get("/crash.php").expect(502);
    // A certificate is made, and a background script started, a moment after the start.
    let exported = until("there are certificates and tasks", || {
        let exported = exported(&server);
        let late = ["regent_certificate_not_after_seconds", "regent_tasks_running"];
        late.iter().all(|name| exported.contains(*name)).then_some(exported)
    });
    for file in ["grafana/regent.json", "prometheus/regent.rules.yml"] {
        let named = named(&fs::read_to_string(Path::new(PACKAGING).join(file)).unwrap());
        assert!(named.len() > 15, "{file} names {named:?} only");
        // Where PHP runs in processes a crash costs nobody else anything, and nothing is refused.
        let is_there = |name: &&String| {
            exported.contains(*name) || (php::is_in_processes() && *name == "regent_circuit_open")
        };
        let missing: Vec<_> = named.iter().filter(|name| !is_there(name)).collect();
        assert_eq!(missing, Vec::<&String>::new(), "in {file}");
    }
    server.stop();
}

#[test]
fn the_limits_of_threads_and_memory_are_those_of_the_server() {
    let options = "num_threads 2\n\t\tmax_threads 7";
    let server = Setup::new().admin("ADMIN").php_options(options).file("index.php", "<?php").start();
    assert_eq!(server.admin().metric("regent_threads_limit", &[("pool", "classic")]), 7.0);
    let [used, limit] = ["regent_memory_used_bytes", "regent_memory_limit_bytes"]
        .map(|name| server.admin().metric(name, &[]));
    assert!(0.0 < used && used < limit, "{used} of {limit}");
    server.stop();
}
