//! Runs cases against a cache.

use super::case::{Case, Expected, Level, Step};
use super::origin::{Origin, RUN};
use crate::upstream::Received;
use crate::{Conn, Response, in_parallel};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Cases at once: most of their time they wait for something to get old.
const AT_ONCE: usize = 32;

/// What came of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Pass,
    /// With what was seen instead.
    Fail(String),
    /// What the case rests on is not there.
    Untested(String),
}

impl Outcome {
    /// In a table.
    pub fn word(&self, level: Level) -> &'static str {
        match (self, level) {
            (Self::Pass, Level::Observed) => "yes",
            (Self::Fail(_), Level::Observed) => "no",
            (Self::Pass, _) => "pass",
            (Self::Fail(_), _) => "**fail**",
            (Self::Untested(_), _) => "–",
        }
    }
}

/// The outcomes by the id of the case. `cache`: where it listens, with `origin` behind it.
pub fn run_all(cases: &[&Case], cache: SocketAddr, origin: &Origin) -> BTreeMap<String, Outcome> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    in_parallel(AT_ONCE, |_| {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run(case, cache, origin);
            outcomes.lock().expect("nobody panics with it").insert(case.id.clone(), outcome);
        }
    });
    let outcomes = outcomes.into_inner().expect("nobody panics with it");
    let by_id: HashMap<&str, &Outcome> =
        outcomes.iter().map(|(id, outcome)| (id.as_str(), outcome)).collect();
    let judged = |case: &&Case| {
        let missing = case.needs.iter().find(|id| by_id[*id] != &Outcome::Pass);
        let outcome = match missing {
            Some(id) => Outcome::Untested(format!("it needs {id}")),
            None => by_id[case.id.as_str()].clone(),
        };
        (case.id.clone(), outcome)
    };
    cases.iter().map(judged).collect()
}

fn run(case: &Case, cache: SocketAddr, origin: &Origin) -> Outcome {
    let start = SystemTime::now();
    let mut answered = Instant::now();
    for (number, step) in case.steps.iter().enumerate() {
        #[expect(clippy::disallowed_methods, reason = "the responses of the suite get old in real time")]
        std::thread::sleep(Duration::from_secs(step.after).saturating_sub(answered.elapsed()));
        let taken = Taken::take(case, step, start, cache, origin);
        answered = Instant::now();
        let wrong = |of: &[Expected]| of.iter().find_map(|expected| taken.differs_from(expected));
        let is_last = number + 1 == case.steps.len();
        if let Some(reason) = wrong(&step.given) {
            return Outcome::Untested(format!("step {}: {reason}", number + 1));
        }
        match wrong(&step.then) {
            Some(reason) if is_last => return Outcome::Fail(reason),
            Some(reason) => return Outcome::Untested(format!("step {}: {reason}", number + 1)),
            None => {}
        }
    }
    Outcome::Pass
}

/// A step that was taken.
struct Taken {
    start: SystemTime,
    /// `None`: the connection ended without a whole one.
    response: Option<Response>,
    /// Runs before.
    runs: usize,
    asked: Vec<Received>,
    /// The body of the run that the response says it is of.
    body: Option<String>,
}

impl Taken {
    fn take(case: &Case, step: &Step, start: SystemTime, cache: SocketAddr, origin: &Origin) -> Self {
        let mut says = step.says.clone();
        says.fields.iter_mut().for_each(|field| *field = with_dates(field, start));
        let runs = origin.begin_step(&case.id, says);
        let response = send(case, step, start, cache);
        let asked = origin.asked(&case.id);
        let mut taken = Self { start, response, runs, asked, body: None };
        taken.body = taken.run().and_then(|run| origin.body_of(&case.id, run));
        taken
    }

    fn run(&self) -> Option<usize> {
        self.response.as_ref()?.header(RUN)?.parse().ok()
    }

    fn is_kept(&self) -> bool {
        self.run().is_some_and(|run| run <= self.runs) && self.has_body_of_run()
    }

    fn has_body_of_run(&self) -> bool {
        let whole = |response: &&Response| response.status == 200 && !response.body.is_empty();
        let response = self.response.as_ref().filter(whole);
        response.is_none_or(|response| Some(response.text()) == self.body)
    }

    /// What was seen instead; `None`: it is as expected.
    fn differs_from(&self, expected: &Expected) -> Option<String> {
        if self.is_as(expected) { None } else { Some(format!("{expected:?}, but {self}")) }
    }

    fn is_as(&self, expected: &Expected) -> bool {
        let Some(response) = &self.response else { return *expected == Expected::NotKept };
        let value = |name: &str| response.header_all(name).join(", ");
        let age = || response.header("age").and_then(|age| age.parse::<u64>().ok());
        match expected {
            Expected::Cached => self.is_kept() && self.asked.is_empty(),
            Expected::Kept => self.is_kept(),
            Expected::Forwarded => {
                !self.asked.is_empty()
                    && self.run().is_some_and(|run| run > self.runs)
                    && self.has_body_of_run()
            }
            Expected::NotKept => !self.is_kept(),
            Expected::Validated(condition) => {
                self.is_kept() && self.asked.len() == 1 && self.was_asked(condition)
            }
            Expected::Status(status) => response.status == *status,
            Expected::Field(field) => {
                let field = with_dates(field, self.start);
                let (name, wanted) = field.split_once(':').expect("a field has a colon");
                value(name) == wanted.trim()
            }
            Expected::Without(name) => response.header(name).is_none(),
            Expected::AgeFrom(least) => age().is_some_and(|age| age >= *least),
            Expected::AgeUpTo(most) => age().is_none_or(|age| age <= *most),
            Expected::Body(body) => response.text() == *body,
            Expected::Asked(field) => self.was_asked(field),
            Expected::AskedBy(method) => {
                self.asked.iter().any(|request| request.line().starts_with(&format!("{method} ")))
            }
            Expected::Interim(status) => response.informational.iter().any(|one| one.status == *status),
            Expected::NoInterim => response.informational.is_empty(),
        }
    }

    fn was_asked(&self, field: &str) -> bool {
        let field = with_dates(field, self.start);
        let (name, wanted) = field.split_once(':').expect("a field has a colon");
        self.asked.iter().any(|request| request.field(name) == wanted.trim())
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked: Vec<&str> = self.asked.iter().map(|request| request.head.trim_end()).collect();
        match &self.response {
            None => write!(f, "there is no whole response")?,
            Some(response) => {
                write!(f, "{} {:?} {:?}", response.status, response.headers, response.text())?;
                let informational: Vec<u16> = response.informational.iter().map(|one| one.status).collect();
                write!(f, " after {informational:?}")?;
            }
        }
        write!(f, "; {} runs before; asked: {asked:?}", self.runs)
    }
}

/// On a connection of its own, which stays open for the answer.
fn send(case: &Case, step: &Step, start: SystemTime, cache: SocketAddr) -> Option<Response> {
    let mut head = format!("{} /{}{} HTTP/1.1\r\nHost: cache.test\r\n", step.method, case.id, step.target);
    for field in &step.fields {
        head += &format!("{}\r\n", with_dates(field, start));
    }
    if !step.body.is_empty() {
        head += &format!("Content-Length: {}\r\n", step.body.len());
    }
    let mut conn = Conn::try_open(cache).ok()?;
    conn.try_send(format!("{head}Connection: close\r\n\r\n{}", step.body)).ok()?;
    conn.try_response(&step.method).ok()?
}

/// The text with its `{start±seconds}` as dates of HTTP.
fn with_dates(text: &str, start: SystemTime) -> String {
    let Some((before, rest)) = text.split_once("{start") else { return text.to_owned() };
    let (offset, after) = rest.split_once('}').expect("a brace that is closed");
    let seconds: i64 = if offset.is_empty() { 0 } else { offset.parse().expect("a number of seconds") };
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let date = if seconds < 0 { start - distance } else { start + distance };
    format!("{before}{}{}", httpdate::fmt_http_date(date), with_dates(after, start))
}
