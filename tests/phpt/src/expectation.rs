//! What a test expects of the answer.

use anyhow::{Context, Result};
use regex::bytes::Regex;

use crate::pattern;
use crate::phpt::Phpt;
use crate::request::{Answer, comparable};

pub struct Expectation {
    body: Body,
    headers: Vec<(String, String)>,
    /// The section as it is written, for reports.
    pub wanted: Vec<u8>,
}

enum Body {
    Text(Vec<u8>),
    Pattern(Regex),
}

impl Expectation {
    /// # Errors
    /// When the expected pattern is beyond the `regex` crate.
    pub fn of(test: &Phpt) -> Result<Self> {
        let sections = ["EXPECT", "EXPECTF", "EXPECTREGEX"];
        let section = sections.into_iter().find(|name| test.has(name)).context("it expects nothing")?;
        let wanted = comparable(test.get(section).unwrap_or_default());
        let body = match section {
            "EXPECT" => Body::Text(wanted.clone()),
            "EXPECTF" => Body::Pattern(pattern::format(&wanted)?),
            _ => Body::Pattern(pattern::expression(&wanted)?),
        };
        Ok(Self { body, headers: headers_of(&test.text("EXPECTHEADERS")), wanted })
    }

    pub fn is_met_by(&self, answer: &Answer) -> bool {
        self.missing_headers(answer).next().is_none() && self.is_met_by_body(&answer.body)
    }

    /// The expected header fields that the answer does not have.
    pub fn missing_headers<'a>(&'a self, answer: &'a Answer) -> impl Iterator<Item = &'a (String, String)> {
        self.headers.iter().filter(|(name, value)| answer.header(name) != Some(value.as_str()))
    }

    fn is_met_by_body(&self, body: &[u8]) -> bool {
        match &self.body {
            Body::Text(text) => text == body,
            Body::Pattern(pattern) => pattern.is_match(body),
        }
    }
}

fn headers_of(section: &str) -> Vec<(String, String)> {
    let fields = section.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.trim().into(), value.trim().into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_and_headers_are_compared() {
        let wanted = |body: Body| Expectation { body, headers: headers_of("X-A: 1\n"), wanted: Vec::new() };
        let answer = Answer { headers: vec![("x-a".into(), "1".into())], body: b"12".to_vec() };
        assert!(wanted(Body::Text(b"12".to_vec())).is_met_by(&answer));
        assert!(!wanted(Body::Text(b"1".to_vec())).is_met_by(&answer));
        let digits = || Body::Pattern(pattern::format(b"%d").expect("it is a pattern"));
        assert!(wanted(digits()).is_met_by(&answer));
        assert!(!wanted(digits()).is_met_by(&Answer { headers: Vec::new(), ..answer }));
    }
}
