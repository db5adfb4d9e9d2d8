//! PHP as a user of its own. Only root can arrange that: without it, the tests see that the server says so.
#![forbid(unsafe_code)]

use regent_tests::{Response, Setup, own_address, regent_command};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const USER: &str = "nobody";

/// Tells whom it runs as, and tries what is not its business: each letter is an attempt that succeeded.
const ATTEMPTS: &str = r#"<?php
echo posix_geteuid(), ' ', posix_getuid(), ' ', count(posix_getgroups()), ' ';
echo @file_get_contents(__DIR__.'/../secret') === false ? '' : 'r';
echo posix_kill((int) $_GET['pid'], SIGKILL) ? 'k' : '';
echo @file_get_contents("/proc/$_GET[pid]/environ") === false ? '' : 'e';
echo ' ', strtok($_SERVER['REQUEST_URI'], '&'), ' ', strlen(file_get_contents('php://input'));"#;

fn is_root() -> bool {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can run PHP as another user");
    }
    rustix::process::geteuid().is_root()
}

/// With a file beside the site that is the server's alone.
fn setup() -> Setup {
    let options = format!("num_threads 2\n\t\tmax_wait_time off\n\t\tuser {USER}");
    let setup = Setup::new().php_options(&options).for_every_user();
    let secret = setup.directory().join("secret");
    fs::write(&secret, "the key").unwrap();
    fs::set_permissions(secret, fs::Permissions::from_mode(0o600)).unwrap();
    setup
}

#[test]
fn scripts_can_neither_read_nor_end_what_is_the_servers() {
    if !is_root() {
        return;
    }
    let server = setup().file("index.php", ATTEMPTS).start();
    let text = |response: Response| response.expect(200).text();
    let target = |name| format!("/?{name}&pid={}", server.pid());
    assert_eq!(text(server.get(&target("a"))), "65534 65534 0  /?a 0");
    let body = vec![b'x'; 1 << 20];
    assert_eq!(
        text(server.request("POST", &target("b")).body("text/plain", body).send()),
        "65534 65534 0  /?b 1048576"
    );
    server.stop();
}

#[test]
fn an_engine_that_has_crashed_comes_back_as_the_same_user() {
    if !is_root() {
        return;
    }
    let server = setup()
        .file(
            "index.php",
            "<?php if (isset($_GET['die'])) { posix_kill(getmypid(), SIGKILL); } echo posix_geteuid();",
        )
        .start();
    server.get("/?die").expect(502);
    assert_eq!(server.get("/").expect(200).text(), "65534");
    server.stop();
}

#[test]
fn a_server_that_may_not_says_what_to_do() {
    let directory = Setup::new();
    let engine = directory.directory().join("regent-php");
    fs::write(&engine, "#!/bin/sh\n").unwrap();
    // Of no use to the user, if the test is root; otherwise nobody may change the user.
    fs::set_permissions(&engine, fs::Permissions::from_mode(0o700)).unwrap();
    let caddyfile = directory.directory().join("Caddyfile");
    fs::write(
        &caddyfile,
        format!(
            "{{\nadmin off\nregent {{\nuser {USER}\n}}\n}}\nhttp://{} {{\nphp_server\n}}\n",
            own_address()
        ),
    )
    .unwrap();
    let mut command = regent_command(directory.directory());
    command.env("REGENT_ENGINE", &engine).arg("run").arg("--config").arg(&caddyfile);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("start the server as root"), "{said}");
}
