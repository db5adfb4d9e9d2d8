//! Other programs on the machine that take all of the CPU that they get.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Ends with the bench, also one that is killed.
const LOOP: &str =
    "while kill -0 $PPID 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done";

/// Some of them, each in a session of its own, so that the kernel gives each as much as all of a server's processes
/// together (autogroups, sched(7)). They end with this value.
#[derive(Debug)]
pub struct EndlessLoops(Vec<Child>);

impl EndlessLoops {
    pub fn start(count: usize) -> Result<Self> {
        let mut loops = Self(Vec::with_capacity(count));
        for _ in 0..count {
            let mut command = Command::new("setsid");
            command.args(["sh", "-c", LOOP]).stdin(Stdio::null()).stdout(Stdio::null());
            loops.0.push(command.spawn().context("setsid (of util-linux) could not be started")?);
        }
        Ok(loops)
    }
}

impl Drop for EndlessLoops {
    fn drop(&mut self) {
        for program in &mut self.0 {
            // It is not waited for yet, so its id is its own. Errors: already gone.
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_session_of_its_own_and_ends_with_the_value() {
        let loops = EndlessLoops::start(2).expect("they start");
        let paths: Vec<String> = loops.0.iter().map(|program| format!("/proc/{}", program.id())).collect();
        for (program, path) in loops.0.iter().zip(&paths) {
            let session = || {
                let stat = std::fs::read_to_string(format!("{path}/stat")).expect("it runs");
                // Behind the name: state, parent, group, session.
                stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(3)?.parse::<u32>().ok())
            };
            while session() != Some(program.id()) {
                std::thread::yield_now();
            }
        }
        drop(loops);
        assert!(paths.iter().all(|path| !std::path::Path::new(path).exists()));
    }
}
