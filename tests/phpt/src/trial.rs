//! One test: on Regent, and with php-cgi where Regent's answer is not the expected one.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Result;

use crate::case::{Case, Reason};
use crate::expectation::Expectation;
use crate::options::{Base, Mode};
use crate::php::{Php, Prepared};
use crate::place::Place;
use crate::request::{Answer, Request};
use crate::server::Client;

pub enum Outcome {
    /// Regent's answer is the expected one; what php-cgi's is has been asked with [`Base::All`] only.
    Same {
        on_cgi: Option<Verdict>,
    },
    /// Neither Regent nor php-cgi answers as expected: what each said.
    Neither(Vec<u8>),
    Skipped(Reason),
    /// php-cgi answers as expected, and Regent does not: what each said.
    Differs(Vec<u8>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Passes,
    Fails,
}

/// What all tests of a run share.
pub struct Trials<'a> {
    pub php: &'a Php<'a>,
    pub place: &'a Place,
    pub mode: Mode,
    pub base: Base,
    /// The settings of SKIPIF and CLEAN sections.
    pub plain: &'a Prepared,
    pub skips: Skips,
}

/// What SKIPIF sections printed, by directory: many tests have the same.
#[derive(Default)]
pub struct Skips(Mutex<HashMap<(PathBuf, Vec<u8>), String>>);

impl Trials<'_> {
    /// What the runner itself fails at is a difference, too: nothing goes unseen.
    pub fn run(&self, case: &Case, prepared: &Prepared, client: &mut Client<'_>) -> Outcome {
        let outcome = self.try_run(case, prepared, client);
        outcome
            .unwrap_or_else(|error| Outcome::Differs(format!("the runner failed: {error:#}\n").into_bytes()))
    }

    fn try_run(&self, case: &Case, prepared: &Prepared, client: &mut Client<'_>) -> Result<Outcome> {
        if let Some(reason) = self.reason_to_skip(case)? {
            return Ok(Outcome::Skipped(reason));
        }
        let expectation = match Expectation::of(&case.phpt) {
            Ok(expectation) => expectation,
            Err(error) => return Ok(Outcome::Skipped(format!("{error:#}"))),
        };
        let request = case.with_places(self.place, |places| Request::of(&case.phpt, places));
        let mut on_regent = self.between_files(case, || Ok(client.ask(&case.script(), &request)))?;
        if !expectation.is_met_by(&on_regent) && case.phpt.is_flaky() {
            on_regent = self.between_files(case, || Ok(client.ask(&case.script(), &request)))?;
        }
        let passes = expectation.is_met_by(&on_regent);
        if passes && self.base == Base::Differing {
            return Ok(Outcome::Same { on_cgi: None });
        }
        let on_cgi = self.between_files(case, || self.on_cgi(case, prepared, &request))?;
        Ok(match (passes, expectation.is_met_by(&on_cgi)) {
            (true, true) => Outcome::Same { on_cgi: Some(Verdict::Passes) },
            (true, false) => Outcome::Same { on_cgi: Some(Verdict::Fails) },
            (false, false) => Outcome::Neither(both(&expectation, &on_regent, &on_cgi)),
            (false, true) => Outcome::Differs(both(&expectation, &on_regent, &on_cgi)),
        })
    }

    /// A worker has the test within a function, so php-cgi does, too.
    fn on_cgi(&self, case: &Case, prepared: &Prepared, request: &Request) -> Result<Answer> {
        let script = case.script();
        let started = if self.mode == Mode::Worker { Path::new(Place::WRAPPER) } else { &script };
        self.php.cgi(prepared, started, &script, request)
    }

    fn reason_to_skip(&self, case: &Case) -> Result<Option<Reason>> {
        let Some(code) = case.phpt.get("SKIPIF") else { return Ok(None) };
        let printed = self.printed_by_skipif(case, code)?;
        let is = |word: &str| printed.to_lowercase().starts_with(word);
        let goes_on =
            printed.is_empty() || ["info", "warn", "xfail", "xleak", "flaky", "nocache"].into_iter().any(is);
        Ok((!goes_on).then(|| printed[if is("skip") { 4 } else { 0 }..].trim().to_owned()))
    }

    fn printed_by_skipif(&self, case: &Case, code: &[u8]) -> Result<String> {
        let key = (case.directory().to_owned(), code.to_owned());
        if let Some(known) = self.skips.0.lock().expect("no holder panics").get(&key) {
            return Ok(known.clone());
        }
        let script = case.path.with_extension("skip.php");
        let file = self.place.tree().join(&script);
        fs::write(&file, code)?;
        let answer = self.php.cgi(self.plain, &script, &script, &Request::get())?;
        fs::remove_file(&file)?;
        let printed = String::from_utf8_lossy(&answer.body).into_owned();
        if !printed.starts_with("nocache") {
            self.skips.0.lock().expect("no holder panics").insert(key, printed.clone());
        }
        Ok(printed)
    }

    /// Writes the script, asks for it, and removes what it leaves.
    fn between_files(&self, case: &Case, ask: impl FnOnce() -> Result<Answer>) -> Result<Answer> {
        let file = self.place.tree().join(case.script());
        fs::write(&file, case.phpt.get("FILE").unwrap_or_default())?;
        let answer = ask();
        if let Some(code) = case.phpt.get("CLEAN") {
            let clean = case.path.with_extension("clean.php");
            fs::write(self.place.tree().join(&clean), code)?;
            self.php.clean(self.plain, &clean)?;
            fs::remove_file(self.place.tree().join(&clean))?;
        }
        // A test may have removed itself.
        let _ = fs::remove_file(&file);
        answer
    }
}

fn both(expectation: &Expectation, on_regent: &Answer, on_cgi: &Answer) -> Vec<u8> {
    let missing: Vec<_> =
        expectation.missing_headers(on_regent).map(|(n, v)| format!("{n}: {v}\n")).collect();
    [
        b"---- header fields that Regent's answer does not have\n",
        missing.concat().as_bytes(),
        b"---- expected\n",
        &expectation.wanted,
        b"\n---- Regent\n",
        &on_regent.body,
        b"\n---- php-cgi\n",
        &on_cgi.body,
        b"\n",
    ]
    .concat()
}
