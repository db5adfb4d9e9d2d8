//! PHP as a user of its own. Only root can arrange that: without it, the tests see that the server says so.
#![forbid(unsafe_code)]

use regent_tests::process::copy_program;
use regent_tests::{Response, Server, Setup, own_address, regent_command, until};
use serde_json::json;
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

/// As systemd starts it: as a user without any right but these, and in more groups than its own.
const SERVICE: &str = "shift; exec setpriv --no-new-privs --reuid=1 --regid=1 --groups=1,42 \
                       --bounding-set=-all,+setuid,+setgid,+kill --inh-caps=-all,+setuid,+setgid,+kill \
                       --ambient-caps=-all,+setuid,+setgid,+kill \"$0\" \"$@\"";

/// From a place where that user can start it too.
fn as_a_service() -> Setup {
    let setup = setup();
    let server = setup.directory().join("engine/regent");
    copy_program(&regent_tests::program(), &server);
    setup.launcher(&["sh", "-c", SERVICE, &server.to_string_lossy()])
}

/// The user, the groups and the capabilities of PHP, and of a program that it starts.
const RIGHTS: &str = r#"<?php
$rights = fn ($status) => preg_match_all('/^(?:Uid|Gid|Groups|Cap(?:Inh|Prm|Eff|Amb)):[ \t]*(.*?)[ \t]*$/m', $status, $found) ? $found[1] : [];
echo json_encode([$rights(file_get_contents('/proc/thread-self/status')), $rights(shell_exec('cat /proc/self/status'))]);"#;

fn assert_has_no_rights(server: &Server) {
    let (ids, none) = ("65534\t65534\t65534\t65534", "0000000000000000");
    let rights = json!([ids, ids, "", none, none, none, none]);
    assert_eq!(server.get("/rights.php").expect(200).json(), json!([rights, rights]));
}

/// Rights that are passed on and not taken away outlive the change from one user to another, if neither is root; so do groups.
#[test]
fn php_kept_the_groups_and_the_capabilities_of_a_server_that_is_not_root() {
    if !is_root() {
        return;
    }
    let server = as_a_service().file("rights.php", RIGHTS).file("index.php", ATTEMPTS).start();
    assert_has_no_rights(&server);
    assert_eq!(server.get(&format!("/?a&pid={}", server.pid())).expect(200).text(), "65534 65534 0  /?a 0");
    server.stop();
}

#[test]
fn a_server_that_is_not_root_ends_the_engines_of_another_user_and_starts_others() {
    if !is_root() {
        return;
    }
    let server = as_a_service()
        .file("rights.php", RIGHTS)
        .file("stops.php", "<?php posix_kill(posix_getpgrp(), SIGSTOP);")
        .start();
    let engine = server.engine();
    // It hangs, and has to be killed; a thread of it does not answer, a process of its own does.
    let status = server.get("/stops.php").status;
    assert!([200, 502].contains(&status), "{status}");
    until("another is there", || (server.engines().iter().any(|pid| *pid != engine)).then_some(()));
    assert_has_no_rights(&server);
    server.stop();
}

#[test]
fn the_server_that_takes_over_has_the_rights_of_the_one_before() {
    if !is_root() {
        return;
    }
    let mut server = as_a_service().admin("ADMIN").file("rights.php", RIGHTS).start();
    let answer = server.admin().request("POST", "/regent/upgrade").send().expect(200).json();
    server.follow(u32::try_from(answer["process"].as_u64().expect("a number")).unwrap());
    assert_has_no_rights(&server);
    server.stop();
}

#[test]
fn programs_of_scripts_are_at_home_where_their_user_is() {
    if !is_root() {
        return;
    }
    const HOME: &str =
        "<?php echo getenv('HOME'), ' ', getenv('USER'), ' ', trim(shell_exec('echo $LOGNAME'));";
    let server = setup().file("index.php", HOME).start();
    assert_eq!(server.get("/").expect(200).text(), format!("/nonexistent {USER} {USER}"));
    server.stop();
}

#[test]
fn the_environment_named_a_user_for_every_configuration() {
    const WHO: &str = "<?php echo posix_geteuid();";
    let site = || Setup::new().for_every_user().file("index.php", WHO).env("REGENT_PHP_USER", USER);
    let server = site().start();
    let expected = if is_root() { 65534 } else { rustix::process::geteuid().as_raw() };
    assert_eq!(server.get("/").expect(200).text(), expected.to_string());
    server.stop();
    if !is_root() {
        return;
    }
    // Who may not does without, and what the configuration says comes first.
    let powerless = ["setpriv", "--reuid=1", "--regid=1", "--clear-groups", "--inh-caps=-all", "--"];
    let server = site().launcher(&powerless).start();
    assert_eq!(server.get("/").expect(200).text(), "1");
    server.stop();
    let server = site().php_options("num_threads 2\n\t\tuser daemon").start();
    assert_eq!(server.get("/").expect(200).text(), "1");
    server.stop();
}

/// Who can change the configuration would be root by that.
#[test]
fn a_server_that_is_not_root_started_php_as_root() {
    if !is_root() {
        return;
    }
    let server = as_a_service().admin("ADMIN").file("rights.php", RIGHTS).start();
    let text = format!(
        "{{\nadmin {}\nregent {{\nuser root\n}}\n}}\nhttp://{} {{\nphp_server\n}}\n",
        server.admin().address(),
        server.address()
    );
    let refused = server.admin().request("POST", "/load").body("text/caddyfile", text).send();
    assert_ne!(refused.status, 200);
    assert!(
        refused.text().contains("a server that is not root starts nothing as root"),
        "{}",
        refused.text()
    );
    assert_has_no_rights(&server);
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
