//! HAProxy as a process of its own, with a configuration of the tests.

use crate::until;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends when it is dropped.
pub struct HaProxy {
    process: Child,
    socket: PathBuf,
}

impl HaProxy {
    /// Its program, if this machine has it; if not, that is said.
    pub fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Where the distribution has it, which is on the path of root alone.
        let usual = [PathBuf::from("/usr/sbin")];
        let found = std::env::split_paths(&path).chain(usual).map(|directory| directory.join("haproxy"));
        let found = found.into_iter().find(|file| file.is_file());
        if found.is_none() {
            println!("skipped: there is no HAProxy here: apt-get install haproxy");
        }
        found
    }

    /// A self-signed certificate with its key, in the one file that HAProxy wants.
    pub fn write_certificate(directory: &Path, name: &str) {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        let pem = made.cert.pem() + &made.signing_key.serialize_pem();
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(directory.join("site.pem"), pem))
            .expect("it is ours");
    }

    /// `configuration`: without the part `global`. It is there when `address` takes connections.
    pub fn start(program: &Path, directory: &Path, configuration: &str, address: SocketAddr) -> Self {
        let (file, socket) = (directory.join("haproxy.cfg"), directory.join("haproxy.sock"));
        let global = format!("global\n\tstats socket {} mode 600\n\n", socket.display());
        fs::write(&file, global + configuration).expect("the directory is ours");
        let process = Command::new(program)
            .arg("-db")
            .arg("-f")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("haproxy can be started");
        until("HAProxy listens", || {
            TcpStream::connect(address).ok().and_then(|_| UnixStream::connect(&socket).ok())
        });
        Self { process, socket }
    }

    /// Waits until it holds a server for up or down.
    pub fn wait_for(&self, server: &str, status: &str) {
        until(&format!("HAProxy says {server} is {status}"), || {
            self.status(server).starts_with(status).then_some(())
        });
    }

    /// `UP`, `DOWN`, or one of them on its way to the other.
    fn status(&self, server: &str) -> String {
        let mut socket = UnixStream::connect(&self.socket).expect("it listens there");
        socket.write_all(b"show stat\n").expect("it reads");
        let mut table = String::new();
        socket.read_to_string(&mut table).expect("it answers");
        let mut lines =
            table.lines().map(|line| line.trim_start_matches("# ").split(',').collect::<Vec<_>>());
        let heading = lines.next().expect("there is a heading");
        let column =
            |name: &str| heading.iter().position(|column| *column == name).expect("it has that column");
        let (name, status) = (column("svname"), column("status"));
        let line = lines.find(|line| line.get(name) == Some(&server)).expect("it has that server");
        line[status].to_owned()
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
