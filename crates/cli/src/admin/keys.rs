//! What a person types, and what else happens to a terminal.
//!
//! Not crossterm's events: its reader never returns from a terminal that has hung up, and a program whose SSH session
//! broke off would spin for ever, deaf to signals too.

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGTERM, SIGWINCH};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const ESCAPE: u8 = 0x1b;

/// The standard input in raw mode, and the signals that concern a terminal.
pub struct Keys {
    end: Arc<AtomicBool>,
    resize: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    Nothing,
    Resize,
    /// `q`, Escape, Ctrl-C, Ctrl-D, a signal to end, or the end of the terminal itself.
    End,
}

impl Keys {
    pub fn new() -> Result<Self> {
        let keys = Self { end: Arc::default(), resize: Arc::default() };
        for signal in [SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&keys.end))?;
        }
        signal_hook::flag::register(SIGWINCH, Arc::clone(&keys.resize))?;
        Ok(keys)
    }

    /// Waits so long at most for something to happen.
    pub fn glance(&self, longest: Duration) -> Result<Seen> {
        let typed = read(longest)?;
        Ok(
            if self.end.load(Ordering::Relaxed)
                || typed.is_some_and(|typed| typed.is_empty() || means_end(&typed))
            {
                Seen::End
            } else if self.resize.swap(false, Ordering::Relaxed) {
                Seen::Resize
            } else {
                Seen::Nothing
            },
        )
    }
}

/// What was typed; nothing at the end of the terminal, `None` when there is no news of it.
fn read(longest: Duration) -> Result<Option<Vec<u8>>> {
    let input = io::stdin();
    let timeout = Timespec::try_from(longest)?;
    match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&timeout)) {
        Ok(0) | Err(Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut typed = vec![0; 64];
    match rustix::io::read(&input, &mut typed) {
        Ok(length) => typed.truncate(length),
        Err(Errno::INTR | Errno::AGAIN) => return Ok(None),
        // It has hung up.
        Err(Errno::IO) => typed.clear(),
        Err(error) => return Err(error.into()),
    }
    Ok(Some(typed))
}

/// Keys that are no characters are skipped: sequences that begin with an escape.
fn means_end(typed: &[u8]) -> bool {
    match typed {
        [] => false,
        [ESCAPE] => true,
        [ESCAPE, b'[', sequence @ ..] => {
            let last = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte));
            last.is_some_and(|last| means_end(&sequence[last + 1..]))
        }
        [ESCAPE, b'O', _, rest @ ..] | [ESCAPE, _, rest @ ..] => means_end(rest),
        [key, rest @ ..] => matches!(key, b'q' | b'Q' | &CTRL_C | &CTRL_D) || means_end(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_end_it() {
        for typed in [b"q".as_slice(), b"Q", b"\x03", b"\x04", b"\x1b", b"jjq", b"\x1b[Aq"] {
            assert!(means_end(typed), "{typed:?}");
        }
        for typed in [b"x".as_slice(), b"\x1b[A", b"\x1b[1;5q", b"\x1bOq", b"\x1b[1", b"\r"] {
            assert!(!means_end(typed), "{typed:?}");
        }
    }
}
