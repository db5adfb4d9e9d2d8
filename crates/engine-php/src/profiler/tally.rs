//! How often each stack was seen.

use regent_wire::control::ProfiledStack;
use std::collections::HashMap;
use std::time::Duration;

/// Different stacks that are kept; samples with others are only counted.
const MOST_STACKS: usize = 10_000;
/// Functions in all stacks together.
const MOST_FUNCTIONS: usize = 400_000;

#[derive(Default)]
pub struct Tally {
    stacks: HashMap<(u32, Vec<u32>), Seen>,
    functions: usize,
    lost: u64,
}

#[derive(Default)]
struct Seen {
    samples: u64,
    cpu: Duration,
}

impl Tally {
    /// A thread was at a request for this path, in these functions (the outermost first), and has spent `cpu` since the last
    /// look.
    pub fn count(&mut self, path: u32, functions: Vec<u32>, cpu: Duration) {
        let stack = (path, functions);
        if let Some(seen) = self.stacks.get_mut(&stack) {
            seen.add(cpu);
        } else if self.stacks.len() < MOST_STACKS && self.functions + stack.1.len() <= MOST_FUNCTIONS {
            self.functions += stack.1.len();
            self.stacks.entry(stack).or_default().add(cpu);
        } else {
            self.lost += 1;
        }
    }

    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The most frequent first.
    pub fn into_stacks(self) -> Vec<ProfiledStack> {
        let stack = |((path, functions), seen): ((u32, Vec<u32>), Seen)| ProfiledStack {
            path,
            functions,
            samples: seen.samples,
            cpu_us: seen.cpu.as_micros() as u64,
        };
        let mut stacks: Vec<_> = self.stacks.into_iter().map(stack).collect();
        stacks.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.functions.cmp(&b.functions)));
        stacks
    }
}

impl Seen {
    fn add(&mut self, cpu: Duration) {
        self.samples += 1;
        self.cpu += cpu;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_of_a_path_are_one() {
        let mut tally = Tally::default();
        let tick = Duration::from_micros(10);
        for (path, functions) in [(0, vec![1, 2]), (0, vec![1, 2]), (1, vec![1, 2]), (0, vec![1])] {
            tally.count(path, functions, tick);
        }
        let stacks = tally.into_stacks();
        assert_eq!(stacks.len(), 3);
        assert_eq!((stacks[0].samples, stacks[0].cpu_us, &*stacks[0].functions), (2, 20, &[1, 2][..]));
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut tally = Tally::default();
        for i in 0..MOST_STACKS as u32 + 5 {
            tally.count(0, vec![i], Duration::ZERO);
        }
        tally.count(0, vec![1], Duration::ZERO);
        assert_eq!(tally.lost(), 5);
        let deep = vec![7; MOST_FUNCTIONS];
        tally.count(0, deep, Duration::ZERO);
        assert_eq!(tally.lost(), 6);
        assert_eq!(tally.into_stacks()[0].samples, 2);
    }
}
