//! Folded stacks: `outermost;…;innermost COUNT`, a line for each, as FlameGraph's and inferno's tools read them.

use crate::{Measure, Profile, Stack};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Wall time counts samples, CPU time microseconds.
pub fn lines(profile: &Profile, measure: Measure) -> String {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for stack in &profile.stacks {
        let weight = match measure {
            Measure::Wall => stack.samples,
            Measure::Cpu => profile.microseconds_of(stack, measure),
        };
        *sums.entry(line(profile, stack)).or_default() += weight;
    }
    let mut text = String::new();
    for (line, weight) in sums.iter().filter(|(_, weight)| **weight > 0) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{line} {weight}");
    }
    text
}

fn line(profile: &Profile, stack: &Stack) -> String {
    let labels = (0..stack.functions.len()).map(|depth| {
        let label = profile.label(stack, depth);
        // What separates functions is in the name of none.
        label.chars().map(|c| if c == ';' || c.is_control() { '_' } else { c }).collect::<String>()
    });
    labels.collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::example;

    #[test]
    fn a_stack_is_a_line() {
        let wall = lines(&example(), Measure::Wall);
        assert_eq!(
            wall,
            "{main} /srv/index.php;App::run 10\n{main} /srv/index.php;App::run;sleep 30\n\
             {main} /srv/index.php;include /srv/a_b.php 1\n"
        );
        let cpu = lines(&example(), Measure::Cpu);
        assert!(cpu.contains("App::run 90000\n") && !cpu.contains("sleep"), "{cpu}");
    }

    #[test]
    fn equal_stacks_of_two_paths_are_one_line() {
        let mut profile = example();
        profile.paths.push("/b".into());
        let mut other = profile.stacks[0].clone();
        other.path = 1;
        profile.stacks.push(other);
        assert!(lines(&profile, Measure::Wall).contains(";sleep 60\n"));
    }
}
