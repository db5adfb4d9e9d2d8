//! What the load asks for, and the one answer that is right.
//!
//! Each request has a number of its own, which its answer repeats. What the configuration, a release or a watched file is
//! made of has a version that the answer tells, too: none may be older than what had been put in force when the request was
//! sent, and none newer than what there was when its answer had come.

use super::Engine;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Files that are served as they are.
pub const STATIC_FILES: u64 = 64;
/// Milliseconds that a slow request takes at least.
const SLOW: u32 = 20;
/// Bytes that an upload is filled up to.
const UPLOAD: usize = 3000;
/// The header field with the version of the configuration.
pub const ROUND: &str = "X-Round";

/// Kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    Classic,
    /// Classic, and runs long enough that one is running at any moment.
    Slow,
    /// Classic, with a body both ways.
    Upload,
    Worker,
    Native,
    Static,
    /// Classic, of two files of a release.
    Release,
}

/// A thing that is replaced while requests are answered from it.
#[derive(Debug, Default)]
pub struct Version {
    settled: AtomicU64,
    newest: AtomicU64,
}

/// All things that are replaced.
#[derive(Debug, Default)]
pub struct Versions {
    /// The configuration.
    pub round: Version,
    /// What the link to the current release leads to.
    pub release: Version,
    /// The watched file.
    pub text: Version,
}

/// The versions that were in force at some moment.
#[derive(Debug, Clone, Copy)]
struct Floor {
    round: u64,
    release: u64,
    text: u64,
}

/// A request of the load.
#[derive(Debug)]
pub struct Question {
    pub number: u64,
    pub route: Route,
    pub target: String,
    pub body: Option<String>,
    floor: Floor,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The value of [`ROUND`].
    pub round: Option<String>,
    pub body: Vec<u8>,
}

impl Version {
    /// A newer one may be seen from now on.
    pub fn begin(&self) -> u64 {
        self.newest.fetch_add(1, SeqCst) + 1
    }

    /// None but the newest is in force.
    pub fn settle(&self) {
        self.settled.store(self.newest.load(SeqCst), SeqCst);
    }

    /// The newest.
    pub fn newest(&self) -> u64 {
        self.newest.load(SeqCst)
    }

    fn check(&self, seen: Option<&str>, floor: u64, what: &str) -> Result<(), String> {
        let newest = self.newest();
        match seen.and_then(|text| text.parse::<u64>().ok()) {
            Some(version) if (floor..=newest).contains(&version) => Ok(()),
            _ => Err(format!("{what} {seen:?}, where {floor} to {newest} can be")),
        }
    }
}

impl Versions {
    fn in_force(&self) -> Floor {
        let [round, release, text] =
            [&self.round, &self.release, &self.text].map(|version| version.settled.load(SeqCst));
        Floor { round, release, text }
    }
}

impl Route {
    pub const ALL: [Self; 7] =
        [Self::Classic, Self::Slow, Self::Upload, Self::Worker, Self::Native, Self::Static, Self::Release];

    /// The one of the request with this number; of 20, six are classic, five of a worker, and so on.
    pub fn of(number: u64) -> Self {
        const MIX: [Route; 20] = {
            use Route::{
                Classic as C, Native as N, Release as R, Slow as S, Static as F, Upload as U, Worker as W,
            };
            [C, W, N, F, C, S, W, U, C, R, W, N, C, F, W, C, N, W, C, R]
        };
        // One of several visitors asks for every nth: it is to have all kinds.
        MIX[(number.wrapping_mul(7) % 20) as usize]
    }

    /// Who answers it, if that can die.
    pub fn engine(self) -> Option<Engine> {
        match self {
            Self::Static => None,
            Self::Native => Some(Engine::Native),
            _ => Some(Engine::Php),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Classic => "classic",
            Self::Slow => "classic, 20 ms",
            Self::Upload => "classic, upload",
            Self::Worker => "worker",
            Self::Native => "native",
            Self::Static => "static",
            Self::Release => "release",
        })
    }
}

impl Question {
    /// The request with this number, to be sent now.
    pub fn new(number: u64, route: Route, versions: &Versions) -> Self {
        let (path, body) = match route {
            Route::Classic => ("/classic.php?n=".to_owned(), None),
            Route::Slow => (format!("/classic.php?ms={SLOW}&n="), None),
            Route::Upload => ("/classic.php?n=".to_owned(), Some(format!("{number:x<UPLOAD$}"))),
            Route::Worker => ("/worker.php?n=".to_owned(), None),
            Route::Native => ("/native/variable/QUERY_STRING?n=".to_owned(), None),
            Route::Static => (format!("/static/{}.txt?n=", number % STATIC_FILES), None),
            Route::Release => ("/app/release.php?n=".to_owned(), None),
        };
        Self { number, route, target: format!("{path}{number}"), body, floor: versions.in_force() }
    }

    /// What is wrong with an answer of status 200.
    ///
    /// # Errors
    /// When it is not the answer to this question.
    pub fn check(&self, answer: &Answer, versions: &Versions) -> Result<(), String> {
        let text = String::from_utf8_lossy(&answer.body);
        versions.round.check(answer.round.as_deref(), self.floor.round, "the configuration is")?;
        let number = self.number.to_string();
        let is_right = match self.route {
            Route::Classic | Route::Slow | Route::Upload => {
                text == format!("classic {number} {}", self.body.as_deref().unwrap_or_default())
            }
            Route::Native => text == format!("n={number}"),
            Route::Static => text == format!("static {}", self.number % STATIC_FILES),
            Route::Worker => {
                let words: Vec<&str> = text.split(' ').collect();
                versions.text.check(words.get(1).copied(), self.floor.text, "the worker's text is")?;
                words.len() == 3 && (words[0], words[2]) == ("worker", &number)
            }
            Route::Release => {
                let words: Vec<&str> = text.split(' ').collect();
                versions.release.check(words.get(1).copied(), self.floor.release, "the release is")?;
                words.len() == 4 && (words[0], words[1], words[3]) == ("release", words[2], &number)
            }
        };
        if is_right { Ok(()) } else { Err(format!("another answer: {text:.200}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, round: u64) -> Answer {
        Answer { status: 200, round: Some(round.to_string()), body: text.into() }
    }

    fn question(route: Route, versions: &Versions) -> Question {
        static NUMBERS: AtomicU64 = AtomicU64::new(100);
        Question::new(NUMBERS.fetch_add(1, SeqCst), route, versions)
    }

    #[test]
    fn the_answer_to_somebody_else_is_wrong() {
        let versions = Versions::default();
        for route in Route::ALL {
            let asked = question(route, &versions);
            assert!(asked.check(&answer("classic 1 ", 0), &versions).is_err(), "{route}");
        }
        let asked = question(Route::Classic, &versions);
        asked.check(&answer(&format!("classic {} ", asked.number), 0), &versions).expect("its own");
    }

    #[test]
    fn what_was_replaced_before_the_request_is_wrong() {
        let versions = Versions::default();
        let before = question(Route::Worker, &versions);
        let text = format!("worker 0 {}", before.number);
        versions.text.begin();
        before.check(&answer(&text, 0), &versions).expect("it may be the old one still");
        versions.text.settle();
        before.check(&answer(&text, 0), &versions).expect("it was sent before");
        let after = question(Route::Worker, &versions);
        assert!(after.check(&answer(&text, 0), &versions).is_err());
        assert!(after.check(&answer(&format!("worker 2 {}", after.number), 0), &versions).is_err());
        after.check(&answer(&format!("worker 1 {}", after.number), 0), &versions).expect("the new one");
        assert!(after.check(&answer(&format!("worker 1 {}", after.number), 1), &versions).is_err());
    }

    #[test]
    fn an_answer_of_two_releases_is_wrong() {
        let versions = Versions::default();
        let asked = question(Route::Release, &versions);
        versions.release.begin();
        asked.check(&answer(&format!("release 1 1 {}", asked.number), 0), &versions).expect("of one");
        assert!(asked.check(&answer(&format!("release 0 1 {}", asked.number), 0), &versions).is_err());
    }
}
