//! What is counted, and how it is printed: verdicts in the form of cargo's test results, which `tools/test` adds up.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::differences::Differences;
use crate::options::Mode;
use crate::suite;
use crate::trial::{Outcome, Verdict};

/// The results of one mode.
pub struct Report<'a> {
    mode: Mode,
    known: &'a Differences,
    directory: PathBuf,
    folders: BTreeMap<&'static str, Counts>,
    same: BTreeSet<PathBuf>,
    differing: BTreeSet<PathBuf>,
    unexplained: Vec<PathBuf>,
    /// One line for each test: path, outcome, reason.
    lines: String,
}

#[derive(Default, Clone, Copy)]
struct Counts {
    same: usize,
    /// Of these, those that php-cgi does not pass, if it was asked.
    on_regent_only: usize,
    known: usize,
    unexplained: usize,
    neither: usize,
    skipped: usize,
}

impl<'a> Report<'a> {
    /// # Errors
    /// When the directory for what differs cannot be made empty.
    pub fn new(mode: Mode, known: &'a Differences, directory: &Path) -> Result<Self> {
        let directory = directory.join(mode.name());
        if directory.exists() {
            fs::remove_dir_all(&directory).with_context(|| format!("removing {}", directory.display()))?;
        }
        fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
        Ok(Self {
            mode,
            known,
            directory,
            folders: BTreeMap::new(),
            same: BTreeSet::new(),
            differing: BTreeSet::new(),
            unexplained: Vec::new(),
            lines: String::new(),
        })
    }

    pub fn add(&mut self, test: &Path, outcome: &Outcome) -> Result<()> {
        let counts = self.folders.entry(suite::folder(test)).or_default();
        let (word, reason) = match outcome {
            Outcome::Same { on_cgi } => {
                counts.same += 1;
                counts.on_regent_only += usize::from(*on_cgi == Some(Verdict::Fails));
                self.same.insert(test.to_owned());
                ("same", "")
            }
            Outcome::Neither(answers) => {
                counts.neither += 1;
                write_answers(&self.directory.join("neither"), test, answers)?;
                ("neither", "")
            }
            Outcome::Skipped(reason) => {
                counts.skipped += 1;
                ("skipped", reason.as_str())
            }
            Outcome::Differs(answers) => {
                write_answers(&self.directory.join("differs"), test, answers)?;
                self.differing.insert(test.to_owned());
                let reason = self.known.reason(self.mode, test);
                match reason {
                    Some(_) => counts.known += 1,
                    None => {
                        counts.unexplained += 1;
                        self.unexplained.push(test.to_owned());
                    }
                }
                ("differs", reason.unwrap_or("not known"))
            }
        };
        let reason = reason.replace(['\n', '\t'], " ");
        writeln!(self.lines, "{}\t{word}\t{reason}", test.display()).expect("a string takes text");
        Ok(())
    }

    /// How many tests there were, and how many of them differ without a known reason.
    pub fn progress(&self) -> (usize, usize) {
        let sum = self.sum();
        (sum.tests(), sum.unexplained)
    }

    pub fn has_failed(&self) -> bool {
        !self.unexplained.is_empty()
    }

    /// The table by folders, what differs for no known reason, and which known differences are gone.
    pub fn print(&self) -> Result<()> {
        fs::write(self.directory.join("results.tsv"), &self.lines)?;
        println!("\n{} mode: PHP's own tests over HTTP\n", self.mode.name());
        println!(
            "{:<14} {:>7} {:>7} {:>7} {:>7} {:>7} {:>9}",
            "folder", "tests", "same", "known", "differ", "neither", "skipped"
        );
        for (folder, counts) in &self.folders {
            println!("{}", counts.line(folder));
        }
        let sum = self.sum();
        println!("{}", sum.line("all"));
        println!("{}", sum.share());
        if sum.on_regent_only > 0 {
            println!("{} of the same are not as expected with php-cgi", sum.on_regent_only);
        }
        for test in &self.unexplained {
            println!("test {} ({}) ... FAILED", test.display(), self.mode.name());
        }
        for test in self.known.stale(self.mode, &self.same, &self.differing) {
            println!("no longer differs in {} mode, so it can leave the list: {test}", self.mode.name());
        }
        if sum.unexplained > 0 {
            println!("what was expected and what came is in {}", self.directory.display());
        }
        println!("{}", sum.result());
        Ok(())
    }

    fn sum(&self) -> Counts {
        self.folders.values().fold(Counts::default(), |a, b| Counts {
            same: a.same + b.same,
            on_regent_only: a.on_regent_only + b.on_regent_only,
            known: a.known + b.known,
            unexplained: a.unexplained + b.unexplained,
            neither: a.neither + b.neither,
            skipped: a.skipped + b.skipped,
        })
    }
}

impl Counts {
    fn tests(&self) -> usize {
        self.same + self.known + self.unexplained + self.neither + self.skipped
    }

    fn line(&self, name: &str) -> String {
        let Self { same, known, unexplained, neither, skipped, .. } = self;
        format!(
            "{name:<14} {:>7} {same:>7} {known:>7} {unexplained:>7} {neither:>7} {skipped:>9}",
            self.tests()
        )
    }

    fn share(&self) -> String {
        let share = |of: usize| if of == 0 { 0.0 } else { 100.0 * self.same as f64 / of as f64 };
        let (without, with) = (self.same + self.unexplained, self.same + self.unexplained + self.known);
        format!(
            "{} of {with} tests that hold with php-cgi hold on Regent: {:.2} %; without those of a known reason {:.2} %",
            self.same,
            share(with),
            share(without)
        )
    }

    fn result(&self) -> String {
        let word = if self.unexplained == 0 { "ok" } else { "FAILED" };
        let ignored = self.known + self.neither + self.skipped;
        format!("\ntest result: {word}. {} passed; {} failed; {ignored} ignored", self.same, self.unexplained)
    }
}

fn write_answers(directory: &Path, test: &Path, answers: &[u8]) -> Result<()> {
    let file = directory.join(test.with_extension("txt"));
    let parent = file.parent().context("a test lies in a directory")?;
    fs::create_dir_all(parent)?;
    fs::write(&file, answers).with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_php_cgi_does_not_pass_counts_for_nothing() {
        let counts =
            Counts { same: 998, known: 1, unexplained: 1, neither: 50, skipped: 5, on_regent_only: 0 };
        let share = "998 of 1000 tests that hold with php-cgi hold on Regent: 99.80 %; without those of a known reason 99.90 %";
        assert_eq!(counts.share(), share);
        assert_eq!(counts.tests(), 1055);
        assert_eq!(counts.result(), "\ntest result: FAILED. 998 passed; 1 failed; 56 ignored");
    }
}
