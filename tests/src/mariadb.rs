//! A database server of a test's own: MariaDB from the distribution's packages, in the test's directory, on a Unix socket.

use crate::apps::{libraries_of, packages_of};
use crate::until;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where the package keeps the tables that a new server needs.
const SYSTEM_TABLES: [&str; 3] =
    ["mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"];

/// A running server, which ends when this is dropped. Everybody who reaches the socket may do everything.
pub struct MariaDb {
    process: Child,
    socket: PathBuf,
}

/// The directory of its files, which are those of the user who runs the tests.
pub(crate) const DATABASE: &str = "mariadb";

impl MariaDb {
    /// Starts one with an empty database of this name; its files are in `directory`.
    pub fn start(directory: &Path, database: &str) -> Self {
        let data = directory.join(DATABASE);
        fs::create_dir(&data).expect("the directory is the test's own");
        initialise(&data, database);
        let socket = directory.join("mariadb.sock");
        let process = command(&data)
            .arg("--skip-grant-tables")
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", directory.join("mariadb.pid").display()))
            .stdin(Stdio::null())
            .spawn()
            .expect("mariadbd can be started");
        let server = Self { process, socket };
        until("MariaDB listens", || UnixStream::connect(&server.socket).ok());
        server
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // Its data is the test's and goes with it: nothing needs to be written any more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What `mariadb-install-db` does, without its many questions about the system.
fn initialise(data: &Path, database: &str) {
    let tables = packages_of("mariadb").join("usr/share/mysql");
    let mut script = String::from("create database mysql;\nuse mysql;\n");
    for name in SYSTEM_TABLES {
        script += &fs::read_to_string(tables.join(name))
            .unwrap_or_else(|error| panic!("the package has {name}: {error}"));
    }
    script += &format!("create database {database};\n");
    let file = data.with_extension("sql");
    fs::write(&file, script).expect("the directory is the test's own");
    let status = command(data)
        .arg("--bootstrap")
        .stdin(File::open(&file).expect("it has just been written"))
        .status()
        .expect("mariadbd can be started");
    assert!(status.success(), "MariaDB's tables cannot be made: see {}", log_of(data).display());
}

/// `mariadbd` on these files, without the system's configuration and without the network.
fn command(data: &Path) -> Command {
    let packages = packages_of("mariadb");
    let log = File::options().create(true).append(true).open(log_of(data)).expect("a log can be written");
    let mut command = Command::new(packages.join("usr/sbin/mariadbd"));
    command
        .arg("--no-defaults")
        .arg("--skip-networking")
        .arg("--user=root")
        .arg("--innodb-flush-log-at-trx-commit=0")
        .arg(format!("--basedir={}", packages.join("usr").display()))
        .arg(format!("--lc-messages-dir={}", packages.join("usr/share/mysql").display()))
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--tmpdir={}", data.parent().expect("it is in the test's directory").display()))
        .env("LD_LIBRARY_PATH", libraries_of(&packages))
        .stdout(log.try_clone().expect("a descriptor can be copied"))
        .stderr(log);
    command
}

fn log_of(data: &Path) -> PathBuf {
    data.with_extension("log")
}
