//! The counts of a run.

use std::fmt;
use std::time::Duration;

use anyhow::Result;

use super::histogram::Latencies;
use super::outcome::{KindOutcome, Outcome, Tick};
use super::plan::Plan;
use super::raw_log::RawLog;
use super::turns::Turns;

const TICK: Duration = Duration::from_millis(100);

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With the expected answer, of this status.
    Right(u16),
    /// With an answer of status 300 or more (or an interim one).
    Status(u16),
    Connect,
    Broken,
    Wrong,
    Timeout,
    Left,
}

impl End {
    /// Whether the request was answered, rightly or with an error.
    pub fn is_answer(self) -> bool {
        matches!(self, Self::Right(_) | Self::Status(_) | Self::Wrong)
    }
}

#[derive(Debug)]
pub struct Tally {
    names: Vec<String>,
    kinds: Vec<KindOutcome>,
    lag: Latencies,
    turns: Turns,
    series: Vec<Tick>,
    tick: Tick,
    tick_latencies: Latencies,
    /// The end of the load's limit, if that is a moment.
    limit: Option<Duration>,
    right_in_time: u64,
    last_end: Duration,
    most_connections: u32,
    raw_log: Option<RawLog>,
}

impl Tally {
    pub fn new(plan: &Plan, limit: Option<Duration>, raw_log: Option<RawLog>) -> Self {
        Self {
            names: plan.mix.iter().map(|kind| kind.name.clone()).collect(),
            kinds: vec![KindOutcome::default(); plan.mix.len()],
            lag: Latencies::default(),
            turns: Turns::new(&plan.pace),
            series: Vec::new(),
            tick: Tick::default(),
            tick_latencies: Latencies::default(),
            limit,
            right_in_time: 0,
            last_end: Duration::ZERO,
            most_connections: 0,
            raw_log,
        }
    }

    /// When the tick ends that is under way.
    pub fn tick_end(&self) -> Duration {
        TICK * u32::try_from(self.series.len() + 1).expect("invariant: a run has no 13 years")
    }

    /// Closes the ticks that are over.
    pub fn advance(&mut self, now: Duration, users: u32, under_way: u32) {
        while now >= self.tick_end() {
            let milliseconds = |quantile| self.tick_latencies.quantile_ms(quantile).unwrap_or(0.0) as f32;
            let (p50_ms, p99_ms) = (milliseconds(0.5), milliseconds(0.99));
            self.series.push(Tick { users, under_way, p50_ms, p99_ms, ..std::mem::take(&mut self.tick) });
            self.tick_latencies.clear();
        }
    }

    pub fn add_bytes(&mut self, kind: usize, bytes: usize) {
        self.kinds[kind].bytes += bytes as u64;
    }

    pub fn add_lag(&mut self, lag: Duration) {
        self.lag.record(lag);
    }

    pub fn note_connections(&mut self, open: u32) {
        self.most_connections = self.most_connections.max(open);
    }

    /// Counts a request of the kind with this index that started and ended at these moments.
    pub fn add(&mut self, kind: usize, start: Duration, now: Duration, end: End) -> Result<()> {
        let latency = now.saturating_sub(start);
        self.last_end = now;
        self.turns.add(now);
        self.count(kind, latency, now, end);
        match &mut self.raw_log {
            Some(log) => log.write(start, latency, &self.names[kind], end),
            None => Ok(()),
        }
    }

    /// The outcome of the run; an error when the raw log cannot be written to its end.
    pub fn finish(self, cpu: Duration) -> Result<Outcome> {
        if let Some(log) = self.raw_log {
            log.finish()?;
        }
        let mut outcome = Outcome {
            duration_s: self.limit.unwrap_or(self.last_end).as_secs_f64(),
            right_in_time: self.right_in_time,
            series: self.series,
            lag: self.lag,
            turns: self.turns.into_lengths(),
            cpu_s: cpu.as_secs_f64(),
            most_connections: self.most_connections,
            ..Outcome::default()
        };
        for (name, kind) in self.names.into_iter().zip(&self.kinds) {
            outcome.kinds.entry(name).or_default().merge(kind);
        }
        Ok(outcome)
    }

    fn count(&mut self, kind: usize, latency: Duration, now: Duration, end: End) {
        let outcome = &mut self.kinds[kind];
        let failures = &mut outcome.failures;
        match end {
            End::Right(_) => {
                outcome.right.record(latency);
                self.tick_latencies.record(latency);
                self.tick.right += 1;
                self.right_in_time += u64::from(self.limit.is_none_or(|limit| now <= limit));
                return;
            }
            End::Status(status) => outcome.statuses.entry(status).or_default().record(latency),
            End::Connect => failures.connect += 1,
            End::Broken => failures.broken += 1,
            End::Wrong => failures.wrong += 1,
            End::Timeout => failures.timeout += 1,
            End::Left => failures.left += 1,
        }
        self.tick.failed += 1;
    }
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right(status) | Self::Status(status) => write!(formatter, "{status}"),
            Self::Connect => formatter.write_str("connect"),
            Self::Broken => formatter.write_str("broken"),
            Self::Wrong => formatter.write_str("wrong"),
            Self::Timeout => formatter.write_str("timeout"),
            Self::Left => formatter.write_str("left"),
        }
    }
}
