//! The cases of `tests/differential`: sites, the requests to them, and why something is answered otherwise than by Caddy.

use std::fs;
use std::path::{Path, PathBuf};

/// A site.
pub struct Case {
    pub name: String,
    /// Snippets and named routes, before all sites.
    pub before: String,
    pub directives: String,
    pub asked: Vec<Asked>,
}

/// A request.
pub struct Asked {
    /// As it is written in the case.
    pub text: String,
    pub method: String,
    pub target: String,
    pub fields: Vec<String>,
    pub body: String,
    pub difference: Difference,
}

/// Whether Regent answers otherwise, and why.
#[derive(Clone)]
pub enum Difference {
    None,
    /// It does.
    Is(String),
    /// It may: in a case one of the requests of a pattern does, or one of all cases to a request that all have.
    MayBe(String),
}

/// Where cases, requests and answers are.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("differential")
}

/// All of them, by name.
pub fn cases() -> Vec<Case> {
    let common = common();
    let files = fs::read_dir(directory().join("cases")).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = files.map(|file| case(&file, &common)).collect();
    cases.sort_by(|left, right| left.name.cmp(&right.name));
    cases
}

/// The requests that all cases are sent, with reasons for differences.
fn common() -> Vec<(String, Difference)> {
    let mut reason = Difference::None;
    let mut found = Vec::new();
    for line in fs::read_to_string(directory().join("requests")).unwrap().lines() {
        match line.split_at_checked(3) {
            Some(("#! ", text)) => reason = Difference::MayBe(text.into()),
            Some(("#> ", text)) => {
                found.push((text.into(), std::mem::replace(&mut reason, Difference::None)));
            }
            _ => assert!(line.is_empty() || line.starts_with("# "), "{line}"),
        }
    }
    found
}

fn case(file: &Path, common: &[(String, Difference)]) -> Case {
    let mut difference = Difference::None;
    let mut patterns = Vec::new();
    let mut case = Case {
        name: file.file_stem().unwrap().to_str().unwrap().into(),
        before: String::new(),
        directives: String::new(),
        asked: Vec::new(),
    };
    let text = fs::read_to_string(file).unwrap();
    for line in text.lines() {
        match line.split_at_checked(3) {
            Some(("#! ", reason)) => difference = Difference::Is(reason.into()),
            Some(("#> ", request)) => {
                case.asked.push(asked(request, std::mem::replace(&mut difference, Difference::None)));
            }
            Some(("#~ ", pattern)) => patterns.push(pattern.split_once(" :: ").unwrap()),
            Some(("#^ ", line)) => case.before.push_str(&format!("{line}\n")),
            _ => case.directives.push_str(&format!("\t{line}\n")),
        }
    }
    for (text, difference) in common {
        if case.asked.iter().all(|own| own.text != *text) {
            let pattern = patterns.iter().find(|(pattern, _)| fits(pattern, text));
            let own = pattern.map(|(_, reason)| Difference::MayBe((*reason).into()));
            case.asked.push(asked(text, own.unwrap_or_else(|| difference.clone())));
        }
    }
    case
}

/// Whether a text is of a pattern, in which `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|tail| {
            (0..=tail.len()).filter_map(|at| tail.get(at..)).any(|tail| fits(rest, tail))
        }),
    }
}

fn asked(text: &str, difference: Difference) -> Asked {
    let mut parts = text.split(" | ");
    let (method, target) = parts.next().unwrap().split_once(' ').unwrap();
    let (fields, body): (Vec<_>, Vec<_>) = parts.partition(|part| part.contains(": "));
    Asked {
        text: text.into(),
        method: method.into(),
        target: target.into(),
        fields: fields.into_iter().map(str::to_owned).collect(),
        body: body.concat().replace("\\r\\n", "\r\n"),
        difference,
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text) in [("GET /a", "GET /a"), ("GET /*", "GET /"), ("*x*y", "axbxcy"), ("*", "")] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("GET /a", "GET /ab"), ("*x*y", "axb"), ("a*a", "a")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}
