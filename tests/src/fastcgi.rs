//! FastCGI servers of tests: one that says what a test wants, and php-fpm where it is installed.

use crate::{Upstream, until};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub const END: u8 = 3;
pub const STDOUT: u8 = 6;
pub const STDERR: u8 = 7;

/// A request as a responder has it.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub variables: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Asked {
    /// The value of a variable; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }
}

/// Answers each request with this output, and closes the connection.
pub fn responder(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Upstream {
    Upstream::talking(move |mut stream, _| {
        let Some(asked) = receive(&mut stream) else { return };
        let mut sent: Vec<u8> = answer(&asked).chunks(60_000).flat_map(|part| record(STDOUT, part)).collect();
        sent.extend(record(END, &[0; 8]));
        // The server may have enough of it.
        let _ = stream.write_all(&sent);
    })
}

/// Reads a request. `None`: the connection ended before it did.
pub fn receive(stream: &mut TcpStream) -> Option<Asked> {
    let (mut params, mut body) = (Vec::new(), Vec::new());
    let (mut has_params, mut has_body) = (false, false);
    while !has_body || !has_params {
        let mut header = [0; 8];
        stream.read_exact(&mut header).ok()?;
        let mut content = vec![0; usize::from(u16::from_be_bytes([header[4], header[5]]))];
        stream.read_exact(&mut content).ok()?;
        stream.read_exact(&mut vec![0; usize::from(header[6])]).ok()?;
        match header[1] {
            4 => (has_params, params) = (content.is_empty(), [params, content].concat()),
            5 => (has_body, body) = (content.is_empty(), [body, content].concat()),
            _ => {}
        }
    }
    Some(Asked { variables: variables(&params), body })
}

/// A record of a server's.
pub fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("it fits into a record").to_be_bytes();
    [&[1, kind, 0, 1, length[0], length[1], 0, 0], content].concat()
}

fn variables(mut bytes: &[u8]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    while !bytes.is_empty() {
        let (name, value) = (length(&mut bytes), length(&mut bytes));
        let (pair, rest) = bytes.split_at(name + value);
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let earlier = found.insert(text(&pair[..name]), text(&pair[name..]));
        assert!(earlier.is_none(), "a variable is there once: {earlier:?}");
        bytes = rest;
    }
    found
}

fn length(bytes: &mut &[u8]) -> usize {
    let long = bytes[0] >= 0x80;
    let (own, rest) = bytes.split_at(if long { 4 } else { 1 });
    *bytes = rest;
    own.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)) & 0x7fff_ffff
}

/// A php-fpm with two processes on a Unix socket. Ends when it is dropped.
pub struct Fpm {
    process: Child,
    socket: PathBuf,
}

impl Fpm {
    /// `None`: none is installed.
    pub fn start(directory: &Path) -> Option<Self> {
        let program = installed()?;
        let (socket, config) = (directory.join("fpm.sock"), directory.join("fpm.conf"));
        let text = format!(
            "[global]\nerror_log = {0}/fpm.log\ndaemonize = no\n[www]\nuser = root\nlisten = {0}/fpm.sock\n\
             pm = static\npm.max_children = 2\ncatch_workers_output = yes\n",
            directory.display()
        );
        fs::write(&config, text).expect("the directory is the test's own");
        let process = Command::new(program)
            .args(["-n", "-R", "-F", "-y"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("php-fpm can be started");
        let fpm = Self { process, socket };
        until("php-fpm listens", || UnixStream::connect(&fpm.socket).ok());
        Some(fpm)
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Fpm {
    fn drop(&mut self) {
        // SIGTERM: it ends its children before itself.
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.process),
            rustix::process::Signal::TERM,
        );
        let _ = self.process.wait();
    }
}

fn installed() -> Option<PathBuf> {
    let is_fpm = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("php-fpm"))
    };
    let programs = fs::read_dir("/usr/sbin").ok()?.flatten().map(|entry| entry.path()).filter(is_fpm);
    programs.max()
}
