//! The page with the outcomes, which is their record too.

use super::case::{Case, Group, Level};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A cache that was put through the cases.
pub struct Column {
    /// `nginx/1.22.1`
    pub name: String,
    /// By the id of the case, in a word.
    pub words: BTreeMap<String, String>,
}

const HEAD: &str = "\
# What is asked of the cache

Cases of RFC 9111 and of what belongs to it, run against Regent by `tests/tests/alone/cache_conformance.rs` in each run of the tests, \
and against nginx when this page was made. Each is a few requests through the cache to a server behind it that says what the \
case has it say. They ask what the public suite at [cache-tests.fyi](https://cache-tests.fyi) asks of a shared cache, and some \
more; the cases are our own (`tests/src/cache_suite/cases/`).

- **required**: the RFC says that it must or should be so; *fail* is a fault.
- **optimal**: it may be otherwise, but this is more useful.
- **observed**: caches differ, and may. *yes* or *no* is the answer, and neither is better.
- `–`: nothing can be said, since what the case rests on is not there. A cache that stores nothing uses nothing wrongly.

";

/// `configurations`: what each column was configured with, below the tables.
pub fn page(groups: &[Group], columns: &[Column], configurations: &str) -> String {
    let mut text = HEAD.to_owned();
    sums(&mut text, groups, columns);
    text += configurations;
    for group in groups {
        write(&mut text, format_args!("\n## {}\n", group.name));
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        write(&mut text, format_args!("| case | | RFC | | {} |\n", names.join(" | ")));
        write(&mut text, format_args!("|---|---|---|---|{}\n", "---|".repeat(columns.len())));
        for case in &group.cases {
            let words: Vec<&str> = columns.iter().map(|column| column.word(case)).collect();
            let (level, words) = (level(case.level), words.join(" | "));
            write(
                &mut text,
                format_args!("| `{}` | {level} | {} | {} | {words} |\n", case.id, case.section, case.demand),
            );
        }
    }
    text
}

/// A column of a page that was made before: the last. `None`: there is no such page.
pub fn recorded(page: &str) -> Option<Column> {
    let cells =
        |line: &str| line.trim_matches(['|', ' ']).split(" | ").map(Into::into).collect::<Vec<String>>();
    let head = page.lines().find(|line| line.starts_with("| case | "))?;
    let name = cells(head).pop()?;
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let words = rows.filter_map(|line| {
        let cells = cells(line);
        Some((cells.first()?.trim_matches('`').to_owned(), cells.last()?.clone()))
    });
    Some(Column { name, words: words.collect() })
}

fn sums(text: &mut String, groups: &[Group], columns: &[Column]) {
    *text += "| | cases |";
    for column in columns {
        write(text, format_args!(" {}: required | optimal |", column.name));
    }
    write(text, format_args!("\n|---|--:|{}\n", "--:|--:|".repeat(columns.len())));
    let row = |text: &mut String, name: &str, cases: &[&Case]| {
        write(text, format_args!("| {name} | {} |", cases.len()));
        for column in columns {
            for level in [Level::Required, Level::Optimal] {
                let words = cases.iter().filter(|case| case.level == level).map(|case| column.word(case));
                let words: Vec<&str> = words.collect();
                let count = |wanted: &str| words.iter().filter(|word| **word == wanted).count();
                let (passed, untested) = (count("pass"), count("–"));
                match (words.len() - untested, untested) {
                    (0, 0) => *text += " |",
                    (tested, 0) => write(text, format_args!(" {passed} of {tested} |")),
                    (tested, _) => write(text, format_args!(" {passed} of {tested}, {untested} – |")),
                }
            }
        }
        *text += "\n";
    };
    for group in groups {
        row(text, group.name, &group.cases.iter().collect::<Vec<_>>());
    }
    let all: Vec<&Case> = groups.iter().flat_map(|group| &group.cases).collect();
    row(text, "**all**", &all);
    *text += "\n";
}

impl Column {
    fn word(&self, case: &Case) -> &str {
        self.words.get(&case.id).map_or("", String::as_str)
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Required => "required",
        Level::Optimal => "optimal",
        Level::Observed => "observed",
    }
}

fn write(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a text takes what is written");
}
