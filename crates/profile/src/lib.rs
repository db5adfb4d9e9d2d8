//! A profile of PHP code: how often threads were seen in which functions, and the forms in which people look at that.
#![forbid(unsafe_code)]

mod flame_graph;
mod folded;
mod picture;
mod speedscope;

use serde::Serialize;
use std::time::Duration;

/// What was seen in a while.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Named by [`Stack::functions`].
    pub functions: Vec<Function>,
    /// Paths of requests, named by [`Stack::path`].
    pub paths: Vec<String>,
    pub stacks: Vec<Stack>,
    #[serde(serialize_with = "milliseconds", rename = "duration_milliseconds")]
    pub duration: Duration,
    /// Looks at all threads.
    pub looks: u64,
    /// Samples that are in no stack, since there were too many different ones.
    pub lost: u64,
}

/// A function of PHP.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Function {
    /// `Class::function`; empty: the code of a file outside of functions.
    pub name: String,
    /// Empty of functions that are not written in PHP.
    pub file: String,
}

/// Threads were at a request for this path, in these functions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stack {
    pub path: u32,
    /// The outermost first.
    pub functions: Vec<u32>,
    pub samples: u64,
    /// What the threads spent on a CPU.
    #[serde(serialize_with = "microseconds", rename = "cpu_microseconds")]
    pub cpu: Duration,
}

/// What a stack's weight is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Time that passed, waiting included.
    Wall,
    /// Time on a CPU.
    Cpu,
}

/// How a profile is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A flame graph, as a page that needs nothing else.
    Html,
    /// The same as a picture (SVG), in which nothing can be clicked.
    Svg,
    /// A line for each stack, as tools that draw flame graphs read it.
    Folded(Measure),
    /// The file format of speedscope.
    Speedscope,
    /// The profile itself.
    Json,
}

impl Profile {
    /// As text. `title`: what was profiled.
    pub fn write(&self, format: Format, title: &str) -> String {
        match format {
            Format::Html => flame_graph::page(self, title),
            Format::Svg => picture::svg(self, title),
            Format::Folded(measure) => folded::lines(self, measure),
            Format::Speedscope => speedscope::file(self, title),
            Format::Json => serde_json::to_string(self).expect("invariant: a profile has text keys only"),
        }
    }

    /// Samples in all stacks.
    pub fn samples(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.samples).sum()
    }

    /// The time that a sample stands for.
    fn step(&self) -> Duration {
        self.duration.checked_div(u32::try_from(self.looks).unwrap_or(u32::MAX)).unwrap_or_default()
    }

    fn microseconds_of(&self, stack: &Stack, measure: Measure) -> u64 {
        match measure {
            Measure::Wall => (self.step().as_micros() as u64).saturating_mul(stack.samples),
            Measure::Cpu => stack.cpu.as_micros() as u64,
        }
    }

    /// What people call the function; the outermost one is the script.
    fn label(&self, stack: &Stack, depth: usize) -> String {
        let Some(function) = self.functions.get(stack.functions[depth] as usize) else {
            return String::new();
        };
        match (function.name.is_empty(), depth) {
            (false, _) => function.name.clone(),
            (true, 0) => format!("{{main}} {}", function.file),
            (true, _) => format!("include {}", function.file),
        }
    }
}

fn milliseconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(duration.as_millis() as u64)
}

fn microseconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(duration.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn example() -> Profile {
        let function = |name: &str, file: &str| Function { name: name.into(), file: file.into() };
        let stack = |functions: &[u32], samples, cpu| Stack {
            path: 0,
            functions: functions.to_vec(),
            samples,
            cpu: Duration::from_millis(cpu),
        };
        Profile {
            functions: vec![
                function("", "/srv/index.php"),
                function("App::run", "/srv/app.php"),
                function("sleep", ""),
                function("", "/srv/a;b.php"),
            ],
            paths: vec!["/</script>".into()],
            stacks: vec![stack(&[0, 1, 2], 30, 0), stack(&[0, 1], 10, 90), stack(&[0, 3], 1, 5)],
            duration: Duration::from_secs(1),
            looks: 100,
            lost: 2,
        }
    }

    #[test]
    fn a_sample_stands_for_the_time_between_two_looks() {
        let profile = example();
        assert_eq!(profile.samples(), 41);
        assert_eq!(profile.microseconds_of(&profile.stacks[0], Measure::Wall), 300_000);
        assert_eq!(profile.microseconds_of(&profile.stacks[1], Measure::Cpu), 90_000);
        assert_eq!(Profile::default().step(), Duration::ZERO);
    }

    #[test]
    fn the_profile_itself_is_json_with_units_in_its_names() {
        let json: serde_json::Value = serde_json::from_str(&example().write(Format::Json, "x")).unwrap();
        assert_eq!(json["stacks"][1]["cpu_microseconds"], 90_000);
        assert_eq!(json["duration_milliseconds"], 1000);
    }
}
