//! `regent start`: a server in the background.

use crate::arguments::Config;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Between two looks whether the server has ended before it served.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes of the longest message that is read.
const LONGEST: usize = 4096;

/// Starts a server that goes on when this program ends, and returns its process ID when it serves.
///
/// # Errors
/// When the server ends before it serves; it has said why.
pub fn start(config: &Config) -> Result<u32> {
    let directory = tempfile::tempdir().context("making a directory for the server's socket")?;
    let path = directory.path().join("ready");
    let socket = UnixDatagram::bind(&path).with_context(|| format!("binding {}", path.display()))?;
    socket.set_read_timeout(Some(LOOK))?;
    let program = std::env::current_exe().context("this program's own path is unknown")?;
    let mut server = Command::new(program)
        .args(as_run(std::env::args_os().skip(1)))
        .env("NOTIFY_SOCKET", &path)
        .env_remove("WATCHDOG_USEC")
        .stdin(if config.is_input() { Stdio::inherit() } else { Stdio::null() })
        .spawn()
        .context("starting the server")?;
    wait_until_ready(&socket, &mut server)?;
    Ok(server.id())
}

/// The same arguments for `run`.
fn as_run(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<_> = arguments.collect();
    if let Some(command) = arguments.iter_mut().find(|argument| *argument == "start") {
        *command = "run".into();
    }
    arguments.push("--detach".into());
    arguments
}

fn wait_until_ready(socket: &UnixDatagram, server: &mut Child) -> Result<()> {
    let mut message = [0; LONGEST];
    loop {
        match socket.recv(&mut message) {
            Ok(length) if message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1") => {
                return Ok(());
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if let Some(status) = server.try_wait()? {
                    bail!("the server has ended before it served ({status})");
                }
            }
            Err(error) => return Err(error).context("waiting for the server"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_told_what_start_was_told() {
        let arguments = ["start", "--config", "start"].into_iter().map(OsString::from);
        assert_eq!(as_run(arguments), ["run", "--config", "start", "--detach"]);
    }
}
