//! Which generations of an engine there are, and which of them gets new requests.

use super::generation::{Generation, GenerationView};
use regent_wire::Repeats;

/// The generations of one engine.
pub(super) struct Generations {
    /// Gets new requests. It may have died, or be about to start, and then they wait in its memory.
    pub current: Generation,
    /// Is started to take the place of `current`, which still serves.
    pub replacement: Option<Generation>,
    /// Have been replaced, and finish what they have begun.
    draining: Vec<Generation>,
}

/// What becomes of the generation that is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// What of its requests may be run again is.
    Dead(Repeats),
    /// It finishes what it has begun.
    Drains,
}

/// What a generation is at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Current,
    Replacement,
    Draining,
    /// It has been given up, or has ended.
    Gone,
}

impl Generations {
    pub fn new(first: Generation) -> Self {
        Self { current: first, replacement: None, draining: Vec::new() }
    }

    pub fn role(&self, id: u64) -> Role {
        if self.current.id == id {
            Role::Current
        } else if self.replacement.as_ref().is_some_and(|replacement| replacement.id == id) {
            Role::Replacement
        } else if self.draining.iter().any(|draining| draining.id == id) {
            Role::Draining
        } else {
            Role::Gone
        }
    }

    pub fn get(&self, id: u64) -> Option<&Generation> {
        self.iter().find(|generation| generation.id == id)
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut Generation> {
        self.iter_mut().find(|generation| generation.id == id)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Generation> {
        std::iter::once(&mut self.current).chain(&mut self.replacement).chain(&mut self.draining)
    }

    fn iter(&self) -> impl Iterator<Item = &Generation> {
        std::iter::once(&self.current).chain(&self.replacement).chain(&self.draining)
    }

    /// For lists, newest first.
    pub fn views(&self) -> Vec<GenerationView> {
        let mut generations: Vec<&Generation> = self.iter().collect();
        generations.sort_by_key(|generation| std::cmp::Reverse(generation.id));
        generations.into_iter().map(Generation::view).collect()
    }

    /// New requests are for `next` from now on. Returns the generation before if it is dead; otherwise it is told to drain.
    pub fn swap(&mut self, next: Generation, fate: Fate) -> Option<Generation> {
        let old = std::mem::replace(&mut self.current, next);
        match fate {
            Fate::Dead(_) => Some(old),
            Fate::Drains => {
                old.drain();
                self.draining.push(old);
                None
            }
        }
    }

    /// Takes out a draining generation that has ended.
    pub fn take_drained(&mut self, id: u64) -> Option<Generation> {
        let index = self.draining.iter().position(|draining| draining.id == id)?;
        Some(self.draining.remove(index))
    }

    /// All of them, to be ended.
    pub fn into_all(self) -> Vec<Generation> {
        let Self { current, replacement, draining } = self;
        draining.into_iter().chain([current]).chain(replacement).collect()
    }
}
