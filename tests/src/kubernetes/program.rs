//! The programs that a cluster is made of.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends when it is dropped; in a failing test the end of its log is printed.
pub(super) struct Program {
    name: String,
    process: Child,
    log: PathBuf,
}

/// Of a log that is printed.
const LINES: usize = 30;

impl Program {
    /// What it says goes into a file of the directory.
    pub fn start(name: &str, mut command: Command, directory: &Path) -> Self {
        let log = directory.join(format!("{name}.log"));
        let file = File::create(&log).expect("the directory is ours");
        let errors = file.try_clone().expect("a descriptor");
        let process = command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn();
        let process = process.unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        Self { name: name.to_owned(), process, log }
    }

    /// Whoever waits for it need not wait any longer if it has ended.
    #[track_caller]
    pub fn expect_running(&mut self) {
        let ended = self.process.try_wait().expect("it is ours");
        assert!(ended.is_none(), "{} has ended: {ended:?}", self.name);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let text = fs::read(&self.log).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<&str> = text.lines().collect();
            let end = lines[lines.len().saturating_sub(LINES)..].join("\n");
            println!("--- the end of the log of {} ---\n{end}", self.name);
        }
    }
}
