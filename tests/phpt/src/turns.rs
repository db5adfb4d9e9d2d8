//! Tests that cannot run at the same time, as they say in CONFLICTS sections, or in a file of that name for their
//! directory.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard};

/// The name that conflicts with every test.
const ALL: &str = "all";

#[derive(Default)]
pub struct Turns {
    running: Mutex<Running>,
    ended: Condvar,
}

#[derive(Default)]
struct Running {
    tests: usize,
    names: BTreeSet<String>,
}

/// A test's turn; its drop ends it.
pub struct Turn<'a> {
    turns: &'a Turns,
    names: BTreeSet<String>,
}

impl Turns {
    /// Waits until no test runs that uses one of these names.
    pub fn take(&self, names: BTreeSet<String>) -> Turn<'_> {
        let mut running = self.running();
        while running.conflicts_with(&names) {
            running = self.ended.wait(running).expect("no holder panics");
        }
        running.tests += 1;
        running.names.extend(names.iter().cloned());
        Turn { turns: self, names }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().expect("no holder panics")
    }
}

impl Running {
    fn conflicts_with(&self, names: &BTreeSet<String>) -> bool {
        self.names.contains(ALL) || (names.contains(ALL) && self.tests > 0) || !self.names.is_disjoint(names)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut running = self.turns.running();
        running.tests -= 1;
        running.names.retain(|name| !self.names.contains(name));
        self.turns.ended.notify_all();
    }
}

/// The names in a CONFLICTS section or file (parse_conflicts() of run-tests.php).
pub fn names(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_held_until_its_test_ends() {
        let turns = Turns::default();
        let first = turns.take(names("# remark\nserver\n"));
        assert!(turns.running().conflicts_with(&names("server\nother")));
        assert!(turns.running().conflicts_with(&names("all")));
        assert!(!turns.running().conflicts_with(&names("other")));
        drop(first);
        let _alone = turns.take(names("all"));
        assert!(turns.running().conflicts_with(&BTreeSet::new()));
    }
}
