use super::*;
use crate::routes::{MAX_ROUTES, Routes};
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);
const RULES: CircuitRules = CircuitRules {
    failures: 3,
    within: Duration::from_secs(60),
    pause: Duration::from_secs(10),
    max_pause: Duration::from_secs(300),
};
const SCRIPT: &[u8] = b"/www/index.php";

/// Of its route, or of its script.
fn name(circuit: &CircuitKey) -> String {
    circuit.route.as_deref().map_or_else(|| circuit.script_name(), str::to_owned)
}

struct Bench {
    circuits: Circuits,
    routes: Routes,
    now: Duration,
}

impl Bench {
    fn new() -> Self {
        Self { circuits: Circuits::new(RULES), routes: Routes::new(Duration::ZERO), now: SECOND }
    }

    fn route(&self, path: &str) -> Arc<Route> {
        let route = self.routes.get(0, path, self.now);
        if route.is_overflow() { self.routes.shared(0, SCRIPT, self.now) } else { route }
    }

    fn suspects(&self, paths: &[&str]) -> Vec<Suspect> {
        paths.iter().map(|path| Suspect { route: self.route(path), code: SCRIPT.into() }).collect()
    }

    /// An engine dies of the first of these, beside the others. Returns the names of what opens.
    fn dies_of(&mut self, paths: &[&str]) -> Vec<String> {
        self.die(paths, Some(0))
    }

    /// It is not known of what.
    fn dies(&mut self, paths: &[&str]) -> Vec<String> {
        self.die(paths, None)
    }

    fn die(&mut self, paths: &[&str], killer: Option<usize>) -> Vec<String> {
        let suspects = self.suspects(paths);
        let openings = self.circuits.died(&suspects, killer, self.now);
        openings.into_iter().map(|opening| name(&opening.circuit)).collect()
    }

    fn ask(&mut self, path: &str) -> Entry {
        let route = self.route(path);
        self.circuits.ask(&route, SCRIPT, self.now)
    }

    fn passes(&mut self, path: &str) -> bool {
        self.ask(path) == Entry::Pass
    }
}

#[test]
fn a_route_that_kills_is_closed_and_no_other_of_its_script() {
    let mut bench = Bench::new();
    let opened: Vec<_> = (0..3).flat_map(|_| bench.dies_of(&["/bad", "/good", "/good"])).collect();
    assert_eq!(opened, ["/bad"]);
    assert!(
        matches!(bench.ask("/bad"), Entry::Refuse(Refusal { retry_after, .. }) if retry_after == 10 * SECOND)
    );
    assert!(bench.passes("/good") && bench.passes("/never/asked/for"));
}

#[test]
fn a_path_of_the_same_name_that_runs_another_script_goes_on() {
    let mut bench = Bench::new();
    (0..3).for_each(|_| drop(bench.dies_of(&["/bad"])));
    let route = bench.route("/bad");
    assert_eq!(bench.circuits.ask(&route, b"/other-site/index.php", bench.now), Entry::Pass);
    assert_eq!(bench.circuits.ask(&route, b"/www/errors/503.php", bench.now), Entry::Pass, "its error page");
}

#[test]
fn several_bad_routes_close_themselves_and_not_the_script() {
    let mut bench = Bench::new();
    let paths = ["/a", "/b", "/c", "/d", "/e", "/f"];
    let opened: Vec<_> = paths
        .iter()
        .flat_map(|path| (0..3).flat_map(|_| bench.dies_of(&[*path])).collect::<Vec<_>>())
        .collect();
    assert_eq!(opened, paths);
    assert!(bench.passes("/good"));
}

#[test]
fn what_kills_under_ever_other_paths_closes_the_script() {
    let mut bench = Bench::new();
    let paths = ["/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i"];
    let opened: Vec<_> = paths.iter().flat_map(|path| bench.dies_of(&[*path])).collect();
    assert_eq!(opened, ["/www/index.php"]);
    assert!(matches!(bench.ask("/anything"), Entry::Refuse(_)));
    let other = bench.routes.get(0, "/other.php", bench.now);
    assert_eq!(
        bench.circuits.ask(&other, b"/www/other.php", bench.now),
        Entry::Pass,
        "another script goes on"
    );
    bench.now += 10 * SECOND;
    let Entry::Probe(ticket) = bench.ask("/good") else { panic!("the pause is over") };
    assert!(!bench.passes("/good"), "one at a time");
    assert_eq!(bench.circuits.ended_well(&ticket).len(), 1);
    assert!(bench.passes("/good") && bench.circuits.are_closed());
}

#[test]
fn paths_that_have_no_room_count_for_their_script() {
    let mut bench = Bench::new();
    for number in 0..MAX_ROUTES {
        let word: String = number.to_string().bytes().map(|digit| char::from(digit + 49)).collect();
        bench.route(&format!("/{word}"));
    }
    assert!(!bench.route("/late").has_own_name());
    let opened: Vec<_> = (0..9).flat_map(|_| bench.dies_of(&["/late"])).collect();
    assert_eq!(opened, ["/www/index.php"]);
}

#[test]
fn one_of_several_that_is_let_through_gives_way_when_another_circuit_refuses() {
    let mut bench = Bench::new();
    (0..3).for_each(|_| drop(bench.dies_of(&["/bad"])));
    bench.now += 9 * SECOND;
    for path in ["/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i"] {
        bench.dies_of(&[path]);
    }
    bench.now += 2 * SECOND;
    assert!(matches!(bench.ask("/bad"), Entry::Refuse(Refusal { circuit, .. }) if circuit.route.is_none()));
    bench.now += 10 * SECOND;
    assert!(matches!(bench.ask("/bad"), Entry::Probe(Ticket(circuits)) if circuits.len() == 2));
}

#[test]
fn a_lone_suspect_is_to_blame() {
    let mut bench = Bench::new();
    let opened: Vec<_> = (0..3).flat_map(|_| bench.dies(&["/exits", "/exits"])).collect();
    assert_eq!(opened, ["/exits"], "two requests of it that died at once count once");
}

#[test]
fn a_lone_suspect_whose_requests_end_is_not_to_blame() {
    let mut bench = Bench::new();
    bench.route("/busy").record(SECOND);
    for _ in 0..9 {
        assert!(bench.dies(&["/busy"]).is_empty());
        bench.route("/busy").record(SECOND);
    }
    let opened: Vec<_> = (0..4).flat_map(|_| bench.dies(&["/busy"])).collect();
    assert_eq!(opened, ["/busy"], "none ends any more");
}

#[test]
fn of_several_suspects_those_count_that_ran_twice_in_a_row_and_never_end() {
    let mut bench = Bench::new();
    for round in 0..4 {
        let opened = bench.dies(&["/exits", "/busy", if round % 2 == 0 { "/now" } else { "/then" }]);
        assert_eq!(opened, if round == 3 { vec!["/exits"] } else { vec![] }, "round {round}");
        // Requests of this one end between two deaths.
        bench.route("/busy").record(SECOND);
    }
    assert!(bench.passes("/busy") && bench.passes("/now"));
}

#[test]
fn a_death_that_is_explained_makes_nobody_else_a_suspect() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench.dies(&["/stream", "/x"]);
        bench.dies_of(&["/bad", "/stream"]);
        bench.dies(&["/stream", "/y"]);
        bench.dies_of(&["/worse", "/stream"]);
    }
    assert!(bench.passes("/stream"));
}

#[test]
fn of_several_suspects_the_one_that_was_let_through_is_to_blame() {
    let mut bench = Bench::new();
    (0..3).for_each(|_| drop(bench.dies_of(&["/bad"])));
    bench.now += 10 * SECOND;
    let Entry::Probe(ticket) = bench.ask("/bad") else { panic!("the pause is over") };
    assert_eq!(bench.dies(&["/good", "/bad"]), ["/bad"]);
    assert!(bench.circuits.ended_well(&ticket).is_empty());
    assert!(
        matches!(bench.ask("/bad"), Entry::Refuse(Refusal { retry_after, .. }) if retry_after == 20 * SECOND)
    );
}

#[test]
fn who_waits_is_refused_when_the_circuit_opens() {
    let mut bench = Bench::new();
    let route = bench.route("/bad");
    assert_eq!(bench.circuits.refuses(&route, SCRIPT, bench.now), None);
    (0..3).for_each(|_| drop(bench.dies_of(&["/bad"])));
    let refusal = bench.circuits.refuses(&route, SCRIPT, bench.now).expect("it is open");
    assert_eq!((refusal.retry_after, name(&refusal.circuit)), (10 * SECOND, "/bad".to_owned()));
}

#[test]
fn a_probe_that_waits_is_refused_when_another_has_killed() {
    let mut bench = Bench::new();
    (0..3).for_each(|_| drop(bench.dies_of(&["/bad"])));
    bench.now += 10 * SECOND;
    let Entry::Probe(waits) = bench.ask("/bad") else { panic!("the pause is over") };
    bench.now += 10 * SECOND;
    let Entry::Probe(runs) = bench.ask("/bad") else { panic!("the first takes too long") };
    assert_eq!(bench.circuits.refuses_probe(&waits, bench.now), None);
    bench.dies_of(&["/bad"]);
    assert!(bench.circuits.refuses_probe(&waits, bench.now).is_some());
    bench.now += 20 * SECOND;
    let Entry::Probe(last) = bench.ask("/bad") else { panic!("the pause is over") };
    assert!(bench.circuits.ended_well(&runs).is_empty());
    assert_eq!(bench.circuits.ended_well(&last).len(), 1);
    assert_eq!(bench.circuits.refuses_probe(&waits, bench.now), None, "it is closed");
}

#[test]
fn lists_have_what_is_not_closed() {
    let mut bench = Bench::new();
    (0..3).for_each(|_| drop(bench.dies_of(&["/bad"])));
    bench.dies_of(&["/once"]);
    bench.now += 4 * SECOND;
    let figures = bench.circuits.figures(bench.now);
    assert_eq!(figures.len(), 1);
    assert_eq!((figures[0].phase, figures[0].pause, figures[0].left), (Phase::Open, 10 * SECOND, 6 * SECOND));
}

#[test]
fn an_engine_that_names_a_thread_that_ran_nothing_accuses_nobody() {
    let mut bench = Bench::new();
    (0..9).for_each(|_| assert!(bench.die(&["/a"], Some(1)).is_empty()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whoever dies of whatever: the table is bounded, and what never killed is not refused before its script is.
    #[test]
    fn the_table_is_bounded_and_a_bystander_goes_on(deaths in prop::collection::vec((0..2_000_u32, 0..40_u32, 0..5_000_u64), 0..600)) {
        let mut bench = Bench::new();
        let mut script_opened = false;
        for (number, repeats, after) in deaths {
            bench.now += Duration::from_millis(after);
            let word: String = number.to_string().bytes().map(|digit| char::from(digit + 49)).collect();
            for _ in 0..repeats % 4 {
                let opened = bench.dies_of(&[&format!("/{word}"), "/bystander"]);
                script_opened |= opened.iter().any(|name| name == "/www/index.php");
            }
            prop_assert!(bench.circuits.circuits.len() <= MOST);
            let figures = bench.circuits.figures(bench.now);
            prop_assert!(figures.iter().all(|circuit| name(&circuit.circuit) != "/bystander"));
            if !script_opened {
                prop_assert!(bench.passes("/bystander"));
            }
        }
    }
}
