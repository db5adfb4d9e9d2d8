//! A `.phpt` file: the sections that PHP's run-tests.php (class TestFile) knows, with its rules for reading them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

const SECTIONS: [&str; 35] = [
    "ARGS",
    "CAPTURE_STDIO",
    "CGI",
    "CLEAN",
    "CONFLICTS",
    "COOKIE",
    "CREDITS",
    "DEFLATE_POST",
    "DESCRIPTION",
    "ENV",
    "EXPECT",
    "EXPECTF",
    "EXPECTF_EXTERNAL",
    "EXPECTHEADERS",
    "EXPECTREGEX",
    "EXPECTREGEX_EXTERNAL",
    "EXPECT_EXTERNAL",
    "EXTENSIONS",
    "FILE",
    "FILEEOF",
    "FILE_EXTERNAL",
    "FLAKY",
    "GET",
    "GZIP_POST",
    "INI",
    "PHPDBG",
    "POST",
    "POST_RAW",
    "PUT",
    "REDIRECTTEST",
    "SKIPIF",
    "STDIN",
    "TEST",
    "WHITESPACE_SENSITIVE",
    "XFAIL",
];

/// One test. Its texts are bytes: many tests are about encodings.
pub struct Phpt {
    sections: BTreeMap<String, Vec<u8>>,
}

impl Phpt {
    /// # Errors
    /// When the file cannot be read, or is none that run-tests.php would run.
    pub fn read(file: &Path) -> Result<Self> {
        let mut test = Self::parse(&fs::read(file)?)?;
        test.load_external_sections(file.parent().context("a test lies in a directory")?)?;
        test.validate()?;
        Ok(test)
    }

    fn parse(text: &[u8]) -> Result<Self> {
        ensure!(text.starts_with(b"--TEST--"), "it does not begin with --TEST--");
        let mut sections = BTreeMap::new();
        let mut name = String::new();
        let mut is_done = false;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if let Some(next) = section_name(line) {
                ensure!(SECTIONS.contains(&next) || next == "XLEAK", "it has an unknown section {next}");
                ensure!(sections.get(next).is_none_or(Vec::is_empty), "it has two sections {next}");
                name = next.to_owned();
                is_done = false;
                sections.insert(name.clone(), Vec::new());
                continue;
            }
            if !is_done {
                sections.entry(name.clone()).or_default().extend_from_slice(line);
            }
            is_done |= name.starts_with("FILE") && line.trim_ascii_end() == b"===DONE===";
        }
        Ok(Self { sections })
    }

    pub fn has(&self, section: &str) -> bool {
        self.sections.contains_key(section)
    }

    /// A section's text, unless it is missing or empty.
    pub fn get(&self, section: &str) -> Option<&[u8]> {
        self.sections.get(section).map(Vec::as_slice).filter(|text| !text.is_empty())
    }

    /// A section's text with invalid UTF-8 replaced; empty when it is missing.
    pub fn text(&self, section: &str) -> String {
        self.get(section).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    /// Whether run-tests.php would try it a second time (is_flaky()).
    pub fn is_flaky(&self) -> bool {
        const TIMED: [&str; 4] = ["disk_free_space(", "hrtime(", "microtime(", "sleep("];
        let script = self.text("FILE").to_lowercase();
        self.has("FLAKY")
            || self.text("SKIPIF").contains("SKIP_PERF_SENSITIVE")
            || TIMED.iter().any(|function| script.contains(function))
    }

    fn load_external_sections(&mut self, directory: &Path) -> Result<()> {
        if let Some(mut script) = self.sections.remove("FILEEOF") {
            while script.last().is_some_and(|byte| b"\r\n".contains(byte)) {
                script.pop();
            }
            self.sections.insert("FILE".into(), script);
        }
        for section in ["FILE", "EXPECT", "EXPECTF", "EXPECTREGEX"] {
            if let Some(name) = self.sections.get(&format!("{section}_EXTERNAL")) {
                let file = directory.join(String::from_utf8_lossy(name).trim().replace("..", ""));
                let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
                self.sections.insert(section.into(), text);
            }
        }
        Ok(())
    }

    fn validate(&self) -> Result<()> {
        let expectations = ["EXPECT", "EXPECTF", "EXPECTREGEX"].iter().filter(|name| self.has(name)).count();
        if !self.has("REDIRECTTEST") && (!self.has("FILE") || expectations != 1) {
            bail!("it needs one section with a script and one with what is expected");
        }
        Ok(())
    }
}

/// The name in a line that begins with `--NAME--`.
fn section_name(line: &[u8]) -> Option<&str> {
    let rest = std::str::from_utf8(line.strip_prefix(b"--")?).ok()?;
    let (name, _) = rest.split_once("--")?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase());
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Phpt {
        Phpt::parse(text.as_bytes()).expect("it is a test")
    }

    #[test]
    fn sections_end_where_the_next_begins() {
        let test = parse("--TEST--\nname\n--FILE--\n<?php\n--not a section--\n--EXPECT--\na\nb\n");
        assert_eq!(test.get("FILE"), Some(&b"<?php\n--not a section--\n"[..]));
        assert_eq!(test.text("EXPECT"), "a\nb\n");
        assert!(test.validate().is_ok() && !test.has("GET"));
    }

    #[test]
    fn what_stands_behind_the_end_of_a_script_is_a_remark() {
        let test = parse("--TEST--\n--FILE--\n===DONE===\nremark\n--EXPECT--\n===DONE===\nno remark\n");
        assert_eq!(test.text("FILE"), "===DONE===\n");
        assert_eq!(test.text("EXPECT"), "===DONE===\nno remark\n");
    }

    #[test]
    fn broken_tests_are_refused() {
        assert!(Phpt::parse(b"<?php").is_err());
        assert!(Phpt::parse(b"--TEST--\n--WRONG--\n").is_err());
        assert!(Phpt::parse(b"--TEST--\n--GET--\na=1\n--GET--\na=2\n").is_err());
        assert!(parse("--TEST--\n--FILE--\n<?php\n").validate().is_err());
    }
}
