//! A Redis of a test's own, from the distribution's packages, in the test's directory: what it has answered is
//! in a file there, and outlives it.

use crate::apps::{libraries_of, packages_of};
use crate::{own_address, until};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends when it is dropped.
pub struct Redis {
    process: Child,
    directory: PathBuf,
    address: SocketAddr,
    arguments: Vec<String>,
}

impl Redis {
    /// What clients have to say.
    pub const PASSWORD: &str = "the password of the tests";

    /// Its data goes to the directory.
    pub fn start(directory: &Path) -> Self {
        Self::start_with(directory, &[])
    }

    /// With arguments of its own.
    pub fn start_with(directory: &Path, arguments: &[&str]) -> Self {
        let address = own_address();
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let process = process(directory, address, &arguments);
        Self { process, directory: directory.to_owned(), address, arguments }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What `redis-cli` prints.
    pub fn ask(&self, arguments: &[&str]) -> String {
        ask(self.address, Self::PASSWORD, arguments)
    }

    /// Is gone from one moment to the next.
    pub fn kill(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it is ours");
    }

    /// After [`Self::kill`]: at the same address, with what it had.
    pub fn come_back(&mut self) {
        self.process = process(&self.directory, self.address, &self.arguments);
    }

    /// After [`Self::kill`]: it has nothing when it comes back.
    pub fn lose_all(&mut self) {
        fs::remove_dir_all(self.directory.join("appendonlydir")).expect("it keeps its data there");
    }
}

/// What `redis-cli` prints.
pub(crate) fn ask(address: SocketAddr, password: &str, arguments: &[&str]) -> String {
    let packages = packages_of("redis");
    let output = Command::new(packages.join("usr/bin/redis-cli"))
        .args(["-h", &address.ip().to_string(), "-p", &address.port().to_string()])
        .args(["--no-auth-warning", "-a", password])
        .args(arguments)
        .env("LD_LIBRARY_PATH", libraries_of(&packages))
        .output()
        .expect("redis-cli can be started");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A Sentinel, which writes into its configuration.
pub(crate) fn sentinel(configuration: &Path, address: SocketAddr) -> Child {
    let mut command = server();
    let directory = configuration.parent().expect("a file is in a directory");
    command.arg(configuration).arg("--sentinel").arg("--dir").arg(directory);
    listening(command, address)
}

fn process(directory: &Path, address: SocketAddr, arguments: &[String]) -> Child {
    let mut command = server();
    let ip = address.ip().to_string();
    command
        // Other servers call it by the address that its connections come from.
        .args(["--bind", &ip, "--bind-source-addr", &ip])
        .args(["--save", "", "--appendonly", "yes", "--appendfsync", "always"])
        .args(["--requirepass", Redis::PASSWORD, "--port", &address.port().to_string()])
        .arg("--dir")
        .arg(directory)
        .args(arguments);
    listening(command, address)
}

fn server() -> Command {
    let packages = packages_of("redis");
    let mut command = Command::new(packages.join("usr/bin/redis-server"));
    command.env("LD_LIBRARY_PATH", libraries_of(&packages)).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn listening(mut command: Command, address: SocketAddr) -> Child {
    let process = command.spawn().expect("redis-server can be started");
    until("Redis listens", || TcpStream::connect(address).ok());
    process
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Its data is the test's; it may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
