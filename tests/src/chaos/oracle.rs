//! Which requests of the load may have failed, and why.
//!
//! A request fails when it is not answered within three seconds with status 200 and the one body that is right. It is
//! excused only in these cases:
//!
//! 1. **It ran in an engine that died**: it got 502, the death is in the log between its first and its last byte, and the
//!    log names it among those that ran. Of those that the log does not name, but counts, as many are excused.
//! 2. **It ran in an engine that was stopped** ([`Harm::Stopped`]), and its `request_timeout` was over before that engine was
//!    given up: 504. It was sent before the stop.
//! 3. **It was in a process that was not itself any more**: between a fault that ruins its process ([`Harm::Process`]) and
//!    that process's death it was with that engine, and got 500, 502, or an end of its connection.
//!
//! So it is with the requests of faults that are to live, such as one that hangs.
//!
//! A death is excused itself only if a fault that kills this engine was just injected.

use super::Engine;
use super::events::{Event, Logged};
use super::faults::{Deed, FAULTS, Harm};
use super::injector::{Injection, Outcome};
use super::load::{Record, Trouble};
use std::time::Duration;

/// Between the death of a process and the log's line about it, at most.
const NOTICED: Duration = Duration::from_millis(2500);
/// Between the beginning of a stop and the stop.
const STOPPING: Duration = Duration::from_millis(50);
/// Between that line and the last answer to what ran, at most.
const TOLD: Duration = Duration::from_secs(1);

/// An engine that has died.
#[derive(Debug)]
pub struct Death {
    pub engine: Engine,
    pub at: Duration,
    pub reason: String,
    /// The injection that it died of.
    pub cause: Option<usize>,
    /// Requests of the load that ran in it, by the log.
    named: Vec<u64>,
    /// As many more ran, of which so many have been found.
    more: u64,
    found: u64,
}

/// What is to be said of one request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It ran in the engine that died of this injection.
    Running(usize),
    /// It was in the process that this injection has ruined.
    Ruined(usize),
    Lost,
}

/// The whole run.
#[derive(Debug)]
pub struct Judgement {
    pub deaths: Vec<Death>,
    /// By the place of the request among the records.
    pub failures: Vec<(usize, Verdict)>,
}

/// Judges the requests that failed.
pub fn judge(records: &[Record], injections: &[Injection], events: &[Logged]) -> Judgement {
    let mut deaths = deaths(events);
    for death in &mut deaths {
        death.cause = injections.iter().rposition(|injection| explains(injection, death));
    }
    let failed = records
        .iter()
        .enumerate()
        .filter_map(|(place, record)| Some((place, record, record.trouble.as_ref()?)));
    let failures =
        failed.map(|(place, record, trouble)| (place, verdict(record, trouble, injections, &mut deaths)));
    Judgement { failures: failures.collect(), deaths }
}

impl Judgement {
    /// Requests that nothing excuses.
    pub fn lost(&self) -> impl Iterator<Item = usize> {
        self.failures.iter().filter(|(_, verdict)| *verdict == Verdict::Lost).map(|(place, _)| *place)
    }

    /// Deaths that no fault explains.
    pub fn unexplained(&self) -> impl Iterator<Item = &Death> {
        self.deaths.iter().filter(|death| death.cause.is_none())
    }

    /// What was wrong about one of the injections: nothing, if its request ran in an engine that another one has killed, or in
    /// a process that another one had ruined.
    pub fn complaint(&self, of: usize, injections: &[Injection]) -> Option<String> {
        let injection = &injections[of];
        let died = || {
            self.deaths.iter().any(|death| {
                let ran = death.named.contains(&injection.number) || death.more > 0;
                death.cause.is_some_and(|cause| cause != of)
                    && ran
                    && (injection.from..=injection.until).contains(&death.at)
            })
        };
        let is_ruined = || {
            let (from, until) = (injection.from, injection.until);
            let is_web = matches!(FAULTS[injection.fault].deed, Deed::Ask(..));
            is_web && ruin(injections, from, until).is_some_and(|ruin| ruin != of)
        };
        match &injection.outcome {
            Outcome::AsExpected => None,
            Outcome::Lost if died() || is_ruined() => None,
            Outcome::Lost => Some("502, though it ran in no engine that died".to_owned()),
            Outcome::Wrong(_) if is_ruined() => None,
            Outcome::Wrong(reason) => Some(reason.clone()),
        }
    }

    /// How many requests an injection has cost.
    pub fn cost(&self, injection: usize) -> usize {
        let of = |verdict: &Verdict| matches!(verdict, Verdict::Running(cause) | Verdict::Ruined(cause) if *cause == injection);
        self.failures.iter().filter(|(_, verdict)| of(verdict)).count()
    }
}

/// Those in the log, with who ran in each.
fn deaths(events: &[Logged]) -> Vec<Death> {
    let mut deaths: Vec<Death> = Vec::new();
    for Logged { at, event } in events {
        match event {
            Event::Died(engine, reason) => deaths.push(Death {
                engine: *engine,
                at: *at,
                reason: reason.clone(),
                cause: None,
                named: Vec::new(),
                more: 0,
                found: 0,
            }),
            Event::Ran(number) => deaths.last_mut().into_iter().for_each(|death| death.named.push(*number)),
            Event::RanMore(more) => deaths.last_mut().into_iter().for_each(|death| death.more += more),
            Event::TakenOver(_) => {}
        }
    }
    deaths
}

fn explains(injection: &Injection, death: &Death) -> bool {
    let fault = &FAULTS[injection.fault];
    // Memory that is used up may end the process, too.
    let kills = fault.kills.or((fault.harms == Harm::Process).then_some(Engine::Php));
    kills == Some(death.engine) && injection.from <= death.at && death.at <= injection.until + NOTICED
}

fn verdict(record: &Record, trouble: &Trouble, injections: &[Injection], deaths: &mut [Death]) -> Verdict {
    let Some(engine) = record.route.engine() else { return Verdict::Lost };
    let met = deaths.iter_mut().filter(|death| {
        death.engine == engine
            && record.sent <= death.at
            && death.at <= record.ended
            && record.ended <= death.at + TOLD
    });
    if matches!(trouble, Trouble::Status(502, _)) {
        for death in met {
            let Some(cause) = death.cause else { continue };
            if death.named.contains(&record.number) {
                return Verdict::Running(cause);
            }
            if death.found < death.more {
                death.found += 1;
                return Verdict::Running(cause);
            }
        }
    }
    if matches!(trouble, Trouble::Status(504, _)) {
        let stopped = injections.iter().position(|injection| {
            FAULTS[injection.fault].harms == Harm::Stopped
                && FAULTS[injection.fault].kills == Some(engine)
                && record.sent <= injection.from + STOPPING
                && (injection.from..=injection.until).contains(&record.ended)
        });
        return stopped.map_or(Verdict::Lost, Verdict::Running);
    }
    let is_of_ruin = matches!(trouble, Trouble::Status(500 | 502, _) | Trouble::Broken(_));
    let is_php = engine == Engine::Php;
    let ruin = ruin(injections, record.sent, record.ended).filter(|_| is_of_ruin && is_php);
    ruin.map_or(Verdict::Lost, Verdict::Ruined)
}

/// The injection that ruined a process of PHP between these moments.
fn ruin(injections: &[Injection], from: Duration, until: Duration) -> Option<usize> {
    injections.iter().position(|injection| {
        FAULTS[injection.fault].harms == Harm::Process && injection.from <= until && from <= injection.until
    })
}

#[cfg(test)]
mod tests {
    use super::super::load::Protocol;
    use super::super::question::Route;
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn record(number: u64, route: Route, sent: f64, ended: f64, trouble: Trouble) -> Record {
        let (due, sent, ended) = (seconds(sent), seconds(sent), seconds(ended));
        Record { number, route, protocol: Protocol::Kept, due, sent, ended, trouble: Some(trouble) }
    }

    fn injected(harms: Harm, from: f64, until: f64) -> Injection {
        let fault = FAULTS.iter().position(|fault| fault.harms == harms && fault.kills == Some(Engine::Php));
        let fault = fault.expect("there is one");
        Injection {
            fault,
            from: seconds(from),
            until: seconds(until),
            number: 1 << 40,
            outcome: Outcome::AsExpected,
        }
    }

    fn death(at: f64, named: &[u64]) -> Vec<Logged> {
        let logged = |event| Logged { at: seconds(at), event };
        let died = logged(Event::Died(Engine::Php, "a signal".into()));
        std::iter::once(died).chain(named.iter().map(|number| logged(Event::Ran(*number)))).collect()
    }

    fn lost() -> Trouble {
        Trouble::Status(502, String::new())
    }

    fn verdict_of(record: Record, injection: Injection, events: &[Logged]) -> Verdict {
        judge(&[record], &[injection], events).failures[0].1
    }

    #[test]
    fn who_ran_in_an_engine_that_died_is_excused() {
        let crash = || injected(Harm::Running, 1.0, 1.1);
        let running = || record(7, Route::Classic, 0.9, 1.2, lost());
        assert_eq!(verdict_of(running(), crash(), &death(1.1, &[7])), Verdict::Running(0));
        assert_eq!(verdict_of(running(), crash(), &death(1.1, &[8])), Verdict::Lost, "another one ran");
        assert_eq!(verdict_of(running(), crash(), &[]), Verdict::Lost, "nothing has died");
        assert_eq!(verdict_of(running(), crash(), &death(1.3, &[7])), Verdict::Lost, "it had ended");
        let wrong = record(7, Route::Classic, 0.9, 1.2, Trouble::Wrong(String::new()));
        assert_eq!(verdict_of(wrong, crash(), &death(1.1, &[7])), Verdict::Lost, "a wrong answer is none");
        let native = record(7, Route::Native, 0.9, 1.2, lost());
        assert_eq!(verdict_of(native, crash(), &death(1.1, &[7])), Verdict::Lost, "it was elsewhere");
        let file = record(7, Route::Static, 0.9, 1.2, lost());
        assert_eq!(verdict_of(file, crash(), &death(1.1, &[7])), Verdict::Lost, "files are the server's");
    }

    #[test]
    fn those_that_the_log_only_counts_are_excused_as_often() {
        let more = Logged { at: seconds(1.1), event: Event::RanMore(1) };
        let events: Vec<Logged> = death(1.1, &[]).into_iter().chain([more]).collect();
        let records = [1, 2].map(|number| record(number, Route::Worker, 0.9, 1.2, lost()));
        let judgement = judge(&records, &[injected(Harm::Running, 1.0, 1.1)], &events);
        assert_eq!(judgement.failures, [(0, Verdict::Running(0)), (1, Verdict::Lost)]);
    }

    #[test]
    fn whose_time_is_over_in_a_stopped_engine_is_excused() {
        let timed_out = |sent| record(7, Route::Slow, sent, 2.0, Trouble::Status(504, String::new()));
        let stop = || injected(Harm::Stopped, 1.0, 2.2);
        assert_eq!(verdict_of(timed_out(0.99), stop(), &[]), Verdict::Running(0));
        assert_eq!(verdict_of(timed_out(1.1), stop(), &[]), Verdict::Lost, "nothing starts in it any more");
        assert_eq!(verdict_of(timed_out(0.99), injected(Harm::Running, 1.0, 2.2), &[]), Verdict::Lost);
    }

    #[test]
    fn a_death_without_a_fault_excuses_nobody() {
        let judgement = judge(
            &[record(7, Route::Classic, 8.9, 9.2, lost())],
            &[injected(Harm::Running, 1.0, 1.1)],
            &death(9.1, &[7]),
        );
        assert_eq!(judgement.lost().count(), 1);
        assert_eq!(judgement.unexplained().count(), 1);
    }

    #[test]
    fn a_fault_that_was_to_live_may_die_of_another() {
        let hung = Injection { outcome: Outcome::Lost, number: 9, ..injected(Harm::Running, 0.5, 1.2) };
        let injections = [hung, injected(Harm::Running, 1.0, 1.1)];
        assert_eq!(judge(&[], &injections, &death(1.1, &[9])).complaint(0, &injections), None);
        assert!(judge(&[], &injections, &death(1.1, &[8])).complaint(0, &injections).is_some());
        assert!(judge(&[], &injections, &death(1.3, &[9])).complaint(0, &injections).is_some());
    }

    #[test]
    fn who_was_in_a_ruined_process_is_excused() {
        let ruin = || injected(Harm::Process, 1.0, 2.0);
        let within = record(7, Route::Worker, 1.5, 1.6, Trouble::Status(500, String::new()));
        assert_eq!(verdict_of(within, ruin(), &[]), Verdict::Ruined(0));
        let after = record(7, Route::Worker, 2.5, 2.6, lost());
        assert_eq!(verdict_of(after, ruin(), &[]), Verdict::Lost);
        let late = record(7, Route::Worker, 1.5, 5.6, Trouble::Late);
        assert_eq!(verdict_of(late, ruin(), &[]), Verdict::Lost);
    }
}
