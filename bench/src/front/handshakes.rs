//! Handshakes, by `openssl s_time`: one connection after the other in each of some processes.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::case::Handshake;
use crate::interrupt::Interrupt;
use crate::load::figures::Figures;

/// As many clients at once.
const CLIENTS: usize = 4;

pub fn measure(kind: Handshake, port: u16, duration: Duration, interrupt: &Interrupt) -> Result<Figures> {
    interrupt.check()?;
    let outputs = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| client(kind, port, duration))).collect();
        let joined = clients.into_iter().map(|client| client.join().expect("it does not panic"));
        joined.collect::<Result<Vec<_>>>()
    })?;
    interrupt.check()?;
    let mut figures = Figures::default();
    for output in outputs {
        let counts = count(&output)?;
        let (right, wrong) = match kind {
            Handshake::Full => (counts.full, counts.resumed),
            // The first of a client is full.
            Handshake::Resumed => (counts.resumed, counts.full.saturating_sub(1)),
        };
        figures.done += right;
        figures.failed += wrong;
    }
    figures.per_second = figures.done as f64 / duration.as_secs_f64();
    Ok(figures)
}

/// A ticket of TLS 1.3 comes behind the handshake, so that the client has to read something: it asks for a page. TLS 1.2
/// resumes without, which all servers are measured with.
fn client(kind: Handshake, port: u16, duration: Duration) -> Result<String> {
    let mut command = Command::new("openssl");
    command.args(["s_time", "-connect", &format!("127.0.0.1:{port}")]);
    command.args(["-time", &duration.as_secs().to_string()]);
    match kind {
        Handshake::Full => command.arg("-new"),
        Handshake::Resumed => command.args(["-reuse", "-tls1_2"]),
    };
    let output = command.stdin(Stdio::null()).output().context("openssl could not be started")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success(),
        "openssl s_time failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(text)
}

#[derive(Debug, PartialEq, Eq)]
struct Counts {
    full: u64,
    resumed: u64,
}

/// It writes a sign for each connection: `r` for one that was resumed, `*` for others, in the line before the summary.
fn count(output: &str) -> Result<Counts> {
    let signs = |sign: char| {
        let is_of_signs =
            |line: &&str| !line.is_empty() && line.chars().all(|c| matches!(c, 'r' | '*' | 't'));
        output.lines().filter(is_of_signs).map(|line| line.matches(sign).count() as u64).sum()
    };
    let counts = Counts { full: signs('*'), resumed: signs('r') };
    ensure!(counts.full + counts.resumed > 0, "openssl s_time made no connection:\n{output}");
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_counted_and_words_are_not() {
        let output = "Collecting connection statistics for 1 seconds\n***\n\n3 connections in 0.01s; 300.00 connections/user sec, bytes read 0\n";
        assert_eq!(count(output).expect("valid"), Counts { full: 3, resumed: 0 });
        let output =
            "starting\n\n\nNow timing with session id reuse.\nstarting\nrrrr\n\n4 connections in 0.01s\n";
        assert_eq!(count(output).expect("valid"), Counts { full: 0, resumed: 4 });
        assert!(count("ERROR\n").is_err());
    }
}
