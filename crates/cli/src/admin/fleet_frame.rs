//! What `regent top --fleet` shows: what each server said in, lines out.

use super::table::{Align, Line, Span, Table, Tone};
use super::units::{duration, rate};
use regent_admin::{Address, Percentiles, PoolStatistics, Statistics};
use std::time::Duration;

/// A server of the fleet.
pub struct Instance {
    pub address: Address,
    pub standing: Standing,
}

/// What is known of it.
pub enum Standing {
    /// It was asked, and there was no time for an answer yet.
    Asked,
    Answers(Box<Reading>),
    /// It does not answer, and why.
    Silent(String),
}

/// What it said last.
pub struct Reading {
    pub statistics: Statistics,
    /// Why it is not ready, if it is not.
    pub unready: Option<String>,
}

const COLUMNS: [(&str, Align); 12] = [
    ("INSTANCE", Align::Left),
    ("VERSION", Align::Left),
    ("UP", Align::Right),
    ("STATE", Align::Left),
    ("REQ/S", Align::Right),
    ("QUEUE P50", Align::Right),
    ("QUEUE P99", Align::Right),
    ("P99", Align::Right),
    ("BUSY", Align::Right),
    ("WAITING", Align::Right),
    ("ERRORS", Align::Right),
    ("REFUSED", Align::Right),
];
/// Lines that are no instances: title, blank, heading.
const AROUND: usize = 3;

/// As many instances as there is room for, in the order in which they were named; where there is too little, those in
/// trouble first.
pub fn frame(instances: &[Instance], room: usize) -> Vec<Line> {
    let mut shown: Vec<_> = instances.iter().collect();
    let rows = room.saturating_sub(AROUND).max(1);
    if shown.len() > rows {
        shown.sort_by_key(|instance| instance.trouble().is_none());
        shown.truncate(rows);
    }
    let mut lines = vec![title(instances, shown.len()), Line::new()];
    let mut table = Table::new(&COLUMNS);
    shown.iter().for_each(|instance| table.row(row(instance)));
    lines.extend(table.lines());
    let troubles: Vec<_> =
        shown.iter().filter_map(|instance| Some((&instance.address, instance.trouble()?))).collect();
    if !troubles.is_empty() && lines.len() + 1 < room {
        lines.push(Line::new());
        let left = room - lines.len();
        lines.extend(troubles.into_iter().take(left).map(|(address, reason)| trouble(address, reason)));
    }
    lines
}

fn title(instances: &[Instance], shown: usize) -> Line {
    let readings: Vec<_> = instances.iter().filter_map(Instance::reading).collect();
    let ready = readings.iter().filter(|reading| reading.unready.is_none()).count();
    let tone = if ready < instances.len() { Tone::Bad } else { Tone::Plain };
    let requests: f64 = readings.iter().map(|reading| per_second(&reading.statistics)).sum();
    let mut line = vec![
        Span::new("Fleet", Tone::Heading),
        Span::new(format!("  {ready} of {} ready", instances.len()), tone),
        Span::plain(format!("  {requests:.0} requests/s")),
    ];
    if shown < instances.len() {
        line.push(Span::new(format!("  {shown} are shown"), Tone::Quiet));
    }
    line
}

fn row(instance: &Instance) -> Vec<Span> {
    let mut row = vec![Span::plain(instance.address.to_string())];
    match &instance.standing {
        Standing::Answers(reading) => row.extend(figures(reading)),
        Standing::Asked => row.extend(nothing("asked", Tone::Quiet)),
        Standing::Silent(_) => row.extend(nothing("no answer", Tone::Bad)),
    }
    row
}

fn nothing(state: &str, tone: Tone) -> Vec<Span> {
    let name = |(heading, _): &(&str, Align)| match *heading {
        "STATE" => Span::new(state, tone),
        _ => Span::new("–", Tone::Quiet),
    };
    COLUMNS[1..].iter().map(name).collect()
}

fn figures(reading: &Reading) -> Vec<Span> {
    let Reading { statistics, unready } = reading;
    let pools = &statistics.pools;
    let state = match unready {
        None => Span::new("ready", Tone::Active),
        Some(_) => Span::new("not ready", Tone::Bad),
    };
    let queue = |of: fn(&Percentiles) -> Duration| worst(pools, |pool| pool.traffic.queue.as_ref().map(of));
    let sum = |of: fn(&PoolStatistics) -> u64| pools.iter().map(of).sum::<u64>();
    let trouble =
        |events: u64| Span::new(events.to_string(), if events > 0 { Tone::Bad } else { Tone::Quiet });
    let waiting = sum(|pool| pool.pool.queued.into());
    let busy = sum(|pool| pool.pool.threads.busy.into());
    let threads = sum(|pool| pool.pool.threads.total().into());
    vec![
        Span::plain(&statistics.version),
        Span::plain(duration(statistics.uptime)),
        state,
        Span::plain(rate(sum(|pool| pool.traffic.requests), statistics.window)),
        queue(|times| times.p50),
        queue(|times| times.p99),
        worst(pools, |pool| pool.traffic.total.as_ref().map(|times| times.p99)),
        Span::plain(format!("{busy}/{threads}")),
        Span::new(waiting.to_string(), if waiting > 0 { Tone::Warning } else { Tone::Quiet }),
        trouble(sum(|pool| pool.traffic.errors)),
        trouble(sum(|pool| pool.traffic.shed.total())),
    ]
}

/// Of several pools the one that is worst off: percentiles cannot be added up.
fn worst(pools: &[PoolStatistics], of: impl Fn(&PoolStatistics) -> Option<Duration>) -> Span {
    Span::plain(pools.iter().filter_map(of).max().map_or_else(|| "–".to_owned(), duration))
}

fn per_second(statistics: &Statistics) -> f64 {
    let requests: u64 = statistics.pools.iter().map(|pool| pool.traffic.requests).sum();
    requests as f64 / statistics.window.as_secs_f64().max(0.001)
}

fn trouble(address: &Address, reason: &str) -> Line {
    vec![Span::plain(format!("{address}  ")), Span::new(reason, Tone::Bad)]
}

impl Instance {
    fn reading(&self) -> Option<&Reading> {
        match &self.standing {
            Standing::Answers(reading) => Some(reading),
            Standing::Asked | Standing::Silent(_) => None,
        }
    }

    fn trouble(&self) -> Option<&str> {
        match &self.standing {
            Standing::Answers(reading) => reading.unready.as_deref(),
            Standing::Silent(reason) => Some(reason),
            Standing::Asked => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::plain_text;
    use super::*;
    use regent_admin::{Engine, Pool, ThreadCounts, Traffic};

    fn pool(name: &str, busy: u32, queue_p99: u64) -> PoolStatistics {
        let times = |p50, p99| {
            let [p50, p99] = [p50, p99].map(Duration::from_millis);
            Some(Percentiles { p50, p90: p99, p99, max: p99 })
        };
        let pool = Pool {
            name: name.into(),
            engine: Engine::Php,
            worker: None,
            threads: ThreadCounts { busy, idle: 1, ..ThreadCounts::default() },
            least: 1,
            most: 8,
            queued: 2,
            oldest_wait: Duration::ZERO,
        };
        let (queue, total) = (times(1, queue_p99), times(5, 50));
        PoolStatistics {
            pool,
            traffic: Traffic { requests: 100, errors: 3, queue, total, ..Traffic::default() },
        }
    }

    fn answering(port: u16, unready: Option<&str>) -> Instance {
        let statistics = Statistics {
            version: "1.2.3".into(),
            uptime: Duration::from_secs(20),
            window: Duration::from_secs(10),
            pools: vec![pool("classic", 2, 20), pool("app", 1, 30)],
            routes: Vec::new(),
            circuits: Vec::new(),
            scale_events: Vec::new(),
            generations: Vec::new(),
            php: None,
        };
        let reading = Box::new(Reading { statistics, unready: unready.map(str::to_owned) });
        Instance { address: address(port), standing: Standing::Answers(reading) }
    }

    fn silent(port: u16) -> Instance {
        Instance { address: address(port), standing: Standing::Silent("refused".into()) }
    }

    fn address(port: u16) -> Address {
        Address::Tcp { host: "a.test".into(), port }
    }

    fn text(instances: &[Instance], room: usize) -> Vec<String> {
        frame(instances, room).iter().map(plain_text).collect()
    }

    #[test]
    fn each_instance_has_a_line_and_each_trouble_a_reason() {
        let asked = Instance { address: address(4), standing: Standing::Asked };
        let fleet = [answering(1, None), answering(2, Some("no thread for app")), silent(3), asked];
        let expected = "\
Fleet  1 of 4 ready  40 requests/s

INSTANCE  VERSION    UP  STATE      REQ/S  QUEUE P50  QUEUE P99    P99  BUSY  WAITING  ERRORS  REFUSED
a.test:1  1.2.3    20 s  ready         20     1.0 ms      30 ms  50 ms   3/5        4       6        0
a.test:2  1.2.3    20 s  not ready     20     1.0 ms      30 ms  50 ms   3/5        4       6        0
a.test:3  –           –  no answer      –          –          –      –     –        –       –        –
a.test:4  –           –  asked          –          –          –      –     –        –       –        –

a.test:2  no thread for app
a.test:3  refused";
        assert_eq!(text(&fleet, usize::MAX).join("\n"), expected);
    }

    #[test]
    fn where_there_is_little_room_those_in_trouble_are_shown() {
        let fleet: Vec<_> =
            (0..20).map(|port| if port == 15 { silent(port) } else { answering(port, None) }).collect();
        let lines = text(&fleet, 8);
        assert_eq!(lines.len(), 8, "{lines:#?}");
        assert!(lines[0].ends_with("5 are shown") && lines[3].starts_with("a.test:15  –"), "{lines:#?}");
        assert!(text(&fleet, 0).len() <= 4);
    }
}
