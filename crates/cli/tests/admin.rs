//! The commands that talk to a running server, against a made-up one.

#[path = "../../admin/tests/support/mod.rs"]
#[allow(dead_code, reason = "a part of it is used here")]
mod support;

use regent_admin::Refusal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;
use support::{DEADLINE, Panics, Site, WORKER};

fn command(site: &Site, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_regent"));
    command.args(arguments).env("REGENT_ADMIN", site.address.to_string());
    command
}

fn regent(site: &Site, arguments: &[&str]) -> Output {
    command(site, arguments).output().unwrap()
}

/// The standard output of a command that must succeed.
fn text(site: &Site, arguments: &[&str]) -> String {
    let output = regent(site, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The standard error of a command that must fail.
fn error(site: &Site, arguments: &[&str]) -> String {
    let output = regent(site, arguments);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn threads_are_listed() {
    let site = Site::start();
    let list = text(&site, &["threads"]);
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines[0], "#  POOL     STATE            FOR  SERVED   MEMORY  REQUEST");
    assert!(
        lines[1].starts_with("0  classic  busy           2.0 s      40  2.0 MiB  GET /\"><img"),
        "{list}"
    );
    assert_eq!(lines[3], "2  app      idle           1.2 s      42  2.0 MiB");
    assert_eq!(
        lines[6],
        "5  app      stuck     1 min 15 s      45  2.0 MiB  POST /reports/yearly?format=pdf"
    );
    assert_eq!(lines[8], "1  hello    idle          7.0 ms       9  0.0 MiB");
    assert_eq!(lines[9], "8 threads; 16 more may be started");
}

#[test]
fn threads_are_listed_as_json() {
    let site = Site::start();
    let list: serde_json::Value = serde_json::from_str(&text(&site, &["threads", "--json"])).unwrap();
    assert_eq!(list["ThreadDebugStates"][5]["Activity"], "stuck");
}

#[test]
fn a_thread_is_looked_into() {
    let site = Site::start();
    assert_eq!(text(&site, &["threads", "stack", "0"]), "#0 sleep()\n#1 {main} /app/a.php:3\n");
    let list: serde_json::Value =
        serde_json::from_str(&text(&site, &["threads", "--json", "stack", "0"])).unwrap();
    assert_eq!(list["index"], 0);
}

#[test]
fn threads_are_added_and_removed() {
    let site = Site::start();
    assert_eq!(text(&site, &["threads", "add"]), "the pool classic has 3 threads now\n");
    assert_eq!(text(&site, &["threads", "add", "4", "--worker", WORKER]), "the pool app has 8 threads now\n");
    assert_eq!(text(&site, &["threads", "remove", "2"]), "the pool classic has 1 thread now\n");
    assert_eq!(site.fake.state().threads, [1, 8, 2]);
    assert_eq!(text(&site, &["threads", "add", "--service", "hello"]), "the pool hello has 3 threads now\n");
    let changed = text(&site, &["threads", "--admin", &site.address.to_string(), "add", "--json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&changed).unwrap()["total"], 2);
}

#[test]
fn a_refusal_is_said() {
    let site = Site::start();
    assert!(error(&site, &["threads", "add", "99"]).contains("the pool has 2 threads and may have 8"));
    assert!(error(&site, &["threads", "add", "-w", "a b.php"]).contains("has the file or name `a b.php`"));
    for count in ["0", "x", "-1", "65536"] {
        error(&site, &["threads", "add", "--", count]);
    }
    site.fake.state().refusal = Some(Refusal::Unavailable("PHP \x1b[2J is starting".into()));
    assert_eq!(error(&site, &["workers", "restart"]), "regent: PHP \u{fffd}[2J is starting\n");
    assert_eq!(site.fake.state().threads, [2, 4, 2]);
}

#[test]
fn workers_are_restarted() {
    let site = Site::start();
    assert_eq!(text(&site, &["workers", "restart"]), "4 threads have started anew\n");
    assert_eq!(site.fake.state().restarts, 1);
}

#[test]
fn native_modules_are_loaded_anew() {
    let site = Site::start();
    let said = "the native modules were loaded anew; 2 threads run them\n";
    assert_eq!(text(&site, &["native", "restart"]), said);
    let state = site.fake.state();
    assert_eq!((state.native_restarts, state.restarts), (1, 0));
}

#[test]
fn no_server_is_an_error_that_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("unix/{}", directory.path().join("none.sock").display());
    let site = Site::start();
    for arguments in [["threads", "--json"], ["top", "--once"]] {
        let said = error(&site, &[arguments[0], arguments[1], "--admin", &address]);
        assert!(said.contains(&format!("no server's admin listener answers at {address}")), "{said}");
    }
    assert!(error(&site, &["top", "--admin", "no address"]).contains("is no address of an admin listener"));
}

#[test]
fn top_prints_its_figures_once() {
    let site = Site::start();
    let page = text(&site, &["top", "--once"]);
    assert!(!page.contains('\x1b'), "{page}");
    let shown = |part: &str| assert!(page.lines().any(|line| line.contains(part)), "no {part:?} in\n{page}");
    shown(&format!("Regent 0.1.0  {}  up 1 d 2 h  engine 3 (opcache_reset())", site.address));
    shown("6 (4–8)");
    shown("app      ##!+..  # 2 busy, ! 1 stuck, + 1 starting, . 2 idle");
    shown("1 min 15 s      45  2.0 MiB  POST /reports/yearly?format=pdf");
    shown("200 ms  GET /api/*");
    shown("10 → 26  queue head waited 3.2 ms, 96 % blocked");
    let headings = page.lines().filter(|line| line.contains("P50 ") && line.contains("ERRORS"));
    assert_eq!(headings.count(), 2, "{page}");
}

#[test]
fn top_is_live_and_gives_the_terminal_back() {
    let site = Site::start();
    let mut terminal = Terminal::open();
    let top = terminal.spawn(command(&site, &["top"]));
    terminal.wait_for("queue head waited");
    assert!(!terminal.is_line_mode());
    site.fake.state().panics = Panics::InStatistics;
    terminal.wait_for("No answer, these are the last figures");
    site.fake.state().panics = Panics::Never;
    terminal.wait_for("q: quit");
    terminal.type_keys("\x1b[A");
    terminal.type_keys("q");
    // The cursor is shown, and the screen as it was before.
    terminal.wait_for("\x1b[?25h");
    terminal.wait_for("\x1b[?1049l");
    assert!(top.ends_well());
    assert!(terminal.is_line_mode());
}

#[test]
fn ctrl_c_and_sigterm_end_top_in_good_order() {
    let site = Site::start();
    for end in [Terminal::interrupt as fn(&mut Terminal, &Program), Terminal::terminate] {
        let mut terminal = Terminal::open();
        let top = terminal.spawn(command(&site, &["top"]));
        terminal.wait_for("q: quit");
        end(&mut terminal, &top);
        terminal.wait_for("\x1b[?1049l");
        assert!(top.ends_well());
        assert!(terminal.is_line_mode());
    }
}

/// It span for ever, deaf to SIGTERM and SIGHUP.
#[test]
fn a_terminal_that_hangs_up_ends_top() {
    let site = Site::start();
    let mut terminal = Terminal::open();
    let top = terminal.spawn(command(&site, &["top"]));
    terminal.wait_for("q: quit");
    drop(terminal);
    // How is of no interest: there is nobody to tell.
    top.ends_well();
}

#[test]
fn top_without_a_terminal_names_the_way() {
    let site = Site::start();
    let output = command(&site, &["top"]).stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("use --once"), "{output:?}");
}

/// A program that runs; dropped, it is killed.
struct Program(Child);

impl Program {
    /// Waits for its end.
    fn ends_well(mut self) -> bool {
        let handle = pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty()).unwrap();
        assert!(is_ready(&handle), "it does not end");
        self.0.wait().unwrap().success()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether there is something to read, or an end, within the deadline.
fn is_ready(file: &impl AsFd) -> bool {
    let timeout = Timespec::try_from(DEADLINE).unwrap();
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&timeout)).unwrap() == 1
}

/// A terminal of 110 columns and 40 lines, and what was written to it. Dropped, it hangs up.
struct Terminal {
    controller: File,
    /// Held open, so that the settings can be looked at when the program has ended.
    line: File,
    seen: String,
}

impl Terminal {
    fn open() -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let path = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
        // A test must not come to hang on this terminal, were it without one.
        let line =
            File::from(open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap());
        tcsetwinsize(&line, Winsize { ws_row: 40, ws_col: 110, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        Self { controller: controller.into(), line, seen: String::new() }
    }

    fn spawn(&self, mut command: Command) -> Program {
        let end = || Stdio::from(self.line.try_clone().unwrap());
        Program(command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap())
    }

    /// Waits until it is written, after what was waited for before.
    fn wait_for(&mut self, text: &str) {
        let (started, mut buffer) = (Instant::now(), [0; 4096]);
        while !self.seen.contains(text) {
            // clock: the deadline of a test that hangs; it may be written to all the time.
            let in_time = started.elapsed() < DEADLINE && is_ready(&self.controller);
            assert!(in_time, "no {text:?} in {:?}, after {DEADLINE:?} or its end", self.seen);
            let length = self.controller.read(&mut buffer).unwrap();
            self.seen += &String::from_utf8_lossy(&buffer[..length]);
        }
        let at = self.seen.find(text).unwrap_or_default();
        self.seen.drain(..at);
    }

    fn type_keys(&mut self, keys: &str) {
        self.controller.write_all(keys.as_bytes()).unwrap();
    }

    fn interrupt(&mut self, _: &Program) {
        self.type_keys("\x03");
    }

    fn terminate(&mut self, program: &Program) {
        kill_process(Pid::from_child(&program.0), Signal::TERM).unwrap();
    }

    /// Whether it echoes and waits for whole lines, as at first.
    fn is_line_mode(&self) -> bool {
        tcgetattr(&self.line).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }
}
