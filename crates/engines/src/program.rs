//! What the processes of an engine are started from, and by whom.

use command_fds::{CommandFdExt, FdMapping};
use regent_config::{EngineUser, UserWish};
use regent_wire::control::descriptors;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use tokio::process::{Child, Command};

/// How systemd talks to the service that it has started (sd_notify(3), sd_listen_fds(3)): not for scripts, which could
/// say that the server is ready, or goes on working.
pub(crate) const SERVICE_MANAGERS: [&str; 7] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "LISTEN_PID",
    // As the server before does with the one that takes its place.
    "REGENT_PREDECESSOR",
];

/// The program of an engine, and what starts its processes.
#[derive(Clone)]
pub struct Program {
    /// Unless the configuration names another.
    pub file: PathBuf,
    pub launcher: Arc<dyn Launcher>,
}

/// Starts processes of engines.
pub trait Launcher: Send + Sync {
    /// Must be called within a runtime.
    fn launch(&self, launch: Launch<'_>) -> io::Result<Box<dyn EngineChild>>;
}

/// How a process is to be started.
pub struct Launch<'a> {
    pub program: &'a Path,
    /// Whom it runs as; `None`: as the server.
    pub user: Option<&'a EngineUser>,
    pub descriptors: Descriptors,
}

/// All that a process has of the server.
pub struct Descriptors {
    pub memory: OwnedFd,
    /// Its end of the control socket, which blocks.
    pub control: OwnedFd,
    /// An eventfd for each I/O thread.
    pub doorbells: Vec<OwnedFd>,
}

/// A process that was started. Dropped, it is killed.
pub trait EngineChild: Send {
    /// `None`: it has been waited for.
    fn id(&self) -> Option<u32>;

    /// Ends with it. Nothing is lost when the future is dropped before.
    fn wait(&mut self) -> Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + '_>>;

    /// Ends it at once, whatever it has become, and all that it has started.
    fn kill(&mut self);
}

impl From<PathBuf> for Program {
    fn from(file: PathBuf) -> Self {
        Self { file, launcher: Arc::new(Executables) }
    }
}

/// Has the system execute the program.
struct Executables;

impl Launcher for Executables {
    fn launch(&self, Launch { program, user, descriptors }: Launch<'_>) -> io::Result<Box<dyn EngineChild>> {
        let mut command = Command::new(program);
        // A group of its own: it is killed with what its scripts have started, and a Ctrl-C on the terminal is for the
        // server, which drains its engines.
        command.stdin(Stdio::null()).kill_on_drop(true).process_group(0);
        SERVICE_MANAGERS.into_iter().for_each(|name| {
            command.env_remove(name);
        });
        command.fd_mappings(mappings(descriptors)).map_err(io::Error::other)?;
        let child = spawn_as(user, &mut command)?;
        Ok(Box::new(Group(child)))
    }
}

fn mappings(Descriptors { memory, control, doorbells }: Descriptors) -> Vec<FdMapping> {
    let fixed = [(memory, descriptors::MEMORY), (control, descriptors::CONTROL)];
    let all = fixed.into_iter().chain(doorbells.into_iter().zip(descriptors::DOORBELLS..));
    all.map(|(parent_fd, child_fd)| FdMapping { parent_fd, child_fd }).collect()
}

/// Starts the program as this user, who is in no group but the one that is named.
pub(crate) fn spawn_as(user: Option<&EngineUser>, command: &mut Command) -> io::Result<Child> {
    // As itself, a server without rights may run it too.
    let Some(user) = user.filter(|user| user.uid != rustix::process::geteuid().as_raw()) else {
        return command.spawn();
    };
    // Its rights would be those of whoever may change its configuration.
    if user.uid == 0 {
        return Err(not_allowed(user, "a server that is not root starts nothing as root"));
    }
    let missing = regent_rights::missing_to_change_users();
    match user.wish {
        _ if missing.is_empty() => {}
        UserWish::Firm => return Err(not_allowed(user, &format!("the server lacks {}", missing.join(", ")))),
        UserWish::IfPossible => {
            if rustix::process::geteuid().is_root() {
                tracing::warn!(
                    user = user.name,
                    ?missing,
                    "PHP runs as root: the server lacks what it takes to change users"
                );
            }
            return command.spawn();
        }
    }
    // It belongs to no other groups then: see std's `CommandExt::uid`.
    command.uid(user.uid).gid(user.gid);
    // Programs of scripts look for their settings there.
    if let Some(home) = &user.home {
        command.env("HOME", &home.directory).env("SHELL", &home.shell);
        command.env("USER", &user.name).env("LOGNAME", &user.name);
    }
    command.spawn().map_err(|cause| match cause.kind() {
        io::ErrorKind::PermissionDenied => not_allowed(user, &cause.to_string()),
        _ => cause,
    })
}

fn not_allowed(user: &EngineUser, cause: &str) -> io::Error {
    let name = &user.name;
    let message = format!(
        "it cannot be run as the user `{name}` ({cause}): start the server as root, or with the capabilities CAP_SETUID, \
         CAP_SETGID and CAP_KILL, and let that user execute the program; or leave out `user {name}`"
    );
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

/// A child, which leads a group of processes.
struct Group(Child);

impl EngineChild for Group {
    fn id(&self) -> Option<u32> {
        self.0.id()
    }

    fn wait(&mut self) -> Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + '_>> {
        Box::pin(self.0.wait())
    }

    /// What it has started and has not left its group.
    fn kill(&mut self) {
        self.kill_group();
        // It has ended already otherwise. It may have gone to another group.
        let _ = self.0.start_kill();
    }
}

impl Group {
    /// The number of the group belongs to no other as long as the process has not been waited for.
    fn kill_group(&self) {
        let pid = self.0.id().and_then(|pid| Pid::from_raw(pid as i32));
        // It has left it otherwise, and nobody is in it.
        let _ = pid.map(|pid| kill_process_group(pid, Signal::KILL));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill_group();
    }
}
