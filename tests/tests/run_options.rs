//! How a server is started, watched and stopped by what is not a terminal: options of `run`, `start` and `stop`, and the
//! protocol of systemd.
#![forbid(unsafe_code)]

use regent_tests::process::is_alive;
use regent_tests::{Server, Setup, own_address, php, regent_command, until};
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

const ENVIRONMENT: &str =
    "<?php foreach (explode(',', $_GET['names']) as $name) { echo $name, '=', getenv($name), ';'; }";

fn regent(directory: &Path, arguments: &[&str]) -> Output {
    regent_command(directory).args(arguments).output().expect("regent can be run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `run` with this Caddyfile and these arguments.
fn run(setup: Setup, arguments: &[&str]) -> Server {
    let base = ["run", "--config", "DIRECTORY/Caddyfile"];
    let arguments: Vec<_> = base.into_iter().chain(arguments.iter().copied()).collect();
    setup.arguments(&arguments).start()
}

// --- Options of `run` ------------------------------------------------------------------------------------------------

#[test]
fn files_of_variables_add_to_the_environment_of_the_caddyfile_and_of_php() {
    let setup = Setup::new().file("env.php", ENVIRONMENT).env("KEPT", "as it was");
    fs::write(setup.directory().join("a.env"), "KEPT=changed\nexport GREETING=\"hello you\"\n").unwrap();
    fs::write(setup.directory().join("b.env"), "GREETING=second\nOTHER=2 # two\n").unwrap();
    let setup = setup.site("respond /greeting \"{$GREETING}\"\n\tphp_server");
    let server = run(setup, &["--envfile", "DIRECTORY/a.env", "--envfile=DIRECTORY/b.env"]);
    assert_eq!(server.get("/greeting").text(), "hello you");
    let seen = server.get("/env.php?names=KEPT,GREETING,OTHER").text();
    assert_eq!(seen, "KEPT=as it was;GREETING=hello you;OTHER=2;");
    server.stop();
}

#[test]
fn a_file_of_variables_that_is_wrong_is_named_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("site.env"), "A=1\nnonsense\n").unwrap();
    let output = regent(directory.path(), &["run", "--envfile", "site.env"]);
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("site.env:2: `nonsense` is no NAME=value"), "{said}");
}

#[test]
fn the_file_of_the_process_id_is_there_as_long_as_the_server() {
    let mut server = run(Setup::new(), &["--pidfile", "DIRECTORY/regent.pid"]);
    let file = server.directory().join("regent.pid");
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{}\n", server.pid()));
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert!(!file.exists());
}

#[test]
fn the_environment_is_printed_before_all_else() {
    let server = run(Setup::new().env("SOMETHING", "to see"), &["--environ"]);
    server.wait_for_log("SOMETHING=to see");
    assert!(server.log().starts_with("regent\tv"), "{}", server.log());
    server.stop();
}

#[test]
fn a_watched_caddyfile_is_loaded_when_it_or_what_it_imports_changes() {
    let caddyfile = |text: &str| {
        format!(
            "{{\n\tadmin off\n}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\troot * ROOT\n\trespond /a {text}\n\timport DIRECTORY/*.site\n\tfile_server\n}}\n"
        )
    };
    let setup = Setup::new().caddyfile(&caddyfile("first"));
    let imported = setup.directory().join("more.site");
    fs::write(&imported, "respond /b first\n").unwrap();
    let server = run(setup, &["--watch"]);
    assert_eq!((server.get("/a").text(), server.get("/b").text()), ("first".into(), "first".into()));
    let answers = |target: &str, wanted: &str| {
        until("the change is served", || (server.get(target).text() == wanted).then_some(()));
    };
    server.write_caddyfile(&caddyfile("second"));
    answers("/a", "second");
    fs::write(&imported, "respond /b second\n").unwrap();
    answers("/b", "second");
    fs::write(&imported, "nonsense /b\n").unwrap();
    server.wait_for_log("more.site:1");
    assert_eq!(server.get("/b").text(), "second", "what is wrong changes nothing");
    fs::write(&imported, "respond /b third\n").unwrap();
    answers("/b", "third");
    server.stop();
}

// --- In the background -------------------------------------------------------------------------------------------------

/// Ends what `start` has left, also when a test fails.
struct Background(u32);

impl Drop for Background {
    fn drop(&mut self) {
        if is_alive(self.0) {
            regent_tests::process::signal(self.0, Signal::KILL);
        }
    }
}

#[test]
fn start_returns_when_the_server_serves_and_stop_when_it_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let (site, admin) = (own_address(), own_address());
    let caddyfile = format!("{{\n\tadmin {admin}\n}}\nhttp://{site} {{\n\trespond hello\n}}\n");
    fs::write(directory.path().join("Caddyfile"), caddyfile).unwrap();
    let log = fs::File::create(directory.path().join("log")).unwrap();
    // Its standard error is the server's too, and a pipe would not end before it.
    let started = regent_command(directory.path())
        .args(["start", "--pidfile", "pid"])
        .stderr(log)
        .stdout(fs::File::create(directory.path().join("said")).unwrap())
        .status()
        .expect("regent can be run");
    assert!(started.success(), "{}", fs::read_to_string(directory.path().join("log")).unwrap());
    let pid: u32 = fs::read_to_string(directory.path().join("pid")).unwrap().trim().parse().unwrap();
    let _background = Background(pid);
    let said = fs::read_to_string(directory.path().join("said")).unwrap();
    assert!(said.contains(&format!("process {pid}")), "{said}");
    TcpStream::connect(site).expect("it serves");
    let stopped = regent(directory.path(), &["stop", "--config", "Caddyfile"]);
    assert!(stopped.status.success(), "{}", text(&stopped.stderr));
    assert!(TcpStream::connect(site).is_err());
    until("the server has ended", || (!is_alive(pid)).then_some(()));
    let again = regent(directory.path(), &["stop", "--address", &admin.to_string()]);
    assert!(!again.status.success());
    assert!(text(&again.stderr).contains("no server's admin listener answers"), "{}", text(&again.stderr));
}

#[test]
fn start_fails_with_what_the_server_says_when_it_cannot_serve() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("Caddyfile"), "nonsense {\n").unwrap();
    let started = regent(directory.path(), &["start"]);
    assert!(!started.status.success());
    let said = text(&started.stderr);
    assert!(said.contains("Caddyfile:1") && said.contains("has ended before it served"), "{said}");
}

// --- systemd ------------------------------------------------------------------------------------------------------------

/// The messages that come until one of them has this line; with all their lines.
fn told(socket: &UnixDatagram, line: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut message = [0; 4096];
    while !lines.iter().any(|told| told == line) {
        let length = socket.recv(&mut message).expect("the server tells in time");
        lines.extend(text(&message[..length]).lines().map(str::to_owned));
    }
    lines
}

#[test]
fn systemd_is_told_of_start_reload_and_stop_and_that_the_server_works() {
    let setup = Setup::new()
        .file("env.php", ENVIRONMENT)
        .env("NOTIFY_SOCKET", "DIRECTORY/notify")
        .env("WATCHDOG_USEC", "200000");
    let socket = UnixDatagram::bind(setup.directory().join("notify")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut server = setup.start();
    told(&socket, "READY=1");
    told(&socket, "WATCHDOG=1");
    told(&socket, "WATCHDOG=1");
    let seen = server.get("/env.php?names=NOTIFY_SOCKET,WATCHDOG_USEC").text();
    assert_eq!(seen, "NOTIFY_SOCKET=;WATCHDOG_USEC=;", "scripts cannot speak for the server");
    server.signal(Signal::HUP);
    let reloading = told(&socket, "RELOADING=1");
    let has_time = |lines: &[String]| lines.iter().any(|line| line.starts_with("MONOTONIC_USEC="));
    assert!(has_time(&reloading), "{reloading:?}");
    told(&socket, "READY=1");
    server.signal(Signal::TERM);
    told(&socket, "STOPPING=1");
    assert!(server.wait().success());
}

// --- Beside the server ---------------------------------------------------------------------------------------------------

#[test]
fn php_s_own_program_is_run_with_its_arguments_untouched() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| regent(directory.path(), &[&["php-cli"], arguments].concat());
    let output = run(&["-d", "memory_limit=77M", "-r", "echo PHP_SAPI, ini_get('memory_limit'), PHP_ZTS;"]);
    let expected = if php::is_in_processes() { "cli77M0" } else { "cli77M1" };
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
    fs::write(directory.path().join("script.php"), "<?php echo implode(',', $argv); exit(3);").unwrap();
    let output = run(&["script.php", "--help", "-v"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("script.php,--help,-v", Some(3)));
    let output = run(&["script.php", "--", "-r", "--", "b"]);
    assert_eq!(text(&output.stdout), "script.php,--,-r,--,b");
}

#[test]
fn what_follows_two_dashes_was_taken_for_the_name_of_a_script() {
    let directory = tempfile::tempdir().unwrap();
    for (words, expected) in [
        (&["--", "a", "b"][..], "Standard input code,a,b"),
        (&["--", "--", "-v"], "Standard input code,--,-v"),
        (&["-d", "precision=7", "--", "-h"], "Standard input code,-h"),
    ] {
        let mut command = regent_command(directory.path());
        command.arg("php-cli").args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"<?php echo implode(',', $argv);").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(text(&output.stdout), expected, "{words:?}");
    }
}

#[test]
fn shells_get_completions_and_people_facts() {
    let directory = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = regent(directory.path(), &["completion", shell]);
        assert!(output.status.success() && text(&output.stdout).contains("php-server"), "{shell}");
    }
    let build = text(&regent(directory.path(), &["build-info"]).stdout);
    assert!(build.starts_with(concat!("regent\tv", env!("CARGO_PKG_VERSION"))), "{build}");
    assert!(
        build.contains("\ndep\tgithub.com/dunglas/frankenphp\tv1."),
        "Laravel Octane asks for it: {build}"
    );
    let environment = text(&regent(directory.path(), &["environ"]).stdout);
    assert!(environment.contains("LANG=C.UTF-8\n"), "{environment}");
}
