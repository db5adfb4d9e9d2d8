//! A profile on its way to the server: in parts, each an event of the control socket.

use super::names::Names;
use super::tally::Tally;
use regent_engine_host::Reporter;
use regent_wire::control::{Event, MAX_EVENT, ProfileEnd, ProfilePart};

/// Bytes of a part, as far as they are foreseen: as JSON a byte of a text takes six at most.
const PART: usize = MAX_EVENT / 8;
/// Bytes that a part's keys and numbers take for each of its entries.
const ENTRY: usize = 80;

pub fn send(number: u64, names: Names, tally: Tally, end: ProfileEnd, reporter: &Reporter) {
    for part in parts(number, names, tally, end) {
        // Whoever waits for a profile that lacks a part is told that it has failed.
        if !reporter.deliver(&Event::Profiled(part)) {
            return;
        }
    }
}

fn parts(number: u64, names: Names, tally: Tally, end: ProfileEnd) -> Vec<ProfilePart> {
    let (functions, paths) = names.into_texts();
    let mut parts =
        Parts { number, done: Vec::new(), open: ProfilePart { number, ..Default::default() }, size: 0 };
    for function in functions {
        parts.make_room(function.name.len() + function.file.len());
        parts.open.functions.push(function);
    }
    for path in paths {
        parts.make_room(path.len());
        parts.open.paths.push(path);
    }
    for stack in tally.into_stacks() {
        parts.make_room(stack.functions.len() * 6);
        parts.open.stacks.push(stack);
    }
    parts.open.end = Some(end);
    parts.done.push(parts.open);
    parts.done
}

struct Parts {
    number: u64,
    done: Vec<ProfilePart>,
    open: ProfilePart,
    size: usize,
}

impl Parts {
    fn make_room(&mut self, size: usize) {
        self.size += size + ENTRY;
        if self.size > PART {
            self.size = size + ENTRY;
            let empty = ProfilePart { number: self.number, ..Default::default() };
            self.done.push(std::mem::replace(&mut self.open, empty));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_wire::control::encode;
    use std::time::Duration;

    #[test]
    fn every_part_fits_into_an_event_and_only_the_last_has_the_end() {
        let (mut names, mut tally) = (Names::default(), Tally::default());
        for i in 0..500 {
            let path = names.path(&format!("/{i}/{}", "\u{1}".repeat(230)));
            tally.count(
                path,
                (0..256).map(|function| 19_000 + function + i).collect(),
                Duration::from_secs(1),
            );
        }
        let parts = parts(7, names, tally, ProfileEnd { looks: 3, ..Default::default() });
        assert!(parts.len() > 10, "{}", parts.len());
        for part in &parts {
            assert!(encode(&Event::Profiled(part.clone())).len() < MAX_EVENT);
            assert_eq!(part.number, 7);
        }
        let (last, others) = parts.split_last().unwrap();
        assert_eq!(last.end.unwrap().looks, 3);
        assert!(others.iter().all(|part| part.end.is_none()));
        assert_eq!(parts.iter().map(|part| part.stacks.len()).sum::<usize>(), 500);
        assert_eq!(parts.iter().map(|part| part.paths.len()).sum::<usize>(), 257);
    }
}
