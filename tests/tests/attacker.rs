//! Somebody runs code of his own in PHP: what is within reach, for each way to run it. docs/security.md has what this test has seen.
#![forbid(unsafe_code)]

use regent_tests::compiled::compiled;
use regent_tests::native::repository;
use regent_tests::php::php_config;
use regent_tests::process::{copy_program, is_alive, signal};
use regent_tests::{Server, Setup, has_landlock, until};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// As the table in the docs has it: a name, and the attempt, which is true if it has succeeded.
const ATTEMPTS: &[(&str, &str)] = &[
    ("read the server's memory: `/proc/PID/mem`", r#"$open("/proc/$server/mem", O_RDONLY)"#),
    (
        "take a socket of the server: `pidfd_getfd()`",
        "($handle = $call(434, $server, 0, 0)) >= 0 && $call(438, $handle, 0, 0) >= 0",
    ),
    ("read the server's environment", r#"$open("/proc/$server/environ", O_RDONLY)"#),
    (
        "read the key of a certificate",
        r#"$open("$base/data/caddy/pki/authorities/local/root.key", O_RDONLY)"#,
    ),
    ("read a Caddyfile with the mode 0600", r#"$open("$base/Caddyfile", O_RDONLY)"#),
    ("read the files of another site", r#"$open("$base/other/config.php", O_RDONLY)"#),
    ("change the files of another site", r#"$open("$base/other/config.php", O_RDWR)"#),
    ("change the scripts of its own site", "$open(__FILE__, O_RDWR)"),
    (
        "ask an admin API on a Unix socket",
        r#"($api = @stream_socket_client("unix://$base/admin.sock")) && fwrite($api, "GET /regent/statistics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") && str_contains(stream_get_contents($api), ' 200 ')"#,
    ),
    ("send signals to the server", "posix_kill($server, 0)"),
    ("send signals to another engine", "posix_kill($other, 0)"),
    (
        "open the shared memory of another engine",
        r#"(bool) array_filter(glob("/proc/$other/fd/*"), fn ($fd) => str_contains((string) @readlink($fd), 'regent-wire') && $open($fd, O_RDWR))"#,
    ),
    ("open a raw socket", "@socket_create(AF_INET, SOCK_RAW, getprotobyname('icmp')) !== false"),
    ("start a program", "@exec('echo started') === 'started'"),
    (
        "connect to other programs by TCP",
        r#"@stream_socket_client("tcp://$_SERVER[SERVER_ADDR]:$_SERVER[SERVER_PORT]") !== false"#,
    ),
    ("read what everybody may read: `/etc/passwd`", "$open('/etc/passwd', O_RDONLY)"),
    (
        "leave a program that goes on when the server stops",
        "(bool) @exec('setsid sleep 1000 >/dev/null 2>&1 & echo $!', $pid) && file_put_contents(sys_get_temp_dir() . '/left', end($pid))",
    ),
];

/// What makes the system calls that PHP has no function for, or looks at before.
const MEANS: [&str; 2] = ["FFI", "an extension in C"];

/// Attempt number `n`, by means number `by`.
fn script() -> String {
    let attempts: String = ATTEMPTS.iter().map(|(_, attempt)| format!("fn () => {attempt},\n")).collect();
    format!(
        "<?php
        const O_RDONLY = 0, O_RDWR = 2;
        $libc = FFI::cdef('long syscall(long, ...);');
        $call = [fn (...$call) => $libc->syscall(...$call), attack(...)][$_GET['by']];
        $open = fn (string $path, int $how) => $call(2, $path, $how) >= 0;
        $others = array_diff(explode(',', $_GET['engines']), [posix_getpgrp()]);
        [$server, $other, $base] = [(int) $_GET['server'], (int) current($others), dirname(__DIR__)];
        $attempts = [\n{attempts}];
        echo $attempts[$_GET['n']]() ? 'yes' : 'no';"
    )
}

/// A way to run PHP.
struct Way {
    /// At the head of its column.
    name: &'static str,
    /// In the `frankenphp` block.
    options: &'static str,
    /// Capabilities of the server, for setpriv(1).
    rights: &'static str,
}

/// What it takes to run PHP as another user.
const CHANGE_OF_USER: &str = "-all,+setuid,+setgid,+kill";

const WAYS: [Way; 4] = [
    Way { name: "as it comes", options: "", rights: "-all" },
    Way { name: "`user`", options: "user daemon", rights: CHANGE_OF_USER },
    Way { name: "`user` and `confine`", options: "user daemon\n\t\tconfine", rights: CHANGE_OF_USER },
    Way {
        name: "`confine { read; write; exec off }`",
        options: "confine {\n\t\t\tread ROOT\n\t\t\twrite DIRECTORY/tmp\n\t\t\texec off\n\t\t}",
        rights: "-all",
    },
];

/// As a service of systemd runs it: a user of its own, with these rights, whom no program gives others.
const SERVICE: &str = "shift; exec setpriv --no-new-privs --reuid=65534 --regid=65534 --clear-groups \
                       --bounding-set=RIGHTS --inh-caps=RIGHTS --ambient-caps=RIGHTS \"$0\" \"$@\"";

/// Two engines, a site with a certificate, and files that are another site's.
fn start(way: &Way) -> Server {
    let setup = Setup::new().for_every_user().file("index.php", script());
    let base = setup.directory().to_owned();
    let server = base.join("engine/regent");
    copy_program(&regent_tests::program(), &server);
    let extension = base.join("engine/attack.so");
    fs::copy(compiled_extension(), &extension).unwrap();
    for name in ["data", "other"] {
        fs::create_dir(base.join(name)).unwrap();
    }
    fs::write(base.join("other/config.php"), "<?php // a password").unwrap();
    let setup = setup
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .env("REGENT_DUMPABLE", "0")
        .caddyfile(&format!(
            "{{\n\tadmin unix//DIRECTORY/admin.sock\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\t\
             https_port TLSPORT\n\tfrankenphp {{\n\t\tnum_threads 2\n\t\tengines 2\n\t\tphp_ini ffi.enable true\n\t\t\
             php_ini extension {}\n\t\t{}\n\t}}\n}}\n\
             http:// {{\n\troot * ROOT\n\tphp_server\n}}\nlocalhost {{\n\trespond secured\n}}\n",
            extension.display(),
            way.options
        ));
    as_a_service(setup, way, &server).start()
}

/// `tests/fixtures/attacks/attack.c`, for the PHP of the engine.
fn compiled_extension() -> PathBuf {
    let includes = php_config("--includes");
    let of_this_php = format!("-DFOR_PHP={}", php_config("--vernum"));
    let mut arguments = vec!["-shared", "-fPIC", &of_this_php];
    arguments.extend(includes.split_whitespace());
    compiled("cc", &arguments, &repository().join("tests/fixtures/attacks/attack.c"))
}

fn as_a_service(setup: Setup, way: &Way, server: &Path) -> Setup {
    let base = setup.directory().to_owned();
    for name in ["", "www", "www/index.php", "data", "other", "other/config.php", "tmp", "sessions"] {
        give_to_service(&base.join(name));
    }
    setup.launcher(&["sh", "-c", &SERVICE.replace("RIGHTS", way.rights), &server.to_string_lossy()])
}

/// Of the user that [`SERVICE`] names.
fn give_to_service(path: &Path) {
    chown(path, Some(65534), Some(65534)).unwrap();
}

/// What of the attempts succeeds, by these means: `yes` or `no` for each.
fn seen_by(way: &Way, means: usize) -> Vec<&'static str> {
    let server = start(way);
    let caddyfile = server.directory().join("Caddyfile");
    fs::set_permissions(&caddyfile, fs::Permissions::from_mode(0o600)).unwrap();
    give_to_service(&caddyfile);
    let both = until("both engines run", || Some(server.engines()).filter(|engines| engines.len() == 2));
    let engines: Vec<String> = both.iter().map(u32::to_string).collect();
    let mut seen: Vec<_> = (0..ATTEMPTS.len())
        .map(|n| {
            let target = format!("/?n={n}&by={means}&server={}&engines={}", server.pid(), engines.join(","));
            match server.get(&target).expect(200).text().as_str() {
                "yes" => "yes",
                "no" => "no",
                said => panic!("{}, {}, {}: {said}\n{}", way.name, MEANS[means], ATTEMPTS[n].0, server.log()),
            }
        })
        .collect();
    // The last one left a program.
    let left = fs::read_to_string(server.directory().join("tmp/left")).ok();
    server.stop();
    let goes_on = left.is_some_and(|pid| end(pid.trim().parse().expect("a number")));
    seen.pop();
    seen.push(if goes_on { "yes" } else { "no" });
    seen
}

/// The same by all means: what an extension can do, FFI can.
fn seen(way: &Way) -> Vec<&'static str> {
    let [by_ffi, by_extension] = [0, 1].map(|means| seen_by(way, means));
    assert_eq!(by_ffi, by_extension, "{}: {} and {} see the same", way.name, MEANS[0], MEANS[1]);
    by_ffi
}

/// Whether there was something to end.
fn end(pid: u32) -> bool {
    let was_there = is_alive(pid) && signal(pid, Signal::KILL);
    until("it ends", || (!is_alive(pid)).then_some(()));
    was_there
}

#[test]
fn what_is_within_reach_of_code_in_php_is_what_the_docs_say() {
    if !rustix::process::geteuid().is_root() || cfg!(not(target_arch = "x86_64")) {
        println!(
            "SKIPPED: only root can run servers as several users, and the numbers of calls are those of x86-64"
        );
        return;
    }
    if !has_landlock() {
        return;
    }
    let columns = WAYS.each_ref().map(seen);
    let mut table = String::from("| code in PHP tries to |");
    WAYS.iter().for_each(|way| table.push_str(&format!(" {} |", way.name)));
    table.push_str(&format!("\n|{}\n", "---|".repeat(1 + WAYS.len())));
    for (n, (name, _)) in ATTEMPTS.iter().enumerate() {
        let seen = columns.each_ref().map(|column| column[n]).join(" | ");
        table.push_str(&format!("| {name} | {seen} |\n"));
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/security.md");
    assert!(
        fs::read_to_string(docs).is_ok_and(|text| text.contains(&table)),
        "docs/security.md has to have:\n\n{table}"
    );
}
