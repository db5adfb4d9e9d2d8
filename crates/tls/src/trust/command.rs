//! Programs that trust stores come with.

use super::TrustStores;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// By `$PATH`. `None`: not installed.
pub(super) fn find(stores: &TrustStores, program: &str) -> Option<PathBuf> {
    std::env::split_paths(&stores.path).map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// Of a program. Some go through all certificates of the system; none has to ask anybody.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of what it said, in an error.
const MOST_SAID: u64 = 4096;

/// How often it is looked whether a program has ended.
const POLL: Duration = Duration::from_millis(20);

/// `Err`: what it said, or why it could not be run.
pub(super) fn run<A: AsRef<OsStr>>(
    stores: &TrustStores,
    program: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), String> {
    run_within(TIMEOUT, stores, program, arguments)
}

fn run_within<A: AsRef<OsStr>>(
    timeout: Duration,
    stores: &TrustStores,
    program: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), String> {
    let path = find(stores, program).ok_or_else(|| format!("{program} is not installed"))?;
    let cannot = |error: io::Error| format!("cannot run {program}: {error}");
    // A file in memory: a pipe would be full one day, and be held by what the program leaves behind.
    let said = memfd_create("said", MemfdFlags::CLOEXEC).map_err(|error| cannot(error.into()))?;
    let mut said = File::from(said);
    let mut child = Command::new(path)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.try_clone().map_err(cannot)?)
        .spawn()
        .map_err(cannot)?;
    let status = wait(&mut child, timeout).map_err(cannot)?;
    if status.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let mut text = Vec::new();
    // What it said is a help, not more.
    let _ = said.rewind().and_then(|()| said.take(MOST_SAID).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    Err(match status {
        Some(status) => format!("{program}: {status}: {text}"),
        None => format!("{program}: did not end within {} s and was killed: {text}", timeout.as_secs()),
    })
}

/// `None`: it was killed.
fn wait(child: &mut Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > timeout {
            child.kill()?;
            return child.wait().map(|_| None);
        }
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::write_program;

    #[test]
    fn a_program_that_hangs_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("hangs");
        write_program(&program, "#!/bin/sh\necho what is your password? >&2\nexec sleep 600\n");
        let path = format!("{}:/bin:/usr/bin", directory.path().display()).into();
        let stores = TrustStores { root: directory.path().to_owned(), home: None, path };
        let error = run_within(Duration::from_secs(5), &stores, "hangs", [""; 0]).unwrap_err();
        assert_eq!(error, "hangs: did not end within 5 s and was killed: what is your password?");
    }
}
