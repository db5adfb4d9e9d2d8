//! E. Isolation: does a fast route notice a slow one beside it?

use std::time::Duration;

use anyhow::Result;

use super::tables::{
    axis, cell, doubts, figure, introduction, median, number, section, select, servers, servers_section,
    spread, table, text,
};
use super::{Length, Selection, Suite, in_turn};
use crate::bench::{Bench, Case, Lifetime, LoadSpec, Request, SOFT_REAL_TIME, Setup};
use crate::generator::plan::{Connections, Limit, Pace};
use crate::peers::{Pool, Script};
use crate::record::Measurement;
use crate::report::format;
use crate::report::page::{Figure, Page, Point, Scale, Series, Style};
use crate::statistics::Spread;

const THREADS: u16 = 8;
const MOST_CONNECTIONS: u32 = 4_000;
/// Fast requests a second: an eighth of what the threads could do.
const RATE: f64 = 200.0;
const FAST: &str = "sleep=5&work=1000&output=1&iterations=1";

/// What runs beside the fast route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbour {
    Nobody,
    /// 2 % of all requests hang for 15 s (scaled with the length of the run).
    Hanging,
    /// 1 % of all requests take 300 ms.
    Long,
}

impl Neighbour {
    const ALL: [Self; 3] = [Self::Nobody, Self::Hanging, Self::Long];

    fn point(self) -> &'static str {
        match self {
            Self::Nobody => "alone",
            Self::Hanging => "beside 2 % that hang",
            Self::Long => "beside 1 % of 300 ms",
        }
    }

    /// The slow requests, which are of a route of their own, with their share in percent.
    fn request(self, hang: Duration) -> Option<(u32, Request)> {
        let slow = |sleep: u128| Request {
            query: format!("sleep={sleep}&work=1000&output=1&iterations=1"),
            ..Request::get("slow", Script::Slow)
        };
        match self {
            Self::Nobody => None,
            Self::Hanging => Some((2, slow(hang.as_millis()))),
            Self::Long => Some((1, slow(300))),
        }
    }
}

pub fn run(bench: &mut Bench, selection: &Selection) -> Result<Page> {
    let cases = cases(selection);
    bench.announce(&cases);
    let measurements = cases.iter().map(|case| bench.measure(case)).collect::<Result<Vec<_>>>()?;
    Ok(page(bench, selection, &measurements))
}

/// Length of a load, and of a hanging request.
fn times(length: Length) -> (Duration, Duration) {
    let seconds = |load, hang| (Duration::from_secs(load), Duration::from_secs(hang));
    match length {
        Length::Tour => seconds(3, 2),
        Length::Short => seconds(10, 5),
        Length::Full => seconds(30, 15),
    }
}

fn cases(selection: &Selection) -> Vec<Case> {
    let (duration, hang) = times(selection.length);
    let mut cases = Vec::new();
    for round in 1..=selection.rounds {
        for neighbour in Neighbour::ALL {
            for contender in in_turn(&selection.contenders, round) {
                let pool = Pool::Fixed(THREADS);
                let setup = Setup::new(contender, pool, MOST_CONNECTIONS, Connections::KeepAlive);
                cases.push(Case {
                    // What hangs on at the end must not be there for the next load.
                    lifetime: Lifetime::Fresh,
                    ..Case::new(setup, neighbour.point(), round, load(neighbour, duration, hang))
                });
            }
        }
    }
    cases
}

fn load(neighbour: Neighbour, duration: Duration, hang: Duration) -> LoadSpec {
    let mut fast = Request { query: FAST.to_owned(), ..Request::get("fast", Script::Sleep) };
    let mut mix = Vec::new();
    if let Some((percent, slow)) = neighbour.request(hang) {
        fast.weight = 100 - percent;
        mix.push(Request { weight: percent, ..slow });
    }
    mix.push(fast);
    LoadSpec {
        pace: Pace::Open { rate: RATE, most_connections: MOST_CONNECTIONS },
        connections: Connections::KeepAlive,
        limit: Limit::Duration(duration),
        timeout: hang + 2 * SOFT_REAL_TIME,
        mix,
        addresses: 1,
        processes: 1,
    }
}

fn fast(measurement: &Measurement, quantile: f64) -> Option<f64> {
    measurement.outcome.kinds.get("fast")?.right.quantile_ms(quantile)
}

fn page(bench: &Bench, selection: &Selection, all: &[Measurement]) -> Page {
    let mut figures = section("The fast route");
    figures.tables.push(rows(all));
    figures.figures = Neighbour::ALL.iter().skip(1).map(|neighbour| over_time(all, *neighbour)).collect();
    let (duration, hang) = times(selection.length);
    figures.notes = vec![format!(
        "An open loop of {RATE} requests a second for {} s on {THREADS} PHP threads or children; fast requests take 5 \
         ms, hanging ones {} s; fast and slow ones have a path each, at which the same script runs. Latency is from the scheduled moment, so that waiting counts.",
        duration.as_secs(),
        hang.as_secs()
    )];
    figures.notes.extend(doubts(all));
    Page {
        name: Suite::Isolation.name().to_owned(),
        title: Suite::Isolation.title().to_owned(),
        introduction: introduction(
            bench,
            selection.rounds,
            "Does a fast route notice a slow one on the same pool? Its 99th percentile alone, beside requests that \
             hang, and beside long ones.",
        ),
        sections: vec![figures, servers_section(bench)],
    }
}

fn rows(all: &[Measurement]) -> crate::report::page::Table {
    let columns = vec![
        text("server"),
        text("fast route"),
        number("p50 ms"),
        number("p99 ms"),
        number("p99 ÷ alone"),
        number("max ms"),
        number("in 3 s"),
    ];
    let mut rows = Vec::new();
    for (identity, label) in servers(all) {
        let alone = select(all, Neighbour::Nobody.point(), &identity);
        let alone_p99 = spread(&alone, |m| fast(m, 0.99));
        for neighbour in Neighbour::ALL {
            let own = select(all, neighbour.point(), &identity);
            let p99 = spread(&own, |m| fast(m, 0.99));
            let times = alone_p99.zip(p99).map(|(alone, own)| own.median / alone.median);
            rows.push(vec![
                label.clone(),
                neighbour.point().to_owned(),
                cell(spread(&own, |m| fast(m, 0.5)), format::significant),
                cell(p99, format::significant),
                times.map_or_else(|| "–".to_owned(), |times| format!("{times:.1}")),
                median(spread(&own, |m| fast(m, 1.0)), format::significant),
                median(spread(&own, in_time), |part| format!("{:.2} %", part * 100.0)),
            ]);
        }
    }
    table("Medians over the rounds, in parentheses the smallest and the largest", columns, rows)
}

/// The part of the fast requests that was answered within 3 s.
fn in_time(measurement: &Measurement) -> Option<f64> {
    let kind = measurement.outcome.kinds.get("fast")?;
    let in_time = kind.right.count() - kind.right.count_above(SOFT_REAL_TIME);
    Some(in_time as f64 / (kind.right.count() + kind.failed()).max(1) as f64)
}

/// The median of each tenth of a second, of all requests, in the first round.
fn over_time(all: &[Measurement], neighbour: Neighbour) -> Figure {
    let mut figure = figure(
        &format!("isolation-{}", if neighbour == Neighbour::Hanging { "hanging" } else { "long" }),
        &format!("Median of each tenth of a second, {}", neighbour.point()),
        axis("time", "s", Scale::Linear),
        axis("p50 latency", "ms", Scale::Logarithmic),
    );
    figure.series = all
        .iter()
        .filter(|m| m.round == 1 && m.point == neighbour.point())
        .map(|m| Series {
            label: m.label.clone(),
            identity: m.server.clone(),
            style: Style::Thin,
            points: m
                .outcome
                .series
                .iter()
                .enumerate()
                .map(|(i, tick)| median_point(i, tick.p50_ms))
                .collect(),
        })
        .collect();
    figure
}

fn median_point(index: usize, value: f32) -> Point {
    let value = f64::from(value);
    Point { x: index as f64 / 10.0, y: Spread { median: value, min: value, max: value } }
}
