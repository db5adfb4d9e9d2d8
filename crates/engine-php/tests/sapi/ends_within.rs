//! Requests that end in the middle of what PHP has called back, and the request after them on the same thread.

use crate::support::{Scenario, Scratch};

/// By the limit of time or memory, by `exit`, and by a fatal error.
const WAYS: [&str; 4] = ["time", "memory", "exit", "fatal"];
/// Scenarios at a time: those that end by a time limit take a second for each request.
const AT_A_TIME: usize = 4;

#[derive(Clone, Copy)]
enum Mode {
    Classic,
    Worker,
}

impl Mode {
    fn script(self) -> &'static str {
        match self {
            Self::Classic => "ends_within.php",
            Self::Worker => "worker_ends_within.php",
        }
    }

    /// A worker's script is started anew after each request that ends it.
    fn scenario(self, sessions: &Scratch) -> Scenario {
        let scenario = match self {
            Self::Classic => Scenario::classic(),
            Self::Worker => Scenario::worker(self.script()).line("restarts", 100),
        };
        scenario.ini(&format!("session.save_path={}", sessions.path().display()))
    }
}

fn places(mode: Mode, sessions: &Scratch) -> Vec<String> {
    let outcome = mode.scenario(sessions).get(mode.script(), "places").run();
    let names = outcome.response(0).json();
    names.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Ends a request in each of these places, and looks each time what the next one finds.
fn check_places(mode: Mode, how: &str, places: &[String]) {
    let sessions = Scratch::new();
    let script = mode.script();
    let mut scenario = mode.scenario(&sessions).get(script, "");
    for place in places {
        let place = place.replace(' ', "+");
        scenario = scenario.get(script, &format!("how={how}&where={place}")).get(script, "");
    }
    let outcome = scenario.run();
    let expected = outcome.response(0).json();
    for (number, place) in places.iter().enumerate() {
        let (ended, next) = (outcome.response(1 + 2 * number), outcome.response(2 + 2 * number));
        assert!(ended.ended && next.ended, "{how} in {place}: {}", outcome.text);
        assert_eq!(next.status, 200, "after {how} in {place}: {}", outcome.text);
        assert_eq!(next.json(), expected, "after {how} in {place}");
    }
}

fn check(mode: Mode) {
    let sessions = Scratch::new();
    let places = places(mode, &sessions);
    assert!(places.len() > 30, "{places:?}");
    for how in WAYS {
        std::thread::scope(|scope| {
            for some in places.chunks(places.len().div_ceil(AT_A_TIME)) {
                scope.spawn(move || check_places(mode, how, some));
            }
        });
    }
}

#[test]
fn a_request_that_ended_within_a_callback_left_something_for_the_next_in_classic_mode() {
    check(Mode::Classic);
}

#[test]
fn a_request_that_ended_within_a_callback_left_something_for_the_next_in_worker_mode() {
    check(Mode::Worker);
}
