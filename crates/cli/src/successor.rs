//! The process that takes this one's place, and the one whose place this one takes: `regent upgrade`, SIGUSR2.

use crate::service_manager;
use anyhow::{Context, Result};
use regent_server::{Legacy, Predecessor, Successor};
use rustix::fd::{AsFd, OwnedFd};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Set for a process whose standard input is the way to the server whose place it takes.
const VARIABLE: &str = "REGENT_PREDECESSOR";
/// For one process only.
const NOT_FOR_OTHERS: [&str; 4] = ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// This program, as it was started.
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    /// Where it was called.
    directory: Option<PathBuf>,
}

impl Program {
    /// To be called at the start: later another file may be at its path, which is then the one to be started.
    pub fn of_process() -> Result<Self> {
        let mut arguments = std::env::args_os();
        let name = arguments.next().map(PathBuf::from);
        let own = std::env::current_exe().context("finding this program's own path")?;
        // A link may lead elsewhere by then.
        let path =
            name.and_then(|name| as_called(&name)).filter(|called| is_same(called, &own)).unwrap_or(own);
        // One that has been removed cannot be found again.
        Ok(Self { path, arguments: arguments.collect(), directory: std::env::current_dir().ok() })
    }
}

/// The absolute path of a program that was called by this name.
fn as_called(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return std::path::absolute(name).ok();
    }
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories).map(|directory| directory.join(name)).find(|path| path.is_file())
}

fn is_same(called: &Path, own: &Path) -> bool {
    called.canonicalize().is_ok_and(|called| called == own)
}

impl Successor for Program {
    fn obstacle(&self) -> Option<String> {
        if std::process::id() == 1 {
            let remedy = "start another container beside this one, and then stop this one";
            return Some(format!(
                "this process is the first of its container, which would end with it: {remedy}"
            ));
        }
        service_manager::obstacle().map(str::to_owned)
    }

    fn start(&self, socket: OwnedFd) -> io::Result<Child> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).env(VARIABLE, "stdin").stdin(Stdio::from(socket));
        self.directory.iter().filter(|directory| directory.is_dir()).for_each(|directory| {
            command.current_dir(directory);
        });
        NOT_FOR_OTHERS.into_iter().for_each(|name| {
            command.env_remove(name);
        });
        regent_rights::passed_on(|| command.spawn())
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.path.display())))
    }

    fn follow(&self, process: u32) {
        service_manager::follow(process);
    }
}

/// The server whose place this process takes, with what it hands over; `None`: there is none.
pub fn predecessor() -> Result<Option<(Predecessor, Legacy)>> {
    if std::env::var_os(VARIABLE).is_none() {
        return Ok(None);
    }
    let socket = io::stdin().as_fd().try_clone_to_owned();
    let socket = socket.context("taking the standard input over")?;
    // Another program that inherits the standard input has nothing to do with that server.
    let null = File::open("/dev/null").context("opening /dev/null")?;
    rustix::stdio::dup2_stdin(&null).context("leaving the standard input")?;
    let met = Predecessor::meet(socket);
    met.map(Some).context("taking over from the server before")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_called_by_its_path_or_found_in_the_search_path() {
        assert_eq!(as_called(Path::new("/bin/sh")), Some("/bin/sh".into()));
        assert!(as_called(Path::new("./sh")).is_some_and(|path| path.is_absolute()));
        assert!(as_called(Path::new("sh")).is_some_and(|path| path.ends_with("sh")));
        assert_eq!(as_called(Path::new("no-such-program-at-all")), None);
    }
}
