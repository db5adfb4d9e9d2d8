//! One at a time: what makes two processes that talk to each other take the same path in every run.
//!
//! Whether the server's I/O thread still runs when the answer of PHP comes decides whether it has to be woken, which is
//! a tenth of its instructions. On one CPU, and with a policy under which a process that is woken never interrupts the
//! one that runs (sched(7), `SCHED_BATCH`), each works until it has nothing left to do: first the server, which
//! then sleeps; then PHP, which wakes it and goes on until it sleeps too; then the server again; then the client.
//!
//! One CPU also means one I/O thread, on any machine.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Puts this process, and all that it starts from now on, on one CPU and under `SCHED_BATCH`.
pub fn take_turns_on_one_cpu() -> Result<()> {
    let mut one = CpuSet::new();
    one.set(last_cpu(&sched_getaffinity(None).context("asking for the CPUs that may be used")?)?);
    sched_setaffinity(None, &one).context("staying on one CPU")?;
    become_batch()
}

/// Not the first: that one has most of the machine's interrupts.
fn last_cpu(allowed: &CpuSet) -> Result<usize> {
    (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).context("this process may use no CPU")
}

fn become_batch() -> Result<()> {
    let output = Command::new("chrt")
        .args(["--batch", "--pid", "0", &std::process::id().to_string()])
        .stdin(Stdio::null())
        .output()
        .context("running chrt, which is in the package util-linux")?;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "chrt --batch failed: {}", message.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_the_allowed_cpus_is_taken() {
        let mut allowed = CpuSet::new();
        assert!(last_cpu(&allowed).is_err());
        allowed.set(2);
        allowed.set(5);
        assert_eq!(last_cpu(&allowed).expect("two are allowed"), 5);
    }
}
