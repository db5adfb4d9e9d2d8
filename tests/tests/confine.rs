//! What PHP is kept from by the kernel, and that applications notice nothing of it. `confine` of the `regent` block.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, has_landlock, php, regent_command, until};
use std::fs;
use std::path::Path;

/// What system calls answer, by FFI: 0, or the number of the error.
const CALLS: &str = r"<?php
$libc = FFI::cdef('long syscall(long, ...); int *__errno_location(void);');
$ask = fn (...$call) => $libc->syscall(...$call) < 0 ? $libc->__errno_location()[0] : 0;
";

fn site(confine: &str) -> Setup {
    let options = format!(
        "num_threads 2\n\t\tmax_wait_time off\n\t\tphp_ini ffi.enable true\n\t\tphp_ini upload_tmp_dir DIRECTORY/uploads\n\t\t{confine}"
    );
    let setup = Setup::new().admin("ADMIN").php_options(&options);
    for name in ["uploads", "data", "secret"] {
        fs::create_dir(setup.directory().join(name)).unwrap();
    }
    fs::write(setup.directory().join("secret/key"), "the key").unwrap();
    setup
}

/// Of the engine that serves.
fn confinement(server: &Server) -> serde_json::Value {
    server.admin().get("/regent/statistics").expect(200).json()["generations"][0]["confinement"].clone()
}

#[test]
fn attacks_on_processes_and_the_kernel_are_not_permitted_whoever_runs_the_server() {
    // ptrace, process_vm_writev, bpf, io_uring_setup, userfaultfd and perf_event_open of x86-64, each with nonsense.
    let calls = format!(
        "{CALLS} foreach ([101, 311, 321, 425, 323, 298] as $n) {{ echo $ask($n, -1, -1, -1, -1, -1), ' '; }}"
    );
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || cfg!(not(target_arch = "x86_64")) {
        println!("SKIPPED: system calls are refused without being asked for to who may do all");
        return;
    }
    let server = site("").file("calls.php", &calls).start();
    assert_eq!(server.get("/calls.php").expect(200).text(), "1 1 1 1 1 1 ");
    let enforced = confinement(&server)["enforced"].clone();
    assert_eq!(enforced, serde_json::json!(["no attacks on processes and the kernel"]));
    server.stop();
    let server = site("confine off").file("calls.php", &calls).start();
    assert!(!server.get("/calls.php").expect(200).text().starts_with("1 1 1 1"));
    assert_eq!(confinement(&server), serde_json::Value::Null);
    server.stop();
}

/// What applications do all day, each with what it says when it works.
const APPLICATION: &[(&str, &str, &str)] = &[
    (
        "session",
        "<?php session_start(); $_SESSION['n'] = 1; session_write_close(); session_start(); echo $_SESSION['n'];",
        "1",
    ),
    (
        "tempnam",
        "<?php $f = tempnam(sys_get_temp_dir(), 'x'); file_put_contents($f, 'abc'); echo filesize($f); unlink($f);",
        "3",
    ),
    ("tmpfile", "<?php $f = tmpfile(); fwrite($f, 'abc'); rewind($f); echo fread($f, 3);", "abc"),
    ("opcache", "<?php echo opcache_get_status(false)['opcache_enabled'] ? 'on' : 'off';", "on"),
    ("exec", "<?php echo exec('echo $((6 * 7))');", "42"),
    (
        "proc_open",
        "<?php $p = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes); fwrite($pipes[0], 'meow'); fclose($pipes[0]); echo stream_get_contents($pipes[1]); proc_close($p);",
        "meow",
    ),
    ("dns", "<?php echo gethostbyname('localhost');", "127.0.0.1"),
    ("random", "<?php echo strlen(random_bytes(16)), is_readable('/dev/urandom');", "161"),
    ("stderr", "<?php fwrite(fopen('php://stderr', 'w'), \"noted\\n\"); echo 'ok';", "ok"),
    ("null", "<?php file_put_contents('/dev/null', 'x'); echo 'ok';", "ok"),
    (
        "fork",
        "<?php $p = pcntl_fork(); if ($p === 0) { posix_kill(getmypid(), SIGKILL); } pcntl_waitpid($p, $s); echo pcntl_wtermsig($s);",
        "9",
    ),
    (
        "signal",
        "<?php $p = proc_open(['sleep', '60'], [], $pipes); proc_terminate($p, SIGKILL); while (proc_get_status($p)['running']) { usleep(1000); } echo 'ended';",
        "ended",
    ),
    ("umask", "<?php umask(0077); echo decoct(umask());", "77"),
    (
        "data",
        "<?php $d = __DIR__ . '/../data'; file_put_contents(\"$d/a.tmp\", 'x'); mkdir(\"$d/cache\"); rename(\"$d/a.tmp\", \"$d/cache/a\"); echo file_get_contents(\"$d/cache/a\"); unlink(\"$d/cache/a\"); rmdir(\"$d/cache\");",
        "x",
    ),
    ("mail", "<?php var_export(mail('someone@example.com', 'Subject', 'Text'));", "true"),
];

const UPLOAD: &str = "<?php echo move_uploaded_file($_FILES['f']['tmp_name'], __DIR__ . '/../data/upload') ? file_get_contents(__DIR__ . '/../data/upload') : 'lost';";

fn application(setup: Setup) -> Setup {
    let setup =
        APPLICATION.iter().fold(setup, |setup, (name, script, _)| setup.file(&format!("{name}.php"), script));
    setup.file("upload.php", UPLOAD)
}

fn expect_an_application_that_works(server: &Server) {
    for (name, _, expected) in APPLICATION {
        assert_eq!(
            server.get(&format!("/{name}.php")).expect(200).text(),
            *expected,
            "{name}:\n{}",
            server.log()
        );
    }
    let form =
        "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\nuploaded\r\n--b--\r\n";
    let answer = server.post("/upload.php", "multipart/form-data; boundary=b", form).expect(200);
    assert_eq!(answer.text(), "uploaded");
}

/// `mail()` hands its message to a program.
const MAILER: &str = "php_ini sendmail_path \"/bin/sh -c 'cat > DIRECTORY/data/mail'\"";

#[test]
fn an_application_notices_nothing_of_it() {
    for confine in [
        "confine",
        "confine {\n\t\t\twrite DIRECTORY/data\n\t\t\tread ROOT DIRECTORY/data\n\t\t}",
        "confine {\n\t\t\twrite DIRECTORY/data\n\t\t}",
        "confine {\n\t\t\tread ROOT DIRECTORY/data DIRECTORY/sessions DIRECTORY/uploads\n\t\t}",
    ] {
        let server = application(site(&format!("{MAILER}\n\t\t{confine}"))).start();
        expect_an_application_that_works(&server);
        let mail = fs::read_to_string(server.directory().join("data/mail")).unwrap();
        assert!(mail.contains("Subject: Subject"), "{mail}");
        server.wait_for_log("the engine is confined");
        server.stop();
    }
}

#[test]
fn what_is_not_named_can_neither_be_read_nor_written() {
    if !has_landlock() {
        return;
    }
    const ATTEMPTS: &str = r"<?php $secret = __DIR__ . '/../secret';
        echo @file_get_contents($secret . '/key') === false ? 'closed' : 'open', ' ';
        echo trim(shell_exec('cat ' . escapeshellarg($secret . '/key') . ' 2>/dev/null || echo closed')), ' ';
        foreach (['key', 'new'] as $name) { echo @file_put_contents($secret . '/' . $name, 'x') === false ? 'closed' : 'open', ' '; }
        echo @unlink($secret . '/key') ? 'open' : 'closed', ' ';
        echo @mkdir($secret . '/directory') ? 'open' : 'closed', ' ';
        echo @file_put_contents(__FILE__, 'x') === false ? 'closed' : 'open', ' ';
        echo @file_get_contents(__DIR__ . '/../Caddyfile') === false ? 'closed' : 'open';";
    let site = |confine: &str| site(confine).file("index.php", ATTEMPTS);
    let server = site("confine {\n\t\t\twrite DIRECTORY/data\n\t\t\tread ROOT\n\t\t}").start();
    assert_eq!(server.get("/").expect(200).text(), ["closed"; 8].join(" "));
    let said = confinement(&server);
    for words in [
        "no set-user-ID programs",
        "reads only what is named",
        "writes only what is named",
        "no namespaces and mounts",
    ] {
        assert!(
            said["enforced"].as_array().unwrap().iter().any(|enforced| enforced == words),
            "{words}: {said}"
        );
    }
    assert_eq!(said["missing"], serde_json::json!([]));
    server.stop();
    let server = site("confine {\n\t\t\twrite DIRECTORY/data\n\t\t}").start();
    assert_eq!(server.get("/").expect(200).text(), "open the key closed closed closed closed closed open");
    server.stop();
    let server = site("").start();
    assert!(!server.get("/").expect(200).text().contains("closed "));
    server.stop();
}

#[test]
fn the_server_is_out_of_reach_of_signals_and_of_tracing() {
    if !has_landlock() {
        return;
    }
    const SCRIPT: &str = r#"<?php $server = (int) $_GET['pid'];
        echo posix_kill($server, SIGKILL) ? 'killed' : posix_get_last_error(), ' ';
        echo @file_get_contents("/proc/$server/mem", false, null, 0, 1) === false ? 'closed' : 'open', ' ';
        echo trim(shell_exec("kill -9 $server 2>/dev/null && echo killed || echo refused"));"#;
    let server = site("confine").env("REGENT_DUMPABLE", "1").file("index.php", SCRIPT).start();
    assert_eq!(server.get(&format!("/?pid={}", server.pid())).expect(200).text(), "1 closed refused");
    server.get("/is-it-ready.txt").expect(200);
    server.stop();
}

#[test]
fn namespaces_keyrings_and_set_user_id_programs_are_given_up() {
    let status = "<?php preg_match('/^NoNewPrivs:\\s*(\\d)/m', shell_exec('cat /proc/self/status'), $found); echo $found[1], ' ';";
    // unshare with CLONE_NEWUSER and with CLONE_FS, keyctl; of 32-bit programs nothing is known here.
    let calls = format!(
        "{status} ?>{CALLS} foreach ([[272, 0x10000000], [272, 0x200], [250, 0]] as $call) {{ echo $ask(...$call, ...[0, 0, 0]), ' '; }} echo trim(shell_exec('unshare -U true 2>/dev/null && echo made || echo refused'));"
    );
    if cfg!(not(target_arch = "x86_64")) {
        println!("SKIPPED: the numbers are those of x86-64");
        return;
    }
    let server = site("confine").file("index.php", calls).start();
    assert_eq!(server.get("/").expect(200).text(), "1 1 0 1 refused");
    server.stop();
}

#[test]
fn programs_can_be_refused_and_the_rest_goes_on() {
    const SCRIPT: &str = "<?php echo var_export(@exec('echo started'), true), ' ', @proc_open(['true'], [], $p) ? 'open' : 'closed';";
    let server = site("confine {\n\t\t\texec off\n\t\t}")
        .file("index.php", SCRIPT)
        .file("ok.php", "<?php echo 'ok';")
        .start();
    let text = server.get("/").expect(200).text().to_owned();
    assert!(!text.contains("started"), "{text}");
    // Where PHP runs in processes it forks, which may be, and the child cannot become the program.
    assert!(php::is_in_processes() || text.ends_with("closed"), "{text}");
    assert_eq!(server.get("/ok.php").expect(200).text(), "ok");
    server.stop();
}

#[test]
fn workers_stacks_profiles_and_engines_that_crash_work_as_without() {
    const WORKER: &str = "<?php while (frankenphp_handle_request(function () { \
        if (isset($_GET['wait'])) { for ($end = microtime(true) + 3; microtime(true) < $end;) {} } \
        if (isset($_GET['die'])) { posix_kill(getmypid(), SIGSEGV); usleep(10000000); } echo 'ok'; })) {}";
    let options = "slow_log 200ms\n\t\tworker ROOT/index.php 1\n\t\tconfine {\n\t\t\twrite DIRECTORY/data\n\t\t\tread ROOT\n\t\t}";
    let server = site(options).file("index.php", WORKER).start();
    assert_eq!(server.get("/").expect(200).text(), "ok");
    let mut slow = server.ask("/?wait");
    server.wait_for_log("a request is slow");
    server.wait_for_log("\"stack\":\"#0 ");
    if !php::is_in_processes() {
        let profile = server.admin().get("/regent/profile?format=folded&seconds=1").expect(200);
        assert!(profile.text().contains("index.php"), "{}", profile.text());
    }
    slow.response().expect(200);
    server.get("/?die").expect(502);
    until("PHP answers", || (server.get("/").status == 200).then_some(()));
    server.stop();
}

#[test]
fn tasks_are_confined_too() {
    if !has_landlock() {
        return;
    }
    const TASK: &str = "<?php $base = dirname(__DIR__); \
        $outside = @file_put_contents(\"$base/secret/key\", 'x') === false ? 'closed' : 'open'; \
        file_put_contents(\"$base/data/said\", $outside . ' ' . exec('echo started')); sleep(600);";
    let options = "task ROOT/task.php\n\t\tconfine {\n\t\t\twrite DIRECTORY/data\n\t\t\texec off\n\t\t}";
    let server = site(options).file("task.php", TASK).file("index.php", "<?php echo 'ok';").start();
    assert_eq!(server.wait_for_file("../data/said"), "closed started");
    server.stop();
}

#[test]
fn what_cannot_be_is_named_with_its_place() {
    let directory = Setup::new();
    let validate = |confine: &str| {
        let file = directory.directory().join("Caddyfile");
        let text = format!(
            "{{\n\tadmin off\n\tstorage file_system /usr/share\n\tregent {{\n\t\tconfine {{\n\t\t\t{confine}\n\t\t}}\n\t}}\n}}\nlocalhost {{\n\ttls internal\n\tphp_server\n}}\n"
        );
        fs::write(&file, text).unwrap();
        let output = regent_command(directory.directory())
            .arg("validate")
            .arg("--config")
            .arg(&file)
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (is_valid, said) = validate("write /no/such/directory");
    assert!(said.contains(":6:10: /no/such/directory does not exist"), "{is_valid} {said}");
    let (is_valid, said) = validate("read /usr");
    assert!(
        !is_valid && said.contains(":6:9: scripts would have the keys of certificates in /usr/share"),
        "{said}"
    );
    assert!(Path::new("/usr/share").is_dir(), "as the text assumes");
}
