//! Runs scenarios on the C host (`tests/host`) and reads its events; the host's main.c says what they are.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why a thread ended (`regent_sapi.h`).
pub const STOPPED: i32 = 0;
pub const RECYCLE: i32 = 1;
pub const WORKER_ENDED: i32 = 2;
pub const BOOT_FAILED: i32 = 3;
pub const WORKER_CRASHED: i32 = 5;
pub const WORN_OUT: i32 = 6;

/// Whether the PHP under test keeps its state for each thread. If not, one thread serves all requests of a scenario.
pub const HAS_THREADS: bool = cfg!(php_threads);
/// What fixtures use and a distribution's PHP has not built in.
const SHARED_EXTENSIONS: [&str; 2] = ["posix", "mbstring"];

/// The path of a PHP file of `tests/fixtures`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A directory for one test, removed at its end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("sapi-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the host is to do. Options first, then requests.
pub struct Scenario {
    lines: String,
    environment: Vec<(String, String)>,
}

impl Scenario {
    /// Classic mode, one thread.
    pub fn classic() -> Self {
        let empty = Self { lines: String::new(), environment: Vec::new() };
        let extensions = env!("REGENT_PHP_EXTENSION_DIR");
        let mut empty = empty.ini(&format!("extension_dir={extensions}"));
        // A part of PHP since 8.5, which warns of those who load it.
        if Path::new(extensions).join("opcache.so").is_file() {
            empty = empty.ini("zend_extension=opcache");
        }
        // Built in where we build PHP; distributions load it.
        let loaded = SHARED_EXTENSIONS.iter().filter(|_| !HAS_THREADS);
        loaded.fold(empty, |scenario, extension| scenario.ini(&format!("extension={extension}")))
    }

    /// Worker mode: one thread runs this fixture.
    pub fn worker(script: &str) -> Self {
        Self::classic()
            .line("worker", fixture(script).display())
            .line("worker_env", "FRANKENPHP_WORKER=1")
            .line("worker_env", format!("SCRIPT_FILENAME={}", fixture(script).display()))
    }

    /// A word of the scenario language (`tests/host/scenario.c`) and its value.
    pub fn line(mut self, word: &str, value: impl Display) -> Self {
        self.lines.push_str(&format!("{word} {value}\n"));
        self
    }

    pub fn ini(self, setting: &str) -> Self {
        self.line("ini", setting)
    }

    /// A variable of the host's environment.
    pub fn environment(mut self, name: &str, value: impl Display) -> Self {
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    /// A GET request for `/script?query`.
    pub fn get(self, script: &str, query: &str) -> Self {
        self.request("GET", script, query)
    }

    /// `script` is a fixture or an absolute path.
    pub fn request(self, method: &str, script: &str, query: &str) -> Self {
        let path = fixture(script); // an absolute path replaces the directory
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        self.line("request", format!("{method} /{name}{query}")).line("script", path.display())
    }

    pub fn header(self, line: &str) -> Self {
        self.line("header", line)
    }

    pub fn form(self, body: &str) -> Self {
        self.header("Content-Type: application/x-www-form-urlencoded").body(body)
    }

    pub fn body(self, body: &str) -> Self {
        let escaped = body.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
        self.line("body", escaped)
    }

    pub fn repeat(self, times: usize) -> Self {
        self.line("repeat", times)
    }

    pub fn run(self) -> Outcome {
        let scratch = Scratch::new();
        let file = scratch.file("scenario", &self.lines);
        let output = Command::new(host())
            .arg(file)
            .env("PHPRC", fixture("php.ini"))
            .env("PHP_INI_SCAN_DIR", "")
            .envs(self.environment)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the host ended with {}:\n{text}{errors}", output.status);
        Outcome { errors: errors.into_owned(), ..Outcome::read(&text) }
    }
}

/// One response, as the host was given it.
#[derive(Debug, Default)]
pub struct Response {
    pub status: u16,
    pub reason: String,
    pub headers: Vec<String>,
    pub informational: Vec<u16>,
    pub body: String,
    /// How many parts with body bytes it came in.
    pub parts: usize,
    pub ended: bool,
    pub truncated: bool,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.iter().filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {:?}", self))
    }
}

/// All that happened in a run.
#[derive(Debug, Default)]
pub struct Outcome {
    responses: BTreeMap<usize, Response>,
    /// Syslog level and text.
    pub log: Vec<(u8, String)>,
    /// Why threads ended, in that order.
    pub threads: Vec<i32>,
    /// Restarts that opcache wanted.
    pub restarts: Vec<String>,
    pub ready: usize,
    pub requests: usize,
    /// Resident memory after a tenth of the requests and after all.
    pub resident_kib: (i64, i64),
    /// The events as the host printed them.
    pub text: String,
    /// What it wrote on its standard error.
    pub errors: String,
}

impl Outcome {
    fn read(text: &str) -> Self {
        let mut outcome = Self { text: text.to_owned(), ..Self::default() };
        for line in text.lines() {
            outcome.read_line(line);
        }
        outcome
    }

    fn read_line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ready" => self.ready += 1,
            "log" => {
                let (level, message) = rest.split_once(' ').unwrap();
                self.log.push((level.parse().unwrap(), unescape(message)));
            }
            "thread" => self.threads.push(rest.parse().unwrap()),
            "restart" => self.restarts.push(unescape(rest)),
            "total" => {
                let numbers: Vec<i64> = rest.split(' ').map(|number| number.parse().unwrap()).collect();
                self.requests = numbers[0] as usize;
                self.resident_kib = (numbers[2], numbers[3]);
            }
            number => {
                let response = self.responses.entry(number.parse().unwrap()).or_default();
                read_event(response, rest);
            }
        }
    }

    /// The response to the request of this number, counted from 0.
    pub fn response(&self, number: usize) -> &Response {
        self.responses.get(&number).unwrap_or_else(|| panic!("no response {number} in:\n{}", self.text))
    }

    pub fn logged(&self, text: &str) -> bool {
        self.log.iter().any(|(_, message)| message.contains(text))
    }
}

fn read_event(response: &mut Response, event: &str) {
    let (word, rest) = event.split_once(' ').unwrap_or((event, ""));
    assert!(!response.ended, "something came after the end: {event}");
    match word {
        "head" => {
            let (status, reason) = rest.split_once(' ').unwrap();
            response.status = status.parse().unwrap();
            response.reason = unescape(reason);
            response.headers.clear();
        }
        "informational" => response.informational.push(rest.trim().parse().unwrap()),
        "header" => response.headers.push(unescape(rest)),
        "body" => {
            response.body.push_str(&unescape(rest));
            response.parts += 1;
        }
        "end" => {
            response.ended = true;
            response.truncated = rest == "truncated";
        }
        _ => panic!("unknown event: {event}"),
    }
}

/// The reverse of the host's `print_escaped`; bytes beyond ASCII become the characters of the same number.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('n') => out.push('\n'),
                Some('x') => {
                    let digits: String = rest.by_ref().take(2).collect();
                    out.push(char::from(u8::from_str_radix(&digits, 16).unwrap()));
                }
                other => out.push(other.unwrap()),
            },
            c => out.push(c),
        }
    }
    out
}

/// Compiles the C host, once for all tests.
fn host() -> &'static Path {
    static HOST: OnceLock<PathBuf> = OnceLock::new();
    HOST.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sapi-host-{}", std::process::id()));
        let library = Path::new(env!("REGENT_SAPI_LIB_DIR")).join("libregent_sapi.a");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]);
        compiler.arg(root.join("sapi"));
        compiler.args(["main.c", "scenario.c"].map(|name| root.join("tests/host").join(name)));
        compiler.arg("-Wl,--whole-archive").arg(library).arg("-Wl,--no-whole-archive");
        compiler.arg(format!("-L{}", env!("REGENT_PHP_LIB_DIR")));
        compiler
            .arg(format!("-Wl,-rpath,{}", env!("REGENT_PHP_LIB_DIR")))
            .arg(concat!("-l", env!("REGENT_PHP_LIB")));
        compiler.args(env!("REGENT_PHP_STATIC_LIBS").split_whitespace());
        compiler.args((!HAS_THREADS).then_some("-rdynamic"));
        let output = compiler.args(["-ldl", "-o"]).arg(&out).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        out
    })
}
