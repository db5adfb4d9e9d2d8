//! Made-up pages for the tests of the renderers.

use super::page::{Alignment, Axis, Column, Figure, Page, Point, Scale, Section, Series, Style, Table};
use crate::statistics::Spread;

pub fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), unit: unit.to_owned(), scale }
}

pub fn points(values: &[(f64, f64)]) -> Vec<Point> {
    let exact = |y| Spread { median: y, min: y, max: y };
    values.iter().map(|(x, y)| Point { x: *x, y: exact(*y) }).collect()
}

pub fn series(label: &str, identity: &str, style: Style, points: Vec<Point>) -> Series {
    Series { label: label.to_owned(), identity: identity.to_owned(), style, points }
}

/// Requests per second over connections, both from zero.
pub fn figure(name: &str, series: Vec<Series>) -> Figure {
    Figure {
        name: name.to_owned(),
        title: format!("Title of {name}"),
        x: axis("connections", "", Scale::Linear),
        y: axis("throughput", "requests/s", Scale::Linear),
        series,
        limits: Vec::new(),
    }
}

/// Those whose heading begins with `>` are aligned to the right.
pub fn columns(headings: &[&str]) -> Vec<Column> {
    let column = |heading: &&str| match heading.strip_prefix('>') {
        Some(heading) => Column { heading: heading.to_owned(), alignment: Alignment::Right },
        None => Column { heading: (*heading).to_owned(), alignment: Alignment::Left },
    };
    headings.iter().map(column).collect()
}

pub fn table(columns: Vec<Column>, rows: &[Vec<&str>]) -> Table {
    let rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
    Table { caption: String::new(), columns, rows }
}

/// A page with a little of everything.
pub fn small_page() -> Page {
    let data = points(&[(1.0, 1.0), (2.0, 4.0)]);
    let mut captioned =
        table(columns(&["server", ">requests/s"]), &[vec!["Regent worker", "1,234"], vec!["php-fpm"]]);
    captioned.caption = "Requests per second".to_owned();
    Page {
        name: "small".to_owned(),
        title: "A small page".to_owned(),
        introduction: vec!["Measured on a machine.".to_owned()],
        sections: vec![Section {
            heading: "Throughput".to_owned(),
            paragraphs: vec!["More is better.".to_owned()],
            tables: vec![captioned],
            figures: vec![figure("tiny", vec![series("Worker", "worker", Style::Line, data)])],
            notes: vec!["Closed loop, max_threads = 8.".to_owned()],
            attachments: vec![("secret.conf".to_owned(), "a < b && c".to_owned())],
        }],
    }
}

/// The small page with texts that want to be markup.
pub fn hostile_page() -> Page {
    let evil = || {
        "</style></svg><script>alert(`1`)</script> | a\n| [x](javascript:y) 'q' \" onload=\"x\0&lt;"
            .to_owned()
    };
    let mut page = small_page();
    (page.title, page.introduction) = (evil(), vec![evil()]);
    let section = &mut page.sections[0];
    (section.heading, section.paragraphs, section.notes) = (evil(), vec![evil()], vec![evil()]);
    section.attachments = vec![(evil(), evil())];
    let table = &mut section.tables[0];
    (table.caption, table.columns[0].heading, table.rows[0][0]) = (evil(), evil(), evil());
    let figure = &mut section.figures[0];
    (figure.title, figure.limits) = (evil(), vec![(3.0, evil())]);
    (figure.x.label, figure.y.unit) = (evil(), evil());
    (figure.series[0].label, figure.series[0].identity) = (evil(), evil());
    page
}

/// A page as a sweep and an autoscaling scenario make it, with invented values.
pub fn sample_page() -> Page {
    Page {
        name: "sample".to_owned(),
        title: "Made up: a sweep over 1 to 10,000 connections".to_owned(),
        introduction: vec![
            "None of these values was measured: they show what the renderers do with a sweep of five servers.".to_owned(),
            "One connection per request, 100,000 requests a point, on a machine with 2 cores that others share.".to_owned(),
        ],
        sections: vec![sweep(), scaling()],
    }
}

const SERVERS: [(&str, &str, f64); 5] = [
    ("Regent classic", "classic", 21_000.0),
    ("Regent worker", "worker", 24_500.0),
    ("nginx + php-fpm, defaults", "fpm:default", 9_500.0),
    ("Apache + mod_php", "apache", 15_500.0),
    ("FrankenPHP", "frankenphp", 11_500.0),
];

/// Between −1 and 1, the same in each run.
fn noise(seed: u32) -> f64 {
    f64::from(seed.wrapping_mul(2_654_435_761) >> 16) / 32_768.0 - 1.0
}

/// 1, 100, 200 … 10,000.
fn concurrencies() -> impl Iterator<Item = (u32, f64)> {
    (0..=100_u32).map(|index| (index, f64::from(index.max(1) * if index == 0 { 1 } else { 100 })))
}

fn throughput(best: f64, index: u32, connections: f64) -> f64 {
    best * (1.0 - 0.7 / connections.sqrt())
        * (1.0 - connections / 40_000.0)
        * (1.0 + 0.05 * noise(index + best as u32))
}

fn over_connections(value: impl Fn(u32, f64) -> f64) -> Vec<Point> {
    points(
        &concurrencies()
            .map(|(index, connections)| (connections, value(index, connections)))
            .collect::<Vec<_>>(),
    )
}

fn sweep() -> Section {
    let trends = SERVERS.map(|(label, identity, best)| {
        series(label, identity, Style::Trend, over_connections(|index, x| throughput(best, index, x)))
    });
    let alone = over_connections(|index, x| throughput(24_500.0, index, x));
    let tails = [("p50", 1.0), ("p99", 2.1), ("p99.9", 9.0)].map(|(percentile, factor)| {
        let latency = move |index, x| factor * 1000.0 * x / throughput(24_500.0, index + factor as u32, x);
        series(&format!("Regent worker, {percentile}"), "worker", Style::Trend, over_connections(latency))
    });
    let misses = SERVERS.map(|(label, identity, best)| {
        let values = [1.0, 10.0, 100.0, 1_000.0, 10_000.0].map(|x: f64| {
            let miss = 100.0 * (x / 10_000.0).powi(2) * 12_000.0 / best;
            Point { x, y: Spread { median: miss, min: miss * 0.6, max: miss * 1.5 } }
        });
        series(label, identity, Style::Line, values.to_vec())
    });
    Section {
        heading: "Concurrency sweep".to_owned(),
        paragraphs: vec!["Each cross is one point of the sweep; the curve is the Bézier curve of all of them.".to_owned()],
        tables: vec![sweep_table()],
        figures: vec![
            figure("throughput", trends.to_vec()),
            figure("throughput-worker", vec![series("Regent worker", "worker", Style::Trend, alone)]),
            Figure {
                y: axis("latency", "ms", Scale::Logarithmic),
                limits: vec![(3_000.0, "limit: 3 s".to_owned()), (100.0, "100 ms".to_owned())],
                ..figure("latency", tails.to_vec())
            },
            Figure {
                x: axis("connections", "", Scale::Logarithmic),
                y: axis("requests that missed 3 s", "%", Scale::Linear),
                ..figure("misses", misses.to_vec())
            },
        ],
        notes: vec!["A request that is refused, fails or never completes is a miss; it is never left out of the count.".to_owned()],
        attachments: vec![("nginx.conf".to_owned(), "daemon off;\nworker_processes 2;\n".to_owned())],
    }
}

fn sweep_table() -> Table {
    let headings = [
        ">connections",
        "server",
        ">requests/s",
        ">× php-fpm",
        ">p50 ms",
        ">p99 ms",
        ">p99.9 ms",
        ">max ms",
        ">CPU µs per request",
        ">context switches per request",
        ">memory",
        ">missed 3 s",
        ">missed 100 ms",
    ];
    let row = |connections: f64, (label, _, best): (&str, &str, f64)| -> Vec<String> {
        let rate = throughput(best, 7, connections);
        let mean = 1000.0 * connections / rate;
        let show = super::format::significant;
        let spread = Spread { median: rate, min: rate * 0.97, max: rate * 1.02 };
        vec![
            show(connections),
            label.to_owned(),
            super::format::spread(&spread, show),
            format!("{:.2}×", best / 9_500.0),
            show(mean),
            show(mean * 2.1),
            show(mean * 9.0),
            show(mean * 14.0),
            show(1.9e6 / rate),
            show(1.31),
            "214 MiB".to_owned(),
            "0".to_owned(),
            show(connections / 10.0),
        ]
    };
    let rows = [1.0, 100.0, 1_000.0, 10_000.0].iter().flat_map(|x| SERVERS.map(|server| row(*x, server)));
    Table {
        caption: "The sweep's corner points".to_owned(),
        columns: columns(&headings),
        rows: rows.collect(),
    }
}

fn scaling() -> Section {
    let threads = [("Regent worker", "worker", 90.0), ("FrankenPHP", "frankenphp-worker", 60.0)].map(
        |(label, identity, most)| {
            let grow = |second: u32| (2.0 + f64::from(second).powi(2) / 3.0).min(most).round();
            series(
                label,
                identity,
                Style::Steps,
                points(&(0..60).map(|s| (f64::from(s), grow(s))).collect::<Vec<_>>()),
            )
        },
    );
    let latency = [("Regent worker", "worker", 12.0), ("FrankenPHP", "frankenphp-worker", 30.0)].map(
        |(label, identity, base)| {
            let value =
                |i: u32| base * (1.0 + noise(i)).exp() * if i.is_multiple_of(977) { 40.0 } else { 1.0 };
            let data: Vec<_> = (0..6_000).map(|i| (f64::from(i) / 100.0, value(i))).collect();
            series(label, identity, Style::Thin, points(&data))
        },
    );
    let rows = [vec!["hello world", "97 %", "4.1", "0.4 s"], vec!["database", "91 %", "38.0", "1.2 s"]];
    Section {
        heading: "Autoscaling: external API".to_owned(),
        paragraphs: Vec::new(),
        tables: vec![table(
            columns(&["scenario", ">scaling ÷ ideal", ">p99 ms", ">final size after"]),
            &rows,
        )],
        figures: vec![
            Figure {
                x: axis("time", "s", Scale::Linear),
                y: axis("threads", "", Scale::Linear),
                limits: vec![(100.0, "max_threads".to_owned())],
                ..figure("threads", threads.to_vec())
            },
            Figure {
                x: axis("time", "s", Scale::Linear),
                y: axis("latency", "ms", Scale::Logarithmic),
                ..figure("latency-over-time", latency.to_vec())
            },
        ],
        notes: vec!["Users ramp linearly between the stages.".to_owned()],
        attachments: Vec::new(),
    }
}
