//! Deployments by a link to a release: when the release before is no longer needed.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, in_parallel, regent_command, until};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const CADDYFILE: &str = "{
	admin ADMIN
	grace_period 20s
	frankenphp {
		num_threads 2
		max_wait_time off
	}
}
http://:PORT {
	bind LOOPBACK
	root * DIRECTORY/current
	php_server
}
";

/// Says when it has started, waits until the file `go` is there, and then needs another file of its release.
const SLOW: &str = "<?php
file_put_contents('{directory}/started', '1');
while (!file_exists('{directory}/go')) { usleep(1000); clearstatcache(); }
echo require __DIR__ . '/version.php';";

/// Says which release its code is of, and which one the request is of.
const WORKER: &str = "<?php
while (frankenphp_handle_request(function () { echo 'VERSION ', basename($_SERVER['DOCUMENT_ROOT']); }));";

fn write_release(directory: &Path, version: u32) {
    let release = directory.join("releases").join(version.to_string());
    fs::create_dir_all(&release).expect("the directory is ours");
    let slow = SLOW.replace("{directory}", directory.to_str().expect("a path of a test"));
    let show = "<?php echo require __DIR__ . '/version.php';";
    for (name, text) in [
        ("slow.php", &*slow),
        ("show.php", show),
        ("version.php", &format!("<?php return {version};")),
        ("worker.php", &WORKER.replace("VERSION", &version.to_string())),
        ("asset.css", &"x".repeat(version as usize)),
        (&format!("only-in-{version}.css"), "new"),
    ] {
        fs::write(release.join(name), text).expect("the directory is ours");
    }
    let next = directory.join("current.next");
    symlink(&release, &next).expect("the directory is ours");
    fs::rename(next, directory.join("current")).expect("the directory is ours");
}

fn started() -> Server {
    let setup = Setup::new().caddyfile(CADDYFILE);
    write_release(setup.directory(), 1);
    setup.start()
}

fn reload_and_wait(server: &Server, seconds: &str) -> Command {
    let mut command = regent_command(server.directory());
    command.args(["reload", "--force", "--wait", seconds, "--address"]);
    command.arg(server.admin().address().to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn end(child: Child) -> Output {
    child.wait_with_output().expect("regent ends")
}

#[test]
fn a_reload_that_waits_returns_when_nothing_runs_in_the_release_before() {
    let server = started();
    let mut slow = server.ask("/slow.php");
    let begun = server.directory().join("started");
    until("the slow request runs", || begun.exists().then_some(()));
    write_release(server.directory(), 2);
    let too_short = end(reload_and_wait(&server, "1").spawn().expect("regent can be started"));
    assert_eq!(too_short.status.code(), Some(1), "{too_short:?}");
    let error = String::from_utf8_lossy(&too_short.stderr);
    assert!(error.contains("requests that began before it still run"), "{error}");
    assert_eq!(server.get("/show.php").text(), "2", "the new release is in use all the same");

    let mut waiting = reload_and_wait(&server, "60").spawn().expect("regent can be started");
    assert_eq!(server.get("/show.php").text(), "2");
    assert!(waiting.try_wait().expect("it is ours").is_none(), "a request still runs in the first release");
    fs::write(server.directory().join("go"), "now").expect("the directory is ours");
    let waited = end(waiting);
    assert!(waited.status.success(), "{waited:?}");
    fs::remove_dir_all(server.directory().join("releases/1")).expect("it was written before");
    assert_eq!(slow.response().expect(200).text(), "1");
    server.stop();
}

/// A request sees one release: that of the code that answers it.
#[test]
fn a_restart_of_workers_mixed_their_new_code_with_the_root_of_the_release_before() {
    let setup = Setup::new().caddyfile(
        &CADDYFILE
            .replace("\tphp_server\n", "\tphp_server {\n\t\tworker DIRECTORY/current/worker.php 1\n\t}\n"),
    );
    write_release(setup.directory(), 1);
    let server = setup.start();
    let seen = || {
        let asset = server.get("/asset.css").expect(200).text().len();
        (server.get("/worker.php").expect(200).text(), server.get("/show.php").text(), asset)
    };
    assert_eq!(seen(), ("1 1".into(), "1".into(), 1));
    write_release(server.directory(), 2);
    assert_eq!(seen(), ("1 1".into(), "1".into(), 1), "files too are those of the code that runs");
    server.get("/only-in-2.css").expect(404);
    server.get("/only-in-1.css").expect(200);
    server.admin().request("POST", "/regent/workers/restart").send().expect(200);
    assert_eq!(seen(), ("2 2".into(), "2".into(), 2));
    server.get("/only-in-2.css").expect(200);
    fs::remove_dir_all(server.directory().join("releases/1")).expect("it was written before");
    assert_eq!(seen(), ("2 2".into(), "2".into(), 2));
    server.stop();
}

/// Sets it when it goes.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Kept connections of requests that have ended hold nothing.
#[test]
fn releases_follow_each_other_under_load_and_the_one_before_is_deleted() {
    let server = started();
    let (begun, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let versions = in_parallel(3, |number| {
        if number == 0 {
            // Also if this fails, or the others go on for ever.
            let _over = Over(&is_over);
            until("both have an answer", || (begun.load(Ordering::Relaxed) == 2).then_some(()));
            for version in 2..12 {
                write_release(server.directory(), version);
                let waited = end(reload_and_wait(&server, "60").spawn().expect("regent can be started"));
                assert!(waited.status.success(), "{waited:?}");
                let before = server.directory().join("releases").join((version - 1).to_string());
                fs::remove_dir_all(before).expect("it was written before");
            }
            return Vec::new();
        }
        let mut conn = server.connect();
        let mut ask = || {
            conn.send("GET /show.php HTTP/1.1\r\nHost: x\r\n\r\n");
            conn.response().expect(200).text()
        };
        let mut seen = vec![ask()];
        begun.fetch_add(1, Ordering::Relaxed);
        while !is_over.load(Ordering::Relaxed) {
            seen.push(ask());
        }
        seen.push(ask());
        seen
    });
    for seen in &versions[1..] {
        assert_eq!([&seen[0], &seen[seen.len() - 1]], ["1", "11"], "{seen:?}");
    }
    server.stop();
}
