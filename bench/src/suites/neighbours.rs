//! Neighbours: what is left of a server beside programs that want all of the CPU?

use std::fs;
use std::time::Duration;

use anyhow::Result;

use super::tables::{
    cell, doubts, introduction, median, number, percentile, points, section, select, servers,
    servers_section, spread, table, text,
};
use super::{Length, Selection, Suite, in_turn};
use crate::bench::{Bench, Case, LoadSpec, Request, Setup};
use crate::endless_loops::EndlessLoops;
use crate::generator::plan::{Connections, Limit};
use crate::peers::{Pool, Script};
use crate::record::Measurement;
use crate::report::format;
use crate::report::page::{Page, Table};

const THREADS: u16 = 8;
const USERS: [u32; 2] = [1, 8];
const CONNECTIONS: Connections = Connections::KeepAlive;
/// About a millisecond of a core of our time.
const REQUEST: &str = "work=250000&output=1&iterations=1";
const LOOPS: usize = 4;
/// Whether the kernel divides the CPU among sessions before it does among their threads.
const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// What else the machine has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbours {
    Nobody,
    Loops,
}

impl Neighbours {
    const ALL: [Self; 2] = [Self::Nobody, Self::Loops];

    fn point(self, users: u32) -> String {
        let connections = if users == 1 { "1 connection".to_owned() } else { format!("{users} connections") };
        match self {
            Self::Nobody => connections,
            Self::Loops => format!("{connections}, beside {LOOPS} loops"),
        }
    }

    fn start(self) -> Result<Option<EndlessLoops>> {
        match self {
            Self::Nobody => Ok(None),
            Self::Loops => EndlessLoops::start(LOOPS).map(Some),
        }
    }
}

pub fn run(bench: &mut Bench, selection: &Selection) -> Result<Page> {
    let cases = cases(selection);
    bench.announce(cases.iter().map(|(_, case)| case));
    let mut measurements = Vec::with_capacity(cases.len());
    for (neighbours, case) in &cases {
        let _loops = neighbours.start()?;
        measurements.push(bench.measure(case)?);
    }
    Ok(page(bench, selection, &measurements))
}

fn cases(selection: &Selection) -> Vec<(Neighbours, Case)> {
    let duration = Duration::from_secs(match selection.length {
        Length::Tour => 2,
        Length::Short => 5,
        Length::Full => 20,
    });
    let mut cases = Vec::new();
    for round in 1..=selection.rounds {
        for neighbours in Neighbours::ALL {
            for users in USERS {
                for contender in in_turn(&selection.contenders, round) {
                    let request =
                        Request { query: REQUEST.to_owned(), ..Request::get("page", Script::Sleep) };
                    let load = LoadSpec::closed(users, CONNECTIONS, Limit::Duration(duration), request);
                    let most_users = USERS[USERS.len() - 1];
                    let setup = Setup::new(contender, Pool::Fixed(THREADS), most_users, CONNECTIONS);
                    cases.push((neighbours, Case::new(setup, neighbours.point(users), round, load)));
                }
            }
        }
    }
    cases
}

fn page(bench: &Bench, selection: &Selection, all: &[Measurement]) -> Page {
    let mut figures = section("Figures");
    figures.tables.push(rows(all));
    figures.notes = vec![autogroups()];
    figures.notes.extend(doubts(all));
    Page {
        name: Suite::Neighbours.name().to_owned(),
        title: Suite::Neighbours.title().to_owned(),
        introduction: introduction(
            bench,
            selection.rounds,
            &format!(
                "What is left of a server on a machine that has other things to do? A page that computes for about a \
                 millisecond, by {THREADS} PHP threads or children, over keep-alive connections in a closed loop: alone, \
                 and beside {LOOPS} endless loops, each in a session of its own."
            ),
        ),
        sections: vec![figures, servers_section(bench)],
    }
}

fn rows(all: &[Measurement]) -> Table {
    let mut rows = Vec::new();
    for point in points(all) {
        for (identity, label) in servers(all) {
            let own = select(all, &point, &identity);
            if !own.is_empty() {
                rows.push(row(&point, &label, &own));
            }
        }
    }
    let columns = vec![
        text("point"),
        text("server"),
        number("req/s"),
        number("p50 ms"),
        number("p90 ms"),
        number("p99 ms"),
        number("max ms"),
        number("CPU µs/req"),
        number("switches/req"),
        number("failed"),
    ];
    table("Medians over the rounds, in parentheses the smallest and the largest", columns, rows)
}

fn row(point: &str, label: &str, own: &[&Measurement]) -> Vec<String> {
    let quantile = |q| spread(own, |m| percentile(m, q));
    vec![
        point.to_owned(),
        label.to_owned(),
        cell(spread(own, |m| Some(m.outcome.throughput())), format::count),
        cell(quantile(0.5), format::significant),
        median(quantile(0.9), format::significant),
        cell(quantile(0.99), format::significant),
        median(quantile(1.0), format::significant),
        median(spread(own, |m| m.usage.cpu_us_per_request), format::significant),
        median(spread(own, |m| m.usage.context_switches_per_request), format::significant),
        own.iter().map(|m| m.outcome.failed()).sum::<u64>().to_string(),
    ]
}

fn autogroups() -> String {
    let is_on = fs::read_to_string(AUTOGROUP).is_ok_and(|text| text.trim() == "1");
    let what = if is_on {
        "on: each loop has as much of the CPU as a server and its load together, which are in one session"
    } else {
        "off: each loop has as much of the CPU as a thread"
    };
    format!("The kernel's autogroups are {what}.")
}
