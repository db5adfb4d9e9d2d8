//! A Redis of a test's own, from the distribution's packages, in the test's directory: what it has answered is
//! in a file there.

use crate::apps::{libraries_of, packages_of};
use crate::{free_address, until};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends when it is dropped.
pub struct Redis {
    process: Child,
    directory: PathBuf,
    address: SocketAddr,
}

impl Redis {
    /// What clients have to say.
    pub const PASSWORD: &str = "the password of the tests";

    /// Its data goes to the directory.
    pub fn start(directory: &Path) -> Self {
        Self::start_at(directory, free_address())
    }

    fn start_at(directory: &Path, address: SocketAddr) -> Self {
        let packages = packages_of("redis");
        let process = Command::new(packages.join("usr/bin/redis-server"))
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"])
            .args(["--requirepass", Self::PASSWORD, "--port", &address.port().to_string()])
            .arg("--dir")
            .arg(directory)
            .env("LD_LIBRARY_PATH", libraries_of(&packages))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server can be started");
        let server = Self { process, directory: directory.to_owned(), address };
        until("Redis listens", || TcpStream::connect(address).ok());
        server
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What `redis-cli` prints.
    pub fn ask(&self, arguments: &[&str]) -> String {
        let packages = packages_of("redis");
        let output = Command::new(packages.join("usr/bin/redis-cli"))
            .args(["-p", &self.address.port().to_string(), "--no-auth-warning", "-a", Self::PASSWORD])
            .args(arguments)
            .env("LD_LIBRARY_PATH", libraries_of(&packages))
            .output()
            .expect("redis-cli can be started");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Is killed, away for the time of this, and then back with what it had.
    pub fn away<T>(mut self, meanwhile: impl FnOnce() -> T) -> (Self, T) {
        self.process.kill().expect("it is ours");
        let _ = self.process.wait();
        let result = meanwhile();
        let (directory, address) = (self.directory.clone(), self.address);
        drop(self);
        (Self::start_at(&directory, address), result)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Its data is the test's; it may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
