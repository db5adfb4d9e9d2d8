//! nginx as a process of its own, with a configuration of the tests.

use crate::process;
use crate::until;
use rustix::process::Signal;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends when it is dropped.
pub struct Nginx {
    process: Child,
}

impl Nginx {
    /// Its program, if this machine has it; if not, that is said.
    pub fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Where the distribution has it, which is on the path of root alone.
        let usual = [PathBuf::from("/usr/sbin")];
        let found = std::env::split_paths(&path).chain(usual).map(|directory| directory.join("nginx"));
        let found = found.into_iter().find(|file| file.is_file());
        if found.is_none() {
            println!("skipped: there is no nginx here: apt-get install nginx-core");
        }
        found
    }

    /// `nginx/1.22.1`
    pub fn version(program: &Path) -> String {
        let output = Command::new(program).arg("-v").output().expect("nginx can be started");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.trim().rsplit(' ').next().unwrap_or_default().to_owned()
    }

    /// `http`: the content of that block. All files are below `directory`. It is there when `address` takes connections.
    pub fn start(program: &Path, directory: &Path, http: &str, address: SocketAddr) -> Self {
        let of = |name: &str| directory.join(name).display().to_string();
        // The user is read by a server of root alone, which has to write into a directory of root.
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {};\n", of(kind)))
            .concat();
        let text = format!(
            "user root;\ndaemon off;\nworker_processes 1;\npid {};\nevents {{ worker_connections 2048; }}\n\
             http {{\naccess_log off;\n{temporary}{http}\n}}\n",
            of("nginx.pid"),
        );
        fs::write(directory.join("nginx.conf"), text).expect("the directory is ours");
        let process = Command::new(program)
            .args(["-e", &of("error.log"), "-p", &of(""), "-c", &of("nginx.conf")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("nginx can be started");
        let mut nginx = Self { process };
        until("nginx listens", || {
            let ended = nginx.process.try_wait().expect("it is our child");
            assert!(
                ended.is_none(),
                "nginx ended: {}",
                fs::read_to_string(of("error.log")).unwrap_or_default()
            );
            TcpStream::connect(address).ok()
        });
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with it if it is asked to end.
        process::signal(self.process.id(), Signal::TERM);
        let _ = self.process.wait();
    }
}
