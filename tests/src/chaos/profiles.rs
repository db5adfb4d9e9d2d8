//! Profiles that are taken of the PHP code one after the other, whatever happens to it meanwhile.

use super::Clock;
use crate::{Admin, Response};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Of a second, and twice as many looks as by itself.
const TARGET: &str = "/regent/profile?format=json&seconds=1&hertz=200";
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(500);

/// What became of them.
#[derive(Debug, Default)]
pub struct Profiles {
    /// Of an engine that lived for so long.
    pub taken: usize,
    /// Samples in them.
    pub samples: u64,
    /// The engine had ended meanwhile, or the server's process had.
    pub cut_off: usize,
    /// What else they were answered.
    pub wrong: Vec<String>,
}

impl Profiles {
    /// Takes them until told that it is over.
    pub fn take(admin: &Admin, clock: &Clock, is_over: &AtomicBool) -> Self {
        let mut profiles = Self::default();
        while !is_over.load(Relaxed) {
            profiles.note(admin.request("GET", TARGET).try_send());
            clock.sleep_until(clock.now() + PAUSE);
        }
        profiles
    }

    fn note(&mut self, answer: std::io::Result<Response>) {
        let Ok(answer) = answer else {
            self.cut_off += 1;
            return;
        };
        match (answer.status, samples(&answer)) {
            (200, Some(samples)) => {
                self.taken += 1;
                self.samples += samples;
            }
            (503, _) => self.cut_off += 1,
            _ => self.wrong.push(format!("{} {:.300}", answer.status, answer.text())),
        }
    }
}

fn samples(answer: &Response) -> Option<u64> {
    let profile: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    profile["stacks"].as_array()?.iter().map(|stack| stack["samples"].as_u64()).sum()
}
