//! State of a site that is being written.

use super::server::Surroundings;
use super::tree::Directive;
use crate::LeftOut;
use crate::writer::Writer;
use regex::Regex;
use std::collections::BTreeSet;

pub(super) struct Site<'a> {
    pub around: &'a Surroundings<'a>,
    pub left_out: Vec<LeftOut>,
    /// `None`: the server has no PHP.
    pub php: Option<Php>,
    matchers: BTreeSet<String>,
}

/// The options of `php_server`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Php {
    /// The script that answers what is no file; `None`: there is none.
    pub front: Option<String>,
    /// Regular expressions of the only paths that are scripts; empty: all scripts are.
    pub scripts: Vec<String>,
    pub env: Vec<(String, String)>,
    pub request_timeout: Option<String>,
}

impl<'a> Site<'a> {
    pub fn new(around: &'a Surroundings<'a>, php: Option<Php>) -> Self {
        Self { around, left_out: Vec::new(), php, matchers: BTreeSet::new() }
    }

    /// A comment where the line would have been.
    pub fn leave_out(&mut self, line: &Directive, why: &str, writer: &mut Writer) {
        let left = LeftOut { place: line.place(), text: line.text(), why: why.to_owned() };
        writer.comment(&format!("not translated, {}: {}: {}", left.place, left.text, left.why));
        self.left_out.push(left);
    }

    /// `@name`, of what it is for, and of this site alone.
    pub fn matcher(&mut self, of: &str) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        let words: String = of.chars().map(letter).collect();
        let words: Vec<&str> = words.split('_').filter(|word| !word.is_empty()).take(3).collect();
        let name = if words.is_empty() { "some".to_owned() } else { words.join("_") };
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !self.matchers.contains(name));
        let free = free.expect("numbers have no end");
        self.matchers.insert(free.clone());
        format!("@{free}")
    }
}

impl Php {
    /// Whether the front controller is the only script.
    pub fn is_front_alone(&self) -> bool {
        let matches =
            |pattern: &str, path: &str| Regex::new(pattern).is_ok_and(|regexp| regexp.is_match(path));
        match (self.scripts.as_slice(), &self.front) {
            ([pattern], Some(front)) => {
                matches(pattern, &format!("/{front}")) && !matches(pattern, "/other.php")
            }
            _ => false,
        }
    }

    pub fn write(&self, writer: &mut Writer) {
        let mut lines = Vec::new();
        match self.front.as_deref() {
            // Where only some scripts are run, those of directories are not looked for.
            Some(script) if !self.scripts.is_empty() => lines.push(format!("try_files {{path}} /{script}")),
            Some("index.php") => {}
            Some(script) => lines.push(format!("index {script}")),
            None if self.scripts.is_empty() => lines.push("try_files {path} {path}/index.php".to_owned()),
            None => lines.push("try_files {path}".to_owned()),
        }
        lines.extend(self.env.iter().map(|(name, value)| format!("env {name} {value}")));
        lines.extend(self.request_timeout.iter().map(|time| format!("request_timeout {time}")));
        if lines.is_empty() {
            writer.line("php_server");
        } else {
            writer.block("php_server", |writer| lines.iter().for_each(|line| writer.line(line)));
        }
    }
}
