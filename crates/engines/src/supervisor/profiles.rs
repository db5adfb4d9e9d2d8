//! Profiles of an engine's threads, as it sends them: in parts, which are checked and put together here.

use super::State;
use super::commands::CommandRefused;
use super::overdue::{LONGEST_TEXT, text_of};
use regent_profile::{Function, Profile, Stack};
use regent_wire::control::{ProfileOrder, ProfilePart};
use std::time::Duration;
use tokio::sync::oneshot;

pub(super) type ProfileAnswer = oneshot::Sender<Result<Profile, CommandRefused>>;

/// What an engine may send at most; ours send less.
const MOST_FUNCTIONS: usize = 32_768;
const MOST_PATHS: usize = 1024;
const MOST_STACKS: usize = 16_384;
const MOST_FUNCTIONS_IN_STACKS: usize = 1 << 20;
/// Bytes of all texts.
const MOST_TEXT: usize = 16 << 20;

/// What is to be profiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileWish {
    /// `None`: all pools.
    pub pool: Option<usize>,
    /// Only requests whose path begins so.
    pub path: String,
    pub duration: Duration,
    /// Looks a second.
    pub hertz: u32,
}

/// The profile that is being taken. There is one at a time: each costs the site processor time.
#[derive(Default)]
pub(super) struct Profiles {
    orders: u64,
    current: Option<Current>,
}

struct Current {
    generation: u64,
    number: u64,
    answer: ProfileAnswer,
    profile: Profile,
    text: usize,
    functions_in_stacks: usize,
    /// Of the processes that have not sent all of theirs.
    waits_for: Vec<Numbering>,
}

/// What numbers the functions and paths of a process have in the whole.
struct Numbering {
    process: u16,
    functions: Vec<u32>,
    paths: Vec<u32>,
}

/// An engine has sent what is no part of a profile.
struct Unusable;

impl State {
    /// Asks the current engine.
    pub fn profile(&mut self, wish: ProfileWish, answer: ProfileAnswer) {
        let profiles = &mut self.profiles;
        if profiles.current.as_ref().is_some_and(|current| !current.answer.is_closed()) {
            // Who asked may have gone.
            let _ = answer.send(Err(CommandRefused::ProfileUnderWay));
            return;
        }
        profiles.orders += 1;
        let current = &self.generations.current;
        let asked = current.profile(&ProfileOrder {
            number: profiles.orders,
            duration_ms: wish.duration.as_millis() as u64,
            hertz: wish.hertz,
            pool: wish.pool.map(|pool| pool as u16),
            path: wish.path,
        });
        profiles.current = Some(Current {
            generation: current.id,
            number: profiles.orders,
            answer,
            profile: Profile::default(),
            text: 0,
            functions_in_stacks: 0,
            waits_for: asked.into_iter().map(Numbering::of).collect(),
        });
    }

    pub fn profiled(&mut self, generation: u64, process: u16, part: ProfilePart) {
        let is_meant =
            |current: &mut Current| current.generation == generation && current.number == part.number;
        let Some(mut current) = self.profiles.current.take_if(is_meant) else { return };
        let end = part.end;
        if current.add(process, part).is_err() {
            let reason = "the engine has sent a profile that makes no sense".to_owned();
            let _ = current.answer.send(Err(CommandRefused::Unavailable(reason)));
            return;
        }
        if let Some(end) = end {
            let profile = &mut current.profile;
            profile.duration = profile.duration.max(Duration::from_millis(end.duration_ms));
            profile.looks = profile.looks.max(end.looks);
            profile.lost = profile.lost.saturating_add(end.lost);
        }
        self.profiles.current = Some(current);
        if end.is_some() {
            self.profile_of_process_ended(generation, process);
        }
    }

    /// Nothing more comes of this process: it has sent all, or has ended.
    pub fn profile_of_process_ended(&mut self, generation: u64, process: u16) {
        let is_last = |current: &mut Current| {
            current.waits_for.retain(|of| current.generation != generation || of.process != process);
            current.waits_for.is_empty()
        };
        if let Some(current) = self.profiles.current.take_if(is_last) {
            // Who asked may have gone.
            let _ = current.answer.send(Ok(current.profile));
        }
    }

    pub fn profile_refused(&mut self, generation: u64, number: u64, reason: &str) {
        let is_meant = |current: &mut Current| current.generation == generation && current.number == number;
        if let Some(current) = self.profiles.current.take_if(is_meant) {
            // Who asked may have gone.
            let reason = CommandRefused::Unavailable(text_of(reason, LONGEST_TEXT));
            let _ = current.answer.send(Err(reason));
        }
    }

    /// An engine is gone.
    pub fn forget_profile(&mut self, generation: u64) {
        // Who asked sees that there is no answer.
        self.profiles.current.take_if(|current| current.generation == generation);
    }
}

impl Numbering {
    fn of(process: u16) -> Self {
        Self { process, functions: Vec::new(), paths: Vec::new() }
    }
}

impl Current {
    fn add(&mut self, process: u16, part: ProfilePart) -> Result<(), Unusable> {
        let own = self.waits_for.iter_mut().find(|of| of.process == process).ok_or(Unusable)?;
        let profile = &mut self.profile;
        let numbers = |from: usize, more: usize| (from..from + more).map(|number| number as u32);
        own.functions.extend(numbers(profile.functions.len(), part.functions.len()));
        own.paths.extend(numbers(profile.paths.len(), part.paths.len()));
        let text = part.functions.iter().map(|function| function.name.len() + function.file.len());
        self.text += text.chain(part.paths.iter().map(String::len)).sum::<usize>();
        let functions = part.functions.into_iter();
        profile
            .functions
            .extend(functions.map(|function| Function { name: function.name, file: function.file }));
        profile.paths.extend(part.paths);
        for stack in part.stacks {
            let known = |function: &u32| own.functions.get(*function as usize).copied();
            let functions: Option<Vec<u32>> = stack.functions.iter().map(known).collect();
            let path = own.paths.get(stack.path as usize).copied();
            let (Some(path), Some(functions)) = (path, functions) else { return Err(Unusable) };
            if functions.is_empty() {
                return Err(Unusable);
            }
            self.functions_in_stacks += functions.len();
            profile.stacks.push(Stack {
                path,
                functions,
                samples: stack.samples,
                cpu: Duration::from_micros(stack.cpu_us),
            });
        }
        let is_bounded = profile.functions.len() <= MOST_FUNCTIONS
            && profile.paths.len() <= MOST_PATHS
            && profile.stacks.len() <= MOST_STACKS
            && self.functions_in_stacks <= MOST_FUNCTIONS_IN_STACKS
            && self.text <= MOST_TEXT;
        if is_bounded { Ok(()) } else { Err(Unusable) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_wire::control::{ProfiledFunction, ProfiledStack};

    fn current() -> Current {
        Current {
            generation: 0,
            number: 1,
            answer: oneshot::channel().0,
            profile: Profile::default(),
            text: 0,
            functions_in_stacks: 0,
            waits_for: [0, 1].map(Numbering::of).into(),
        }
    }

    fn part(functions: usize, stacks: Vec<Vec<u32>>) -> ProfilePart {
        let function = |i| ProfiledFunction { name: format!("f{i}"), file: String::new() };
        let stack = |functions| ProfiledStack { path: 0, functions, samples: 1, cpu_us: 5 };
        ProfilePart {
            number: 1,
            functions: (0..functions).map(function).collect(),
            paths: vec!["/".into()],
            stacks: stacks.into_iter().map(stack).collect(),
            end: None,
        }
    }

    #[test]
    fn parts_add_up_and_name_what_came_before() {
        let mut current = current();
        assert!(current.add(0, part(2, vec![vec![0, 1]])).is_ok());
        assert!(current.add(0, part(1, vec![vec![0, 2], vec![1]])).is_ok());
        assert_eq!((current.profile.functions.len(), current.profile.stacks.len()), (3, 3));
        assert_eq!(current.profile.stacks[0].cpu, Duration::from_micros(5));
    }

    #[test]
    fn each_process_has_numbers_of_its_own() {
        let mut current = current();
        assert!(current.add(0, part(2, vec![vec![0, 1]])).is_ok());
        assert!(current.add(1, part(1, vec![vec![0]])).is_ok());
        assert!(current.add(0, part(1, vec![vec![2]])).is_ok());
        let stacks: Vec<_> =
            current.profile.stacks.iter().map(|stack| (stack.path, stack.functions.clone())).collect();
        assert_eq!(stacks, [(0, vec![0, 1]), (1, vec![2]), (0, vec![3])]);
        assert!(current.add(1, part(0, vec![vec![1]])).is_err(), "of the other process");
        assert!(current.add(2, part(0, vec![])).is_err(), "nobody has asked it");
    }

    #[test]
    fn a_part_that_names_what_is_not_there_or_is_too_much_is_unusable() {
        for bad in [vec![vec![2]], vec![vec![u32::MAX]], vec![vec![]]] {
            assert!(current().add(0, part(2, bad)).is_err());
        }
        assert!(current().add(0, part(MOST_FUNCTIONS + 1, vec![])).is_err());
        assert!(current().add(0, part(1, vec![vec![0]; MOST_STACKS + 1])).is_err());
        assert!(current().add(0, part(1, vec![vec![0; MOST_FUNCTIONS_IN_STACKS + 1]])).is_err());
        let mut long = part(1, vec![]);
        long.functions[0].name = "x".repeat(MOST_TEXT + 1);
        assert!(current().add(0, long).is_err());
    }
}
