//! Requests that PHP cannot take in, again and again: too little memory, directories that vanish or are full, no descriptor.
//! Each costs itself alone, and the thread that met it serves the next one.
#![forbid(unsafe_code)]

use regent_tests::process::children;
use regent_tests::{Server, Setup, until};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a page sees of a request, and a worker with the same page.
const PAGE: &str = "<?php return function () {
    echo count($_POST), ' ', implode(array_column($_FILES, 'error')), ' ', strlen(file_get_contents('php://input'));
};";
const CLASSIC: &str = "<?php (require __DIR__ . '/page.inc')();";
const WORKER: &str =
    "<?php $page = require __DIR__ . '/page.inc'; while (frankenphp_handle_request($page)) {}";

/// With one thread for each mode, so that each request meets what the one before has left.
fn in_both_modes(options: &str) -> Setup {
    Setup::new()
        .php_options(&format!("num_threads 2\n{options}\nworker {{\nfile ROOT/worker.php\nnum 1\n}}"))
        .file("page.inc", PAGE)
        .file("index.php", CLASSIC)
        .file("worker.php", WORKER)
}

const SCRIPTS: [&str; 2] = ["/index.php", "/worker.php"];

fn upload(server: &Server, script: &str, length: usize) -> String {
    let body = [
        b"--limit\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\n".to_vec(),
        vec![b'x'; length],
        b"\r\n--limit--\r\n".to_vec(),
    ];
    server.post(script, "multipart/form-data; boundary=limit", body.concat()).expect(200).text()
}

#[test]
fn requests_that_php_cannot_take_in_again_and_again_cost_only_themselves() {
    let server = in_both_modes(
        "php_ini memory_limit 8M\nphp_ini post_max_size 64M\nphp_ini max_input_vars 1000000\nphp_ini display_errors Off",
    )
    .start();
    let engine = server.engine();
    let fields: Vec<String> = (0..100_000).map(|number| format!("a{number}[]=1")).collect();
    let (form, urlencoded) = (fields.join("&"), "application/x-www-form-urlencoded");
    for script in SCRIPTS {
        for _ in 0..10 {
            server.post(script, urlencoded, form.clone()).expect(500);
        }
        assert_eq!(server.post(script, urlencoded, "a=1").expect(200).text(), "1  3", "{script}");
    }
    assert_eq!(server.engine(), engine, "nothing has died");
    server.stop();
}

/// Uploads go with their requests, which are over a moment after their responses.
fn remove(directory: &Path) {
    until("there are no uploads left", || fs::remove_dir(directory).ok());
}

#[test]
fn a_directory_for_uploads_that_vanishes_or_is_full_costs_only_the_uploads() {
    let setup = in_both_modes("php_ini upload_tmp_dir DIRECTORY/uploads\nphp_ini display_errors Off");
    let directory = setup.directory().join("uploads");
    let server = setup.start();
    let make = || fs::create_dir(&directory).expect("the directory is the test's own");
    for script in SCRIPTS {
        make();
        assert_eq!(upload(&server, script, 300_000), "0 0 0");
        remove(&directory);
        for _ in 0..3 {
            // PHP goes to the system's directory then.
            assert_eq!(upload(&server, script, 300_000), "0 0 0", "{script}");
        }
        make();
        if let Some(disk) = SmallDisk::mount(&directory) {
            for _ in 0..3 {
                assert_eq!(upload(&server, script, 300_000), "0 7 0", "{script}: UPLOAD_ERR_CANT_WRITE");
                assert_eq!(upload(&server, script, 1000), "0 0 0", "{script}");
            }
            drop(disk);
        }
        remove(&directory);
    }
    server.stop();
}

/// All processes that run PHP.
fn processes(server: &Server) -> Vec<u32> {
    let mut all = vec![server.engine()];
    let mut next = 0;
    while let Some(process) = all.get(next) {
        all.extend(children(*process));
        next += 1;
    }
    all
}

/// How many files each of them may open. Returns what it was before.
fn limit_open_files(processes: &[u32], limit: &Rlimit) -> Rlimit {
    let set = |process: &u32| prlimit(Pid::from_raw(*process as i32), Resource::Nofile, *limit);
    let formers: Vec<_> = processes.iter().map(|process| set(process).expect("it is ours")).collect();
    formers.into_iter().next().expect("an engine")
}

#[test]
fn a_script_was_said_not_to_be_there_when_no_descriptor_was_left() {
    let server = in_both_modes("").start();
    server.get("/index.php").expect(200);
    for number in 0..5 {
        server.write(&format!("new{number}.php"), "<?php echo 'new';");
    }
    let all = processes(&server);
    let most = getrlimit(Resource::Nofile).maximum;
    let former = limit_open_files(&all, &Rlimit { current: Some(0), maximum: most });
    for number in 0..5 {
        server.get(&format!("/new{number}.php")).expect(500);
    }
    limit_open_files(&all, &former);
    for number in 0..5 {
        assert_eq!(server.get(&format!("/new{number}.php")).expect(200).text(), "new");
    }
    assert_eq!(processes(&server), all, "nothing has died");
    server.stop();
}

#[test]
fn a_directory_for_sessions_that_vanishes_costs_only_the_sessions() {
    let server = in_both_modes("php_ini session.auto_start 1\nphp_ini session.save_path DIRECTORY/visitors")
        .file(
            "page.inc",
            "<?php return function () { echo $_SESSION['seen'] = ($_SESSION['seen'] ?? 0) + 1; };",
        )
        .start();
    let directory = server.directory().join("visitors");
    let ask = |script: &str| {
        server.request("GET", script).header("Cookie", "PHPSESSID=abcdef0123456789abcdef0123").send()
    };
    for script in SCRIPTS {
        fs::create_dir(&directory).expect("the directory is the test's own");
        let first = ask(script).expect(200).text();
        until("nobody writes a session", || fs::remove_dir_all(&directory).ok());
        for _ in 0..5 {
            assert_eq!(ask(script).expect(200).text(), "1", "{script}: it is nobody's session");
        }
        assert_eq!(first, "1");
    }
    server.stop();
}

/// A file system of 64 KiB. Unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where this is not allowed, as it is for root alone.
    fn mount(directory: &Path) -> Option<Self> {
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(directory).output();
        let is_mounted = mount.is_ok_and(|output| output.status.success());
        if !is_mounted {
            println!("SKIPPED: only root can have a disk that is full");
        }
        is_mounted.then(|| Self(directory.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays mounted", self.0.display());
    }
}
