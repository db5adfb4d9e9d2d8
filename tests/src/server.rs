//! Starting and stopping the real server.

use crate::http::Request;
use crate::php;
use crate::process::{self, Memory};
use crate::wait::try_until;
use crate::{Admin, Conn, DEADLINE, Response, own_addresses, until};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// The file name of the server's program.
const SERVER: &str = "regent";
/// The file names of the engines' programs.
const ENGINE: &str = "regent-php";
const NATIVE_ENGINE: &str = "regent-native";
/// Lines for the `frankenphp` block of every test that has no Caddyfile of its own.
pub(crate) const MORE_OPTIONS: &str = "REGENT_TEST_OPTIONS";
/// A file of every site, which is asked for until the server answers: no script of the test is to see that.
const READY_FILE: &str = "is-it-ready.txt";

/// A site in a fresh directory and the server's configuration for it, to be started.
///
/// By default: two PHP threads, `php_server` on the directory `www`, no admin address, sessions within the directory.
pub struct Setup {
    directory: TempDir,
    ports: Ports,
    php_options: String,
    max_wait_time: &'static str,
    global_options: String,
    site: String,
    admin: String,
    caddyfile: Option<String>,
    arguments: Option<Vec<String>>,
    environment: Vec<(String, String)>,
    launcher: Vec<String>,
}

/// A running server. Ends with [`Server::stop`]; a dropped one is killed with its engines, and when the test is
/// failing its log is printed.
pub struct Server {
    process: ServerProcess,
    ports: Ports,
    directory: TempDir,
}

/// Where a server listens, if its configuration asks for it.
#[derive(Clone, Copy)]
struct Ports {
    site: SocketAddr,
    tls: SocketAddr,
    admin: SocketAddr,
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

impl Setup {
    pub fn new() -> Self {
        let directory = TempDir::with_prefix("regent-test-").expect("a temporary directory can be made");
        for name in ["www", "tmp", "sessions"] {
            fs::create_dir(directory.path().join(name)).expect("the temporary directory is ours");
        }
        write_file(&directory.path().join("www").join(READY_FILE), b"static files are served");
        let [site, tls, admin] = own_addresses();
        Self {
            directory,
            ports: Ports { site, tls, admin },
            php_options: "num_threads 2".into(),
            max_wait_time: "max_wait_time off",
            global_options: String::new(),
            site: "php_server".into(),
            admin: "off".into(),
            caddyfile: None,
            arguments: None,
            environment: Vec::new(),
            launcher: Vec::new(),
        }
    }

    /// Adds a file to the site.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        write_file(&self.root().join(path), content.as_ref());
        self
    }

    /// The lines of the `frankenphp` block, instead of `num_threads 2`. Requests wait for as long as they have to, however slow the
    /// machine is, unless the lines have a `max_wait_time`.
    pub fn php_options(mut self, lines: &str) -> Self {
        self.php_options = lines.into();
        self
    }

    /// Requests wait for as long as they do where nothing is said of it.
    pub fn default_max_wait_time(mut self) -> Self {
        self.max_wait_time = "";
        self
    }

    /// More lines of the global options block.
    pub fn global_options(mut self, lines: &str) -> Self {
        self.global_options = lines.into();
        self
    }

    /// The site's directives, instead of `php_server`.
    pub fn site(mut self, directives: &str) -> Self {
        self.site = directives.into();
        self
    }

    /// The arguments of the global option `admin`, instead of `off`. `ADMIN` is a free address, which
    /// [`Server::admin`] is for.
    pub fn admin(mut self, arguments: &str) -> Self {
        self.admin = arguments.into();
        self
    }

    /// A program and its arguments that becomes the server (`setpriv --option`), instead of the server itself.
    pub fn launcher(mut self, words: &[&str]) -> Self {
        self.launcher = words.iter().map(|&word| word.into()).collect();
        self
    }

    /// A whole Caddyfile instead. Filled in are, here and in the other texts: `LOOPBACK`, an IP address that no other test
    /// has, `PORT`, `TLSPORT` (another one), `ADDRESS` (`LOOPBACK:PORT`), `ADMIN` (a third one, as an address), `ROOT` (the
    /// directory `www`) and `DIRECTORY` (the one above it).
    pub fn caddyfile(mut self, text: &str) -> Self {
        self.caddyfile = Some(text.into());
        self
    }

    /// The arguments of `regent`, instead of `run --config FILE`; `ADDRESS`, `ROOT` and `DIRECTORY` are filled in.
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments = Some(arguments.iter().map(|&argument| argument.into()).collect());
        self
    }

    /// An environment variable of the server; its value is filled in.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The fresh directory: `www` is the site's root in it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The address with the port `TLSPORT`.
    pub fn tls_address(&self) -> SocketAddr {
        self.ports.tls
    }

    /// The site's root.
    pub fn root(&self) -> PathBuf {
        self.directory().join("www")
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> Server {
        let mut process = self.spawn();
        process.wait_until_ready(self.ports.site);
        Server { process, ports: self.ports, directory: self.directory }
    }

    fn spawn(&self) -> ServerProcess {
        self.give_to_php();
        let file = self.directory().join("Caddyfile");
        write_file(&file, self.config_text().as_bytes());
        let mut command = self.launched(regent_command(self.directory()));
        match &self.arguments {
            Some(arguments) => command.args(arguments.iter().map(|text| self.fill_in(text))),
            None => command.arg("run").arg("--config").arg(&file),
        };
        command.envs(self.environment.iter().map(|(name, value)| (name, self.fill_in(value))));
        ServerProcess::start(command)
    }

    fn launched(&self, server: Command) -> Command {
        let Some((launcher, arguments)) = self.launcher.split_first() else { return server };
        let mut command = Command::new(launcher);
        command.args(arguments).arg(server.get_program()).stdin(Stdio::null()).env_clear();
        let environment = server.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(environment).current_dir(server.get_current_dir().unwrap_or(Path::new(".")));
        command
    }

    fn config_text(&self) -> String {
        let text = self.caddyfile.clone().unwrap_or_else(|| {
            let wait = if self.php_options.contains("max_wait_time") { "" } else { self.max_wait_time };
            let more = std::env::var(MORE_OPTIONS).unwrap_or_default();
            format!(
                "{{\n\tadmin {}\n\t{}\n\tfrankenphp {{\n\t\tphp_ini session.save_path DIRECTORY/sessions\n\t\t{}\n\t\t{wait}\n\t\t{more}\n\t}}\n}}\n\
                 http://:PORT {{\n\tbind LOOPBACK\n\troot * ROOT\n\t{}\n}}\n",
                self.admin, self.global_options, self.php_options, self.site
            )
        });
        self.fill_in(&text)
    }

    /// A text as [`Self::caddyfile`] fills it in.
    pub fn fill_in(&self, text: &str) -> String {
        fill_in(text, self.ports, self.directory())
    }
}

fn fill_in(text: &str, ports: Ports, directory: &Path) -> String {
    text.replace("ADDRESS", &ports.site.to_string())
        .replace("LOOPBACK", &ports.site.ip().to_string())
        .replace("ADMIN", &ports.admin.to_string())
        .replace("TLSPORT", &ports.tls.port().to_string())
        .replace("PORT", &ports.site.port().to_string())
        .replace("ROOT", &directory.join("www").display().to_string())
        .replace("DIRECTORY", &directory.display().to_string())
}

impl Server {
    pub fn address(&self) -> SocketAddr {
        self.ports.site
    }

    /// The admin API of a server with [`Setup::admin`] `ADMIN`.
    pub fn admin(&self) -> Admin {
        Admin::new(self.ports.admin)
    }

    /// The address with the port `TLSPORT`.
    pub fn tls_address(&self) -> SocketAddr {
        self.ports.tls
    }

    /// The site's root.
    pub fn root(&self) -> PathBuf {
        self.directory().join("www")
    }

    /// The fresh directory: `www` is the site's root in it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Stops the server as [`Self::stop`] does, and starts another in the same directory with the same ports.
    pub fn restart(mut self, command: impl FnOnce(&Path) -> Command) -> Self {
        self.signal(Signal::TERM);
        assert!(self.wait().success(), "the server ended well");
        self.start_again(command)
    }

    /// The same after a crash, which leaves it no time for anything.
    pub fn restart_after_crash(mut self, command: impl FnOnce(&Path) -> Command) -> Self {
        self.signal(Signal::KILL);
        self.wait();
        self.start_again(command)
    }

    fn start_again(mut self, command: impl FnOnce(&Path) -> Command) -> Self {
        self.process = ServerProcess::start(command(self.directory.path()));
        self.process.wait_until_ready(self.ports.site);
        self
    }

    /// Writes a file of the site, or replaces it.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        write_file(&self.root().join(path), content.as_ref());
    }

    /// Replaces the Caddyfile that the server was started with; `ADDRESS`, `ADMIN`, `PORT`, `ROOT` and `DIRECTORY` are filled
    /// in. The server is not told.
    pub fn write_caddyfile(&self, text: &str) {
        let text = fill_in(text, self.ports, self.directory());
        write_file(&self.directory().join("Caddyfile"), text.as_bytes());
    }

    /// Waits until a script has written this file of the site, and gives its content.
    pub fn wait_for_file(&self, path: &str) -> String {
        let file = self.root().join(path);
        until(&format!("a script writes {path}"), || {
            fs::read_to_string(&file).ok().filter(|text| !text.is_empty())
        })
    }

    /// A connection to the server.
    pub fn connect(&self) -> Conn {
        Conn::open(self.ports.site)
    }

    /// Asks for `target` on a new connection, from which the answer is to be read.
    pub fn ask(&self, target: &str) -> Conn {
        let mut conn = self.connect();
        conn.send(format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.ports.site));
        conn
    }

    pub fn request(&self, method: &str, target: &str) -> Request {
        Request::new(self.ports.site, method, target)
    }

    pub fn get(&self, target: &str) -> Response {
        self.request("GET", target).send()
    }

    pub fn post(&self, target: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Response {
        self.request("POST", target).body(content_type, body).send()
    }

    /// Sends these bytes on a new connection, and gives all that comes back until the server closes it.
    pub fn raw(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut conn = self.connect();
        // The server may have hung up on bad input already: what it said is what counts.
        let _ = conn.try_send(bytes);
        read_all(conn)
    }

    /// The same for a client that breaks off: it closes its side after the last byte.
    pub fn raw_cut_off(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut conn = self.connect();
        if conn.try_send(bytes).is_ok() {
            conn.finish_sending();
        }
        read_all(conn)
    }

    /// The server's pid.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits until the process has ended well whose place this one has taken: it is the server from now on.
    pub fn follow(&mut self, successor: u32) {
        let before = self.pid();
        match self.process.successor.replace(successor) {
            None => assert!(self.wait_for_child().success(), "the process before ended well"),
            Some(_) => until("the process before ends", || (!process::is_alive(before)).then_some(())),
        }
    }

    /// The engine's pid; waits for there to be exactly one.
    pub fn engine(&self) -> u32 {
        until("the server has one engine", || match self.engines().as_slice() {
            [engine] => Some(*engine),
            _ => None,
        })
    }

    /// The pids of all live engines for PHP.
    pub fn engines(&self) -> Vec<u32> {
        process::children_running(self.pid(), ENGINE)
    }

    /// The pids of all live engines for native modules.
    pub fn native_engines(&self) -> Vec<u32> {
        process::children_running(self.pid(), NATIVE_ENGINE)
    }

    /// Memory of the server and of its engine.
    pub fn memory(&self) -> (Memory, Memory) {
        let of = |pid| process::memory(pid).unwrap_or_else(|| panic!("process {pid} is alive"));
        (of(self.pid()), of(self.engine()))
    }

    /// Everything the server has logged so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// What it has logged from this byte on.
    pub fn log_from(&self, position: usize) -> String {
        let log = self.process.log.lock().expect("no reader panics");
        log[position..].to_owned()
    }

    /// Waits until the log holds this text.
    pub fn wait_for_log(&self, text: &str) {
        until(&format!("the log says {text:?}"), || self.log().contains(text).then_some(()));
    }

    /// Sends a signal to the server.
    pub fn signal(&self, signal: Signal) {
        assert!(process::signal(self.pid(), signal), "the server is running");
    }

    /// Waits for the server's end.
    pub fn wait(&mut self) -> ExitStatus {
        assert!(self.process.successor.is_none(), "the status is not told to us");
        self.wait_for_child()
    }

    fn wait_for_child(&mut self) -> ExitStatus {
        let child = &mut self.process.child;
        until("the server ends", || child.try_wait().expect("it is our child"))
    }

    /// Stops the server as an operator does, with SIGTERM, and checks that it ends well and leaves no engine.
    pub fn stop(mut self) {
        let engines = all_engines(self.pid());
        self.signal(Signal::TERM);
        match self.process.successor {
            None => {
                let status = self.wait();
                assert!(status.success(), "the server ended with {status}");
            }
            Some(successor) => until("the server ends", || (!process::is_alive(successor)).then_some(())),
        }
        for (engine, program) in engines {
            until("the engine has ended too", || (!process::runs(engine, program)).then_some(()));
        }
    }
}

/// `regent`, to be run in `directory`, with an environment that owes nothing to this machine.
///
/// The program is `REGENT_BIN`, or else the one that cargo built beside these tests.
pub fn regent_command(directory: &Path) -> Command {
    let mut command = Command::new(program());
    command.current_dir(directory).stdin(Stdio::null()).env_clear();
    for name in ["PATH", "LD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let temporary = directory.join("tmp");
    command.env("HOME", directory).env("TMPDIR", if temporary.is_dir() { &temporary } else { directory });
    if !rustix::process::geteuid().is_root() {
        // Tests look at the server's memory and descriptors, which the kernel would keep from all but root.
        command.env("REGENT_DUMPABLE", "1");
    }
    php::configure(&mut command, directory);
    command.env("LANG", "C.UTF-8").env("NO_COLOR", "1");
    command
}

/// The server's process with its log. Kills itself and its engines when dropped.
struct ServerProcess {
    child: Child,
    /// The process that has taken its place.
    successor: Option<u32>,
    log: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl ServerProcess {
    fn start(mut command: Command) -> Self {
        let program = command.get_program().to_owned();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("starting {program:?}: {error}"));
        let log = Arc::new(Mutex::new(String::new()));
        let readers = vec![
            follow(child.stdout.take().expect("it is piped"), &log),
            follow(child.stderr.take().expect("it is piped"), &log),
        ];
        Self { child, successor: None, log, readers }
    }

    fn wait_until_ready(&mut self, address: SocketAddr) {
        let probe = Request::new(address, "GET", &format!("/{READY_FILE}"));
        let ready = try_until(DEADLINE, || {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                self.read_log_to_its_end();
                panic!("the server ended with {status} before it was ready:\n{}", self.log());
            }
            probe.try_send().ok()
        });
        if ready.is_none() {
            panic!("the server answers nothing on {address} after {DEADLINE:?}:\n{}", self.log());
        }
    }

    fn log(&self) -> String {
        self.log.lock().expect("no reader panics").clone()
    }

    fn read_log_to_its_end(&mut self) {
        for reader in self.readers.drain(..) {
            reader.join().expect("no reader panics");
        }
    }
}

impl ServerProcess {
    fn pid(&self) -> u32 {
        self.successor.unwrap_or_else(|| self.child.id())
    }

    /// Kills all servers and engines that are left.
    fn kill(&mut self) {
        let is_running = matches!(self.child.try_wait(), Ok(None));
        let mut servers: Vec<u32> = self.successor.into_iter().collect();
        if is_running {
            servers.extend(process::children_running(self.child.id(), SERVER));
            servers.push(self.child.id());
        }
        servers.retain(|pid| process::runs(*pid, SERVER));
        let engines: Vec<_> = servers.iter().flat_map(|server| all_engines(*server)).collect();
        for server in servers {
            process::signal(server, Signal::KILL);
        }
        if is_running {
            // Errors are of a process that has just ended, which is as good.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        for (engine, _) in engines.into_iter().filter(|(pid, program)| process::runs(*pid, program)) {
            process::signal(engine, Signal::KILL);
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- the server's log ---\n{}--- its end ---", self.log());
        }
    }
}

/// All live engines of a server, with their programs.
fn all_engines(server: u32) -> Vec<(u32, &'static str)> {
    let of = |program| process::children_running(server, program).into_iter().map(move |pid| (pid, program));
    [ENGINE, NATIVE_ENGINE].into_iter().flat_map(of).collect()
}

fn read_all(mut conn: Conn) -> String {
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = conn.read_some(&mut buffer) {
        answer.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Appends every line of `output` to `log` on a thread of its own.
fn follow(output: impl Read + Send + 'static, log: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let log = Arc::clone(log);
    std::thread::spawn(move || {
        let mut lines = BufReader::new(output);
        let mut line = Vec::new();
        while matches!(lines.read_until(b'\n', &mut line), Ok(1..)) {
            log.lock().expect("no reader panics").push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
    })
}

/// The server's program.
pub fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("REGENT_BIN") {
        return path.into();
    }
    let binary = built_directory().join(SERVER);
    assert!(
        binary.is_file(),
        "there is no {}: run `tools/test build` first, or set REGENT_BIN to the server to be tested",
        binary.display()
    );
    binary
}

/// Where cargo puts the programs that it builds with these tests.
pub(crate) fn built_directory() -> PathBuf {
    // target/PROFILE/deps/this-program
    let program = std::env::current_exe().expect("this program has a path");
    program.ancestors().nth(2).expect("tests run from the target directory").to_owned()
}

fn write_file(path: &Path, content: &[u8]) {
    let parent = path.parent().expect("a file is in a directory");
    fs::create_dir_all(parent).and_then(|()| fs::write(path, content)).unwrap_or_else(|error| {
        panic!("writing {}: {error}", path.display());
    });
}
