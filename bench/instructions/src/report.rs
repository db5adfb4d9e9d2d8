//! What is printed: verdicts in the form of cargo's test results, which `tools/test` adds up, and tables.

use std::fmt::Write;

use crate::build::Build;
use crate::measure::{Cost, Measured};
use crate::scenario::Figure;
use crate::stored::Stored;
use crate::verdict::{Change, Verdict};

/// Characters of a function's name.
const NAME: usize = 110;

/// A line for each figure, what to do about those that have changed, and the sum.
pub fn verdicts(
    stored: &Stored,
    build: &Build,
    measured: &Measured,
    verdicts: &[(Figure, Verdict)],
) -> String {
    let tolerance = stored.tolerance_percent;
    let mut out = String::new();
    for (figure, verdict) in verdicts {
        let spread = spread(&measured.costs()[figure]);
        out += &match verdict {
            Verdict::Same { change } => format!("test {figure} ... ok ({}{spread})\n", beside(*change)),
            Verdict::Costlier { change } => costlier(*figure, *change, tolerance, &spread),
            Verdict::Cheaper { change } => cheaper(*figure, *change, tolerance, &spread),
            Verdict::NotCompared { counted } => {
                format!("test {figure} ... ignored ({} instructions a request{spread})\n", grouped(*counted))
            }
        };
    }
    out + &not_compared(stored, build, verdicts) + &sum(verdicts)
}

/// The counts alone.
pub fn figures(measured: &Measured) -> String {
    let line = |(figure, cost): (&Figure, &Cost)| {
        format!("{figure}: {} instructions a request{}\n", grouped(cost.largest()), spread(cost))
    };
    measured.costs().iter().map(line).collect()
}

/// The functions with the most instructions of their own.
pub fn hottest(measured: &Measured, rows: usize) -> String {
    let mut out = String::new();
    for (figure, cost) in measured.costs() {
        let total = cost.largest();
        let _ = writeln!(out, "{figure}: {} instructions a request, of which in", grouped(total));
        for function in cost.functions.iter().take(rows) {
            let share = 100.0 * function.instructions / total as f64;
            let name: String = function.name.chars().take(NAME).collect();
            let (instructions, calls) = (function.instructions, function.calls);
            let _ = writeln!(out, "{instructions:>9.0} {share:>5.1} % {calls:>7.2} calls  {name}");
        }
        out.push('\n');
    }
    out
}

fn costlier(figure: Figure, change: Change, tolerance: f64, spread: &str) -> String {
    format!(
        "test {figure} ... FAILED\n  {figure}: {}, tolerance {tolerance} %{spread}: find out why with \
         `make instructions INSTRUCTIONS=\"--only {} --top 30\"` here and on the commit before, or, if it is meant, \
         store the new figure with `make instructions-update`\n",
        beside(change),
        figure.scenario
    )
}

fn cheaper(figure: Figure, change: Change, tolerance: f64, spread: &str) -> String {
    format!(
        "test {figure} ... ok\nwarning: {figure}: {}, tolerance {tolerance} %{spread}: store the new figure with \
         `make instructions-update`, so that it is not lost again unseen\n",
        beside(change)
    )
}

fn beside(change: Change) -> String {
    let (counted, stored) = (grouped(change.counted), grouped(change.stored));
    format!("{counted} instructions a request, stored {stored}, {:+.1} %", change.percent())
}

/// So that nobody takes a run that compared nothing for one that found nothing.
fn not_compared(stored: &Stored, build: &Build, verdicts: &[(Figure, Verdict)]) -> String {
    let missing =
        verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::NotCompared { .. })).count();
    if missing == 0 {
        return String::new();
    }
    let mut out = format!(
        "NOT COMPARED: {missing} of {} instruction counts, since none are stored for {}; `make instructions-update` \
         stores them\n",
        verdicts.len(),
        in_words(build)
    );
    for other in stored.builds().filter(|other| *other != build) {
        let _ = writeln!(out, "  stored are those of {}", in_words(other));
    }
    out
}

/// As cargo's test harness ends.
fn sum(verdicts: &[(Figure, Verdict)]) -> String {
    let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|(_, verdict)| is(verdict)).count();
    let failed = count(|verdict| matches!(verdict, Verdict::Costlier { .. }));
    let ignored = count(|verdict| matches!(verdict, Verdict::NotCompared { .. }));
    let passed = verdicts.len() - failed - ignored;
    let result = if failed == 0 { "ok" } else { "FAILED" };
    format!("\ntest result: {result}. {passed} passed; {failed} failed; {ignored} ignored\n")
}

fn in_words(build: &Build) -> String {
    let Build { rustc, profile, cpu, system, php } = build;
    format!("rustc {rustc} ({profile}), {cpu}, {system}, PHP {php}")
}

fn spread(cost: &Cost) -> String {
    match cost.spread() {
        Some((least, most)) => format!("; counted {} to {}", grouped(least), grouped(most)),
        None => String::new(),
    }
}

/// 1234567 → `1,234,567`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Process, Scenario};
    use crate::stored::tests::{build, empty};
    use std::collections::BTreeMap;

    const FIGURE: Figure = Figure { process: Process::Engine, scenario: Scenario::Classic };
    const CHANGE: Change = Change { stored: 38_000, counted: 41_200 };

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_failure_says_what_to_do() {
        let text = costlier(FIGURE, CHANGE, 2.0, "");
        assert!(text.starts_with("test engine classic ... FAILED\n"), "{text}");
        for part in
            ["41,200", "stored 38,000, +8.4 %", "tolerance 2 %", "--only classic", "instructions-update"]
        {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }

    #[test]
    fn what_was_not_compared_is_said_and_not_passed() {
        let mut stored = empty();
        stored.store(build("1.90.0"), BTreeMap::from([(FIGURE, 100)]));
        let verdicts = [(FIGURE, Verdict::NotCompared { counted: 100 })];
        let text = not_compared(&stored, &build("1.91.0"), &verdicts) + &sum(&verdicts);
        assert!(
            text.starts_with(
                "NOT COMPARED: 1 of 1 instruction counts, since none are stored for rustc 1.91.0"
            )
        );
        assert!(text.contains("stored are those of rustc 1.90.0 (release)"), "{text}");
        assert!(text.ends_with("test result: ok. 0 passed; 0 failed; 1 ignored\n"), "{text}");
    }

    #[test]
    fn the_sum_is_what_tools_test_reads() {
        let costlier = (FIGURE, Verdict::Costlier { change: CHANGE });
        let same = (FIGURE, Verdict::Same { change: CHANGE });
        assert_eq!(sum(&[same, costlier, same]), "\ntest result: FAILED. 2 passed; 1 failed; 0 ignored\n");
    }
}
