//! A MariaDB of the run's own, from the distribution's packages, on a Unix socket. What it uses is not the servers'.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::checkout::Checkout;
use crate::interrupt::Interrupt;
use crate::site::Site;
use crate::supervise::Daemon;

/// Where the package keeps the tables that a new server needs.
const SYSTEM_TABLES: [&str; 3] =
    ["mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"];

/// Ends with this value. Everybody who reaches the socket may do everything.
#[derive(Debug)]
pub struct Database {
    pub socket: PathBuf,
    _daemon: Daemon,
}

/// Starts one with what these statements make.
pub fn start(checkout: &Checkout, site: &Site, tables: &str, interrupt: &Interrupt) -> Result<Database> {
    let packages = checkout.packages_of("mariadb")?;
    let directory = site.server_directory("mariadb")?;
    let (data, socket) = (directory.join("data"), directory.join("mariadb.sock"));
    fs::create_dir(&data)?;
    initialise(&packages, &directory, &data, tables)?;
    let mut command = command(&packages, &data);
    command.arg("--skip-grant-tables").arg(format!("--socket={}", socket.display()));
    command.arg(format!("--pid-file={}", directory.join("mariadb.pid").display()));
    let mut daemon = Daemon::start("mariadbd", command, &directory.join("output.log"))?;
    daemon.wait_until_ready(interrupt, || UnixStream::connect(&socket).is_ok())?;
    Ok(Database { socket, _daemon: daemon })
}

/// What `mariadb-install-db` does, without its many questions about the system.
fn initialise(packages: &Path, directory: &Path, data: &Path, own: &str) -> Result<()> {
    let tables = packages.join("usr/share/mysql");
    let mut script = String::from("create database mysql;\nuse mysql;\n");
    for file in SYSTEM_TABLES {
        script += &fs::read_to_string(tables.join(file))
            .with_context(|| format!("the package of MariaDB has no {file}"))?;
    }
    script += own;
    let (file, log) = (directory.join("tables.sql"), directory.join("tables.log"));
    fs::write(&file, script)?;
    let output = File::create(&log)?;
    let status = command(packages, data)
        .arg("--bootstrap")
        .stdin(File::open(&file)?)
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()
        .context("mariadbd could not be started")?;
    ensure!(
        status.success(),
        "MariaDB's tables could not be made ({status}):\n{}",
        fs::read_to_string(&log).unwrap_or_default()
    );
    Ok(())
}

/// `mariadbd` on these files, without the system's configuration and without the network.
fn command(packages: &Path, data: &Path) -> Command {
    let mut command = Command::new(packages.join("usr/sbin/mariadbd"));
    command
        .args(["--no-defaults", "--skip-networking", "--user=root", "--innodb-flush-log-at-trx-commit=0"])
        .arg(format!("--basedir={}", packages.join("usr").display()))
        .arg(format!("--lc-messages-dir={}", packages.join("usr/share/mysql").display()))
        .arg(format!("--datadir={}", data.display()))
        .env("LD_LIBRARY_PATH", libraries(packages))
        .stdin(Stdio::null());
    command
}

/// The directories with the libraries of the packages (`lib/x86_64-linux-gnu` and the like).
fn libraries(packages: &Path) -> String {
    let mut found = Vec::new();
    for base in ["lib", "usr/lib"] {
        let entries = fs::read_dir(packages.join(base)).into_iter().flatten().flatten();
        let directories = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
        found.extend(directories.map(|path| path.display().to_string()));
    }
    found.join(":")
}
