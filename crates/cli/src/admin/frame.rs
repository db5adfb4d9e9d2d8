//! What `regent top` shows: figures in, lines out.

use super::table::{Align, Line, Span, Table, Tone};
use super::threads;
use super::units::{duration, rate};
use regent_admin::{
    Address, Engine, Percentiles, PoolStatistics, RouteStatistics, ScaleEvent, Statistics, ThreadCounts,
    ThreadList, Traffic,
};
use std::time::{Duration, SystemTime};

/// Characters of a pool's scoreboard at most; with more threads each is several.
const SCOREBOARD: u32 = 40;
/// Lines of a section that are no rows: title, heading, blank.
const SECTION: usize = 3;

/// What is shown.
pub struct Snapshot {
    pub statistics: Statistics,
    pub threads: ThreadList,
    pub taken_at: SystemTime,
}

/// Lines that there is room for. Pools are always shown; what they leave is shared by the other sections.
#[derive(Debug, Clone, Copy)]
pub enum Room {
    Lines(usize),
    Unlimited,
}

/// The whole picture.
pub fn frame(address: &Address, snapshot: &Snapshot, room: Room) -> Vec<Line> {
    let Snapshot { statistics, threads, taken_at } = snapshot;
    let mut lines = vec![title(address, statistics), Line::new()];
    lines.extend(pools(statistics));
    let rows = match room {
        Room::Unlimited => usize::MAX,
        Room::Lines(room) => (room.saturating_sub(lines.len()) / 3).saturating_sub(SECTION).max(1),
    };
    let seconds = statistics.window.as_secs();
    section(&mut lines, "THREADS", thread_rows(threads, rows), rows);
    section(&mut lines, &format!("ROUTES, last {seconds} s"), routes(statistics, rows), rows);
    section(&mut lines, "SCALING", scaling(&statistics.scale_events, *taken_at, rows), rows);
    lines
}

fn title(address: &Address, statistics: &Statistics) -> Line {
    let mut line = vec![
        Span::new(format!("Regent {}", statistics.version), Tone::Heading),
        Span::plain(format!("  {address}  up {}", duration(statistics.uptime))),
    ];
    for (kind, name) in [(Engine::Php, "engine"), (Engine::Native, "native engine")] {
        if let Some(newest) = statistics.generations.iter().find(|one| one.engine == kind) {
            line.push(Span::new(format!("  {name} {} ({})", newest.number, newest.reason), Tone::Quiet));
        }
    }
    if !statistics.circuits.is_empty() {
        line.push(Span::new(format!("  circuits open: {}", statistics.circuits.len()), Tone::Bad));
    }
    line
}

fn section(lines: &mut Vec<Line>, title: &str, (table, all): (Table, usize), shown: usize) {
    lines.push(Line::new());
    let mut heading = vec![Span::new(title, Tone::Heading)];
    if all > shown {
        heading.push(Span::new(format!("  {shown} of {all}"), Tone::Quiet));
    }
    lines.push(heading);
    if all == 0 {
        lines.push(vec![Span::new("none", Tone::Quiet)]);
    } else {
        lines.extend(table.lines());
    }
}

/// Figures of requests, in the same columns for pools and routes.
const TRAFFIC: [(&str, Align); 8] = [
    ("REQ/S", Align::Right),
    ("P50", Align::Right),
    ("P90", Align::Right),
    ("P99", Align::Right),
    ("MAX", Align::Right),
    ("ERRORS", Align::Right),
    ("REFUSED", Align::Right),
    ("LATE", Align::Right),
];

fn traffic(traffic: &Traffic, window: Duration) -> impl Iterator<Item = Span> {
    let time = |of: fn(&Percentiles) -> Duration| {
        Span::plain(traffic.total.as_ref().map_or_else(|| "–".to_owned(), |times| duration(of(times))))
    };
    let trouble =
        |events: u64| Span::new(events.to_string(), if events > 0 { Tone::Bad } else { Tone::Quiet });
    [
        Span::plain(rate(traffic.requests, window)),
        time(|times| times.p50),
        time(|times| times.p90),
        time(|times| times.p99),
        time(|times| times.max),
        trouble(traffic.errors),
        trouble(traffic.shed.total()),
        trouble(traffic.deadline_misses),
    ]
    .into_iter()
}

fn pools(statistics: &Statistics) -> Vec<Line> {
    let own = [
        ("POOL", Align::Left),
        ("THREADS", Align::Right),
        ("WAITING", Align::Right),
        ("OLDEST", Align::Right),
        ("QUEUE P99", Align::Right),
    ];
    let columns: Vec<_> = own.into_iter().chain(TRAFFIC).collect();
    let mut table = Table::new(&columns);
    for pool in &statistics.pools {
        table.row(pool_row(pool, statistics.window));
    }
    let mut lines = table.lines();
    let names = statistics.pools.iter().map(|pool| pool.pool.name.chars().count()).max().unwrap_or(0);
    lines.push(Line::new());
    lines.extend(statistics.pools.iter().map(|pool| scoreboard(pool, names)));
    lines
}

fn pool_row(statistics: &PoolStatistics, window: Duration) -> Vec<Span> {
    let PoolStatistics { pool, traffic: requests } = statistics;
    let waiting = if pool.queued > 0 { Tone::Warning } else { Tone::Quiet };
    let wait = requests.queue.map_or_else(|| "–".to_owned(), |times| duration(times.p99));
    let mut row = vec![
        Span::plain(&pool.name),
        Span::plain(format!("{} ({}–{})", pool.threads.total(), pool.least, pool.most)),
        Span::new(pool.queued.to_string(), waiting),
        Span::plain(duration(pool.oldest_wait)),
        Span::plain(wait),
    ];
    row.extend(traffic(requests, window));
    row
}

/// A character for each thread, as in Apache's scoreboard, and the counts.
fn scoreboard(statistics: &PoolStatistics, width: usize) -> Line {
    let threads = statistics.pool.threads;
    let each = threads.total().div_ceil(SCOREBOARD).max(1);
    let mut line = vec![Span::plain(format!("{:width$}  ", statistics.pool.name))];
    line.extend(states(threads).into_iter().map(|(count, letter, _, tone)| {
        // One is shown however many threads a character is.
        Span::new(letter.repeat(count.div_ceil(each) as usize), tone)
    }));
    let counts = states(threads).into_iter().filter(|(count, ..)| *count > 0);
    let counts: Vec<String> =
        counts.map(|(count, letter, name, _)| format!("{letter} {count} {name}")).collect();
    line.push(Span::new(format!("  {}", counts.join(", ")), Tone::Quiet));
    line
}

/// How many, and how a state is drawn and called.
fn states(threads: ThreadCounts) -> [(u32, &'static str, &'static str, Tone); 6] {
    [
        (threads.busy, "#", "busy", Tone::Active),
        (threads.stuck, "!", "stuck", Tone::Bad),
        (threads.backoff, "x", "backoff", Tone::Bad),
        (threads.starting, "+", "starting", Tone::Warning),
        (threads.leaving, "-", "leaving", Tone::Warning),
        (threads.idle, ".", "idle", Tone::Quiet),
    ]
}

/// Those that need attention first; idle ones are of no interest here.
fn thread_rows(list: &ThreadList, rows: usize) -> (Table, usize) {
    let order = ["stuck", "backoff", "busy", "leaving", "starting"];
    let rank = |activity: &str| order.iter().position(|known| *known == activity);
    let mut threads: Vec<_> =
        list.thread_debug_states.iter().filter(|thread| rank(&thread.activity).is_some()).collect();
    threads
        .sort_by_key(|thread| (rank(&thread.activity), u64::MAX - thread.running_milliseconds, thread.index));
    let all = threads.len();
    threads.truncate(rows);
    (threads::table(threads), all)
}

fn routes(statistics: &Statistics, rows: usize) -> (Table, usize) {
    let columns: Vec<_> =
        TRAFFIC.into_iter().chain([("DEADLINE", Align::Right), ("ROUTE", Align::Left)]).collect();
    let mut table = Table::new(&columns);
    for route in statistics.routes.iter().take(rows) {
        let RouteStatistics { route, deadline, traffic: requests, .. } = route;
        let mut row: Vec<Span> = traffic(requests, statistics.window).collect();
        row.push(Span::plain(deadline.map_or_else(|| "–".to_owned(), duration)));
        row.push(Span::plain(route));
        table.row(row);
    }
    (table, statistics.routes.len())
}

fn scaling(events: &[ScaleEvent], now: SystemTime, rows: usize) -> (Table, usize) {
    let columns =
        [("AGO", Align::Right), ("POOL", Align::Left), ("THREADS", Align::Right), ("REASON", Align::Left)];
    let mut table = Table::new(&columns);
    for event in events.iter().take(rows) {
        let ago = now.duration_since(event.at).unwrap_or_default();
        table.row(vec![
            Span::new(whole(ago), Tone::Quiet),
            Span::plain(&event.pool),
            Span::plain(format!("{} → {}", event.from, event.to)),
            Span::plain(&event.reason),
        ]);
    }
    (table, events.len())
}

/// Without parts of a second, which would only flicker.
fn whole(time: Duration) -> String {
    if time.as_secs() < 60 { format!("{} s", time.as_secs()) } else { duration(time) }
}

#[cfg(test)]
mod tests {
    use super::super::table::plain_text;
    use super::*;
    use regent_admin::{Activity, Current, Pool, Thread, Threads};

    fn snapshot(threads: u32) -> Snapshot {
        let now = SystemTime::now();
        let busy = |index: u32| {
            let started_at = now - Duration::from_secs(index.into());
            Activity::Busy(Current { method: "GET".into(), uri: format!("/{index}"), started_at })
        };
        let thread = |index| Thread {
            index,
            engine: Engine::Php,
            pool: "classic".into(),
            worker: None,
            activity: if index == 0 { Activity::Idle(Duration::ZERO) } else { busy(index) },
            requests: 0,
            memory: 0,
        };
        let pool = Pool {
            name: "classic".into(),
            engine: Engine::Php,
            worker: None,
            threads: ThreadCounts { busy: threads - 1, idle: 1, ..ThreadCounts::default() },
            least: 1,
            most: 1_000,
            queued: 0,
            oldest_wait: Duration::ZERO,
        };
        let statistics = Statistics {
            version: "1.2.3".into(),
            uptime: Duration::from_secs(1),
            window: Duration::from_secs(10),
            pools: vec![PoolStatistics { pool, traffic: Traffic::default() }],
            routes: Vec::new(),
            circuits: Vec::new(),
            scale_events: Vec::new(),
            generations: Vec::new(),
            php: None,
        };
        let threads = Threads { threads: (0..threads).map(thread).collect(), reserved: 0 };
        Snapshot { statistics, threads: ThreadList::new(threads, now), taken_at: now }
    }

    fn text(threads: u32, room: Room) -> Vec<String> {
        let lines = frame(&Address::default(), &snapshot(threads), room);
        lines.iter().map(plain_text).collect()
    }

    #[test]
    fn the_longest_requests_are_shown_where_there_is_little_room() {
        let lines = text(1_000, Room::Lines(40));
        assert!(lines.len() <= 40, "{lines:#?}");
        let threads = lines.iter().position(|line| line == "THREADS  8 of 999").expect("the threads' title");
        assert!(lines[threads + 2].ends_with("GET /999"), "{lines:#?}");
    }

    #[test]
    fn a_scoreboard_keeps_its_width_and_shows_the_only_idle_one() {
        let lines = text(1_000, Room::Unlimited);
        let board = lines.iter().find(|line| line.starts_with("classic  #")).expect("a scoreboard");
        assert_eq!(*board, format!("classic  {}.  # 999 busy, . 1 idle", "#".repeat(40)));
    }

    #[test]
    fn nothing_is_said_to_be_nothing() {
        let lines = text(1, Room::Unlimited);
        assert_eq!(lines.iter().filter(|line| *line == "none").count(), 3, "{lines:#?}");
    }
}
