//! When requests may start: a plan's pace and limit.

use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::plan::{Limit, Pace, Plan, Stage};

/// How often a ramp is looked at: users come and go one by one up to a thousand a second.
const RAMP_STEP: Duration = Duration::from_millis(1);
/// A request in a quarter of an hour; moments stay within the range of `Duration`.
const LOWEST_RATE: f64 = 0.001;

#[derive(Debug)]
pub struct Schedule {
    pace: Progress,
    /// No request starts at this moment or later.
    end: Duration,
    /// So many requests are still to start.
    left: u64,
}

#[derive(Debug)]
enum Progress {
    Users(Vec<Stage>),
    Arrivals { rate: f64, next: u64, most_connections: u32 },
}

impl Schedule {
    pub fn new(plan: &Plan) -> Result<Self> {
        let pace = Progress::new(&plan.pace)?;
        let (end, left) = match (plan.limit, &plan.pace) {
            (Limit::Duration(duration), _) => (duration, u64::MAX),
            (Limit::Requests(requests), _) => (Duration::MAX, requests),
            (Limit::Stages, Pace::Ramp { stages }) => {
                (stages.iter().map(|stage| stage.duration).sum(), u64::MAX)
            }
            (Limit::Stages, _) => bail!("only a ramp has stages that end"),
        };
        Ok(Self { pace, end, left })
    }

    /// The most connections that the plan opens at once.
    pub fn most_connections(&self) -> u32 {
        match &self.pace {
            Progress::Users(stages) => stages.iter().map(|stage| stage.users).max().unwrap_or(0),
            Progress::Arrivals { most_connections, .. } => *most_connections,
        }
    }

    /// The moment from which no request starts, if it is known before.
    pub fn end(&self) -> Option<Duration> {
        (self.end != Duration::MAX).then_some(self.end)
    }

    /// Whether no request will start any more.
    pub fn is_over(&self, now: Duration) -> bool {
        self.left == 0 || self.next_arrival().unwrap_or(now) >= self.end
    }

    /// How many users there are now; `None` for an open loop.
    pub fn users(&self, now: Duration) -> Option<u32> {
        match &self.pace {
            Progress::Users(_) if self.is_over(now) => Some(0),
            Progress::Users(stages) => Some(users_at(stages, now)),
            Progress::Arrivals { .. } => None,
        }
    }

    /// The scheduled moment of an open loop's next request.
    pub fn next_arrival(&self) -> Option<Duration> {
        match self.pace {
            Progress::Arrivals { rate, next, .. } => Some(Duration::from_secs_f64(next as f64 / rate)),
            Progress::Users(_) => None,
        }
    }

    /// When to look again at the number of users.
    pub fn next_change(&self, now: Duration) -> Duration {
        match &self.pace {
            Progress::Users(stages) if is_changing(stages, now) => now + RAMP_STEP,
            _ => self.end,
        }
    }

    /// Counts a request that starts (or, in an open loop, becomes due).
    pub fn count(&mut self) {
        self.left -= 1;
        if let Progress::Arrivals { next, .. } = &mut self.pace {
            *next += 1;
        }
    }
}

impl Progress {
    fn new(pace: &Pace) -> Result<Self> {
        let stages = match *pace {
            Pace::Open { rate, most_connections } => {
                ensure!(
                    rate.is_finite() && rate >= LOWEST_RATE,
                    "a rate of {rate} requests a second is less than {LOWEST_RATE}"
                );
                ensure!(most_connections > 0, "an open loop needs connections");
                return Ok(Self::Arrivals { rate, next: 0, most_connections });
            }
            Pace::Closed { users } => vec![Stage { duration: Duration::ZERO, users }],
            Pace::Ramp { ref stages } => stages.clone(),
        };
        ensure!(stages.iter().any(|stage| stage.users > 0), "a closed loop needs users");
        Ok(Self::Users(stages))
    }
}

/// On the straight line of the stage that is under way; after the last one its number stays.
fn users_at(stages: &[Stage], now: Duration) -> u32 {
    let (mut begin, mut from) = (Duration::ZERO, 0);
    for stage in stages {
        let end = begin + stage.duration;
        if now < end {
            let share = (now - begin).as_secs_f64() / stage.duration.as_secs_f64();
            let users = f64::from(from) + (f64::from(stage.users) - f64::from(from)) * share;
            return users.round() as u32;
        }
        (begin, from) = (end, stage.users);
    }
    from
}

fn is_changing(stages: &[Stage], now: Duration) -> bool {
    now < stages.iter().map(|stage| stage.duration).sum::<Duration>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::tests::plan;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn stage(duration: f64, users: u32) -> Stage {
        Stage { duration: seconds(duration), users }
    }

    fn schedule(pace: Pace, limit: Limit) -> Result<Schedule> {
        Schedule::new(&Plan { pace, limit, ..plan() })
    }

    #[test]
    fn a_ramp_goes_in_straight_lines_from_zero() {
        let stages = vec![stage(10.0, 100), stage(10.0, 100), stage(5.0, 0)];
        let ramp = schedule(Pace::Ramp { stages }, Limit::Stages).expect("valid");
        for (second, users) in
            [(0.0, 0), (2.5, 25), (5.0, 50), (10.0, 100), (15.0, 100), (22.5, 50), (24.99, 0), (25.0, 0)]
        {
            assert_eq!(ramp.users(seconds(second)), Some(users), "{second}");
        }
        assert_eq!((ramp.most_connections(), ramp.end()), (100, Some(seconds(25.0))));
        assert!(!ramp.is_over(seconds(24.9)) && ramp.is_over(seconds(25.0)));
    }

    #[test]
    fn a_closed_loop_has_all_its_users_at_once() {
        let closed = schedule(Pace::Closed { users: 7 }, Limit::Duration(seconds(2.0))).expect("valid");
        assert_eq!((closed.users(Duration::ZERO), closed.users(seconds(2.0))), (Some(7), Some(0)));
        assert_eq!(closed.next_change(seconds(1.0)), seconds(2.0));
    }

    #[test]
    fn a_number_of_requests_is_not_exceeded() {
        let mut closed = schedule(Pace::Closed { users: 7 }, Limit::Requests(2)).expect("valid");
        closed.count();
        assert!(!closed.is_over(seconds(9.0)));
        closed.count();
        assert!(closed.is_over(Duration::ZERO) && closed.users(Duration::ZERO) == Some(0));
    }

    #[test]
    fn arrivals_are_evenly_spaced_and_end_by_their_own_moment() {
        let pace = Pace::Open { rate: 4.0, most_connections: 9 };
        let mut open = schedule(pace, Limit::Duration(seconds(0.5))).expect("valid");
        assert_eq!(open.next_arrival(), Some(Duration::ZERO));
        open.count();
        // However late it is: what was due before the end is sent.
        assert!(open.next_arrival() == Some(seconds(0.25)) && !open.is_over(seconds(60.0)));
        open.count();
        assert!(open.is_over(seconds(0.1)));
    }

    #[test]
    fn impossible_paces_are_errors() {
        for (pace, limit) in [
            (Pace::Closed { users: 0 }, Limit::Requests(1)),
            (Pace::Closed { users: 1 }, Limit::Stages),
            (Pace::Open { rate: 0.0, most_connections: 1 }, Limit::Requests(1)),
            (Pace::Open { rate: f64::NAN, most_connections: 1 }, Limit::Requests(1)),
            (Pace::Open { rate: 1.0, most_connections: 0 }, Limit::Requests(1)),
            (Pace::Ramp { stages: Vec::new() }, Limit::Stages),
        ] {
            assert!(schedule(pace.clone(), limit).is_err(), "{pace:?}");
        }
    }
}
