//! A. The concurrency sweep: a connection for each request, from 1 to 10,000 at once, and on until the machine or the
//! limit of 3 s ends it.

use std::time::Duration;

use anyhow::Result;

use super::tables::{
    axis, cell, doubts, figure, introduction, median, number, over_points, percentile, points, ratio,
    section, select, servers, servers_section, spread, table, text,
};
use super::{Length, Selection, Suite, in_turn};
use crate::bench::{Bench, Case, LoadSpec, Request, SOFT_REAL_TIME, Setup};
use crate::generator::plan::{Connections, Limit};
use crate::peers::{Contender, Pool};
use crate::record::Measurement;
use crate::report::format;
use crate::report::page::{Figure, Page, Scale, Section, Style, Table};

/// A stricter limit beside that of 3 s.
const STRICT_LIMIT: Duration = Duration::from_millis(100);
/// Threads, children or processes of every server that has a fixed number.
const THREADS: u16 = 8;
/// Users of one generator process; descriptors and a core bound it.
const USERS_OF_A_PROCESS: u32 = 10_000;

/// Numbers of users at once, and requests at each point.
fn sizes(length: Length) -> (Vec<u32>, u64) {
    match length {
        Length::Tour => (vec![1, 100, 1_000, 4_000, 10_000], 20_000),
        Length::Short => (vec![1, 50, 100, 200, 500, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000], 50_000),
        Length::Full => (std::iter::once(1).chain((100..=10_000).step_by(100)).collect(), 100_000),
    }
}

/// Requests of a user, on the average, at the least. At the start and at the end of a closed loop not all of its users wait:
/// with few requests of each, that is much of the time. (The original has 100,000 requests of 10,000 users.)
fn least_requests(length: Length) -> u64 {
    if length == Length::Tour { 5 } else { 10 }
}

/// Beyond the sweep, for Regent alone: where does it end, and why there?
const BEYOND: [u32; 5] = [12_000, 14_000, 16_000, 18_000, 20_000];

pub fn run(bench: &mut Bench, selection: &Selection) -> Result<Page> {
    let cases = cases(selection);
    bench.announce(&cases);
    let measurements = cases.iter().map(|case| bench.measure(case)).collect::<Result<Vec<_>>>()?;
    Ok(page(bench, selection, &measurements))
}

fn cases(selection: &Selection) -> Vec<Case> {
    let (users, requests) = sizes(selection.length);
    let mut cases = Vec::new();
    for round in 1..=selection.rounds {
        for &users in &users {
            for contender in in_turn(&selection.contenders, round) {
                cases.push(case(selection, contender, users, requests, round));
            }
        }
        if selection.length != Length::Tour {
            for users in BEYOND {
                for contender in selection.contenders.iter().filter(|c| c.kind.is_regent()) {
                    cases.push(case(selection, contender, users, requests, round));
                }
            }
        }
    }
    cases
}

fn setup(contender: &Contender, length: Length) -> Setup {
    let most_connections = match length {
        Length::Tour => 10_000,
        _ => BEYOND[BEYOND.len() - 1],
    };
    Setup::new(contender, Pool::Fixed(THREADS), most_connections, Connections::PerRequest)
}

fn case(selection: &Selection, contender: &Contender, users: u32, requests: u64, round: u32) -> Case {
    let limit = Limit::Requests(requests.max(least_requests(selection.length) * u64::from(users)));
    let load = LoadSpec {
        processes: users.div_ceil(USERS_OF_A_PROCESS).max(selection.generators.unwrap_or(1)).min(users),
        // Later answers are counted as misses, but seen: where the tail is matters too.
        timeout: 3 * SOFT_REAL_TIME,
        ..LoadSpec::closed(users, Connections::PerRequest, limit, Request::hello())
    };
    Case::new(setup(contender, selection.length), users.to_string(), round, load)
}

fn page(bench: &Bench, selection: &Selection, all: &[Measurement]) -> Page {
    let mut curves = section("All servers");
    curves.figures = vec![throughput(all), latency(all, 0.5), latency(all, 0.99), latency(all, 0.999)];
    curves.figures.push(misses(all, SOFT_REAL_TIME, "misses-3s"));
    curves.figures.push(misses(all, STRICT_LIMIT, "misses-100ms"));
    let mut figures = section("Figures");
    figures.tables.push(rows(all));
    figures.notes = notes(selection, all);
    let mut sections = vec![curves];
    sections.extend(at_the_end(all));
    sections.extend(compiled_against_php(all));
    sections.extend(servers(all).iter().map(|(identity, label)| as_in_the_original(all, identity, label)));
    sections.extend([figures, servers_section(bench)]);
    Page {
        name: Suite::Sweep.name().to_owned(),
        title: Suite::Sweep.title().to_owned(),
        introduction: introduction(
            bench,
            selection.rounds,
            "How many users at once can a server answer within 3 s? A closed loop of users, each request over a \
             connection of its own (no keep-alive), for 128 bytes: made by PHP, by compiled code (Regent native), or \
             by the server itself (Regent without PHP).",
        ),
        sections,
    }
}

fn users_axis() -> crate::report::page::Axis {
    axis("concurrency", "", Scale::Linear)
}

fn throughput(all: &[Measurement]) -> Figure {
    let y = axis("throughput", "requests/s", Scale::Linear);
    let empty = figure("sweep-throughput", "Throughput over concurrency", users_axis(), y);
    over_points(all, empty, Style::Trend, |m| Some(m.outcome.throughput()))
}

fn latency(all: &[Measurement], quantile: f64) -> Figure {
    let name = format!("p{}", format!("{:.1}", quantile * 100.0).trim_end_matches(".0"));
    let y = axis(&format!("{name} latency"), "ms", Scale::Logarithmic);
    let file = format!("sweep-{}", name.replace('.', "-"));
    let mut empty = figure(&file, &format!("{name} of the latency over concurrency"), users_axis(), y);
    empty.limits.push((SOFT_REAL_TIME.as_secs_f64() * 1000.0, "3 s".to_owned()));
    over_points(all, empty, Style::Trend, |m| percentile(m, quantile))
}

fn misses(all: &[Measurement], limit: Duration, name: &str) -> Figure {
    let title = format!("Requests without a right answer within {}", in_words(limit));
    let y = axis("misses", "%", Scale::Linear);
    let empty = figure(&format!("sweep-{name}"), &title, users_axis(), y);
    over_points(all, empty, Style::Line, move |m| Some(miss_rate(m, limit) * 100.0))
}

fn in_words(limit: Duration) -> String {
    if limit.as_millis() < 1000 {
        format!("{} ms", limit.as_millis())
    } else {
        format!("{} s", limit.as_secs())
    }
}

fn miss_rate(measurement: &Measurement, limit: Duration) -> f64 {
    let requests = measurement.outcome.requests().max(1);
    measurement.outcome.misses(limit) as f64 / requests as f64
}

/// The comparison that the original benchmark draws, by one server: its handlers are compiled, and what they are
/// measured against is PHP. `None` unless there are both.
fn compiled_against_php(all: &[Measurement]) -> Option<Section> {
    let measured = |names: &[&str]| -> Vec<(String, String)> {
        servers(all).into_iter().filter(|(identity, _)| names.contains(&identity.as_str())).collect()
    };
    let (compiled, php) = (measured(&COMPILED), measured(&PHP));
    if compiled.is_empty() || php.is_empty() {
        return None;
    }
    let of_both = |figure: Figure| {
        let is_shown = |identity: &str| COMPILED.contains(&identity) || PHP.contains(&identity);
        only(figure, "compiled-against-php", "Compiled code against PHP", is_shown)
    };
    let mut section = section("Compiled code against PHP, on one server");
    section.figures = vec![of_both(throughput(all)), of_both(mean(all)), of_both(latency(all, 0.99))];
    section.tables.push(advantage(all, &compiled, &php));
    Some(section)
}

const COMPILED: [&str; 2] = ["native", "native-inline"];
const PHP: [&str; 2] = ["classic", "worker"];

/// How many times the throughput of PHP compiled code has, at each point.
fn advantage(all: &[Measurement], compiled: &[(String, String)], php: &[(String, String)]) -> Table {
    let versus = php.iter().map(|(_, label)| number(&format!("× {label}")));
    let columns = [number("users"), text("server"), number("req/s")].into_iter().chain(versus).collect();
    let mut rows = Vec::new();
    for point in points(all) {
        for (identity, label) in compiled {
            let own = select(all, &point, identity);
            let throughput = cell(spread(&own, |m| Some(m.outcome.throughput())), format::count);
            let mut row = vec![point.clone(), label.clone(), throughput];
            row.extend(
                php.iter().map(|(php, _)| ratio(&own, &select(all, &point, php), |m| m.outcome.throughput())),
            );
            rows.push(row);
        }
    }
    table("Throughput, and its ratio to that of PHP in the same rounds", columns, rows)
}

/// The two plots of the original benchmark, for one server: red crosses and a Bézier trend.
fn as_in_the_original(all: &[Measurement], identity: &str, label: &str) -> Section {
    let own = |figure| only(figure, &identity.replace(':', "-"), label, |server| server == identity);
    let mut section = section(label);
    section.figures = vec![own(throughput(all)), own(mean(all))];
    section
}

fn mean(all: &[Measurement]) -> Figure {
    let y = axis("mean latency", "ms", Scale::Linear);
    let empty = figure("sweep-mean", "Mean latency over concurrency", users_axis(), y);
    over_points(all, empty, Style::Trend, |m| m.outcome.latencies().mean_ms())
}

/// The largest number of users that every server is measured with.
const END: u32 = 10_000;

/// What is left of the peak with the most users, and who uses the cores that server and generator share.
fn at_the_end(all: &[Measurement]) -> Option<Section> {
    let columns = ["at the peak", "at the end"].iter().flat_map(|place| {
        ["users", "req/s", "server µs/req", "generator µs/req", "generator cores"]
            .map(|figure| number(&format!("{figure} {place}")))
    });
    let columns = std::iter::once(text("server")).chain(columns).chain([number("end ÷ peak")]).collect();
    let rows: Vec<Vec<String>> =
        servers(all).iter().filter_map(|(identity, label)| end_row(all, identity, label)).collect();
    let mut section = section("From the peak to the end");
    section.tables.push(table("Medians over the rounds", columns, rows));
    section.notes.push(format!(
        "The end is {END} users. Server and generator share the cores, and a generator process has one at most: where \
         it takes about 1.0, it is the limit and not the server. Its time is that of connecting and closing: on the \
         loopback the kernel's part of a handshake is done by whom it is sent by. Regent without PHP has what the machine \
         and the generator leave of a peak."
    ));
    (!section.tables[0].rows.is_empty()).then_some(section)
}

/// `None` if the server was not measured at the end.
fn end_row(all: &[Measurement], identity: &str, label: &str) -> Option<Vec<String>> {
    let throughput = |rounds: &[&Measurement]| spread(rounds, |m| Some(m.outcome.throughput()));
    let end = select(all, &END.to_string(), identity);
    let at_end = throughput(&end)?.median;
    let within = |point: &String| point.parse::<u32>().is_ok_and(|users| users <= END);
    let (at_peak, users, peak) = points(all)
        .into_iter()
        .filter(within)
        .filter_map(|point| {
            let rounds = select(all, &point, identity);
            Some((throughput(&rounds)?.median, point, rounds))
        })
        .max_by(|(one, ..), (other, ..)| one.total_cmp(other))?;
    let figures = |users: String, throughput: f64, rounds: &[&Measurement]| {
        [
            users,
            format::count(throughput),
            median(spread(rounds, |m| m.usage.cpu_us_per_request), format::significant),
            median(spread(rounds, |m| m.outcome.generator_us_per_request()), format::significant),
            median(spread(rounds, |m| m.outcome.generator_cores()), |cores| format!("{cores:.2}")),
        ]
    };
    let mut row = vec![label.to_owned()];
    row.extend(figures(users, at_peak, &peak));
    row.extend(figures(END.to_string(), at_end, &end));
    row.push(percent(100.0 * at_end / at_peak));
    Some(row)
}

/// A figure with only some of its servers.
fn only(figure: Figure, name: &str, label: &str, is_shown: impl Fn(&str) -> bool) -> Figure {
    Figure {
        name: format!("{}-{name}", figure.name),
        title: format!("{label}: {}", figure.title),
        series: figure.series.into_iter().filter(|series| is_shown(&series.identity)).collect(),
        ..figure
    }
}

fn rows(all: &[Measurement]) -> Table {
    let columns = vec![
        number("users"),
        text("server"),
        number("req/s"),
        number("× fpm"),
        number("p50 ms"),
        number("p99 ms"),
        number("p99.9 ms"),
        number("max ms"),
        number("> 100 ms"),
        number("misses at 3 s"),
        number("CPU µs/req"),
        number("memory"),
        number("threads"),
    ];
    let mut rows = Vec::new();
    for point in points(all) {
        for (identity, label) in servers(all) {
            let own = select(all, &point, &identity);
            if own.is_empty() {
                continue;
            }
            let reference = if identity == "fpm" { Vec::new() } else { select(all, &point, "fpm") };
            let percent = |limit| median(spread(&own, |m| Some(100.0 * miss_rate(m, limit))), percent);
            rows.push(vec![
                point.clone(),
                label.clone(),
                cell(spread(&own, |m| Some(m.outcome.throughput())), format::count),
                ratio(&own, &reference, |m| m.outcome.throughput()),
                cell(spread(&own, |m| percentile(m, 0.5)), format::significant),
                cell(spread(&own, |m| percentile(m, 0.99)), format::significant),
                median(spread(&own, |m| percentile(m, 0.999)), format::significant),
                median(spread(&own, |m| percentile(m, 1.0)), format::significant),
                percent(STRICT_LIMIT),
                own.iter().map(|m| m.outcome.misses(SOFT_REAL_TIME)).sum::<u64>().to_string(),
                median(spread(&own, |m| m.usage.cpu_us_per_request), format::significant),
                format::bytes(own.iter().map(|m| m.usage.memory_bytes).max().unwrap_or(0)),
                own.iter().map(|m| m.usage.threads).max().unwrap_or(0).to_string(),
            ]);
        }
    }
    table("Medians over the rounds, in parentheses the smallest and the largest", columns, rows)
}

fn percent(value: f64) -> String {
    format!("{} %", format::significant(value))
}

fn notes(selection: &Selection, all: &[Measurement]) -> Vec<String> {
    let generators = selection.generators.unwrap_or(1);
    let mut notes = vec![
        format!("Load generator processes: {generators}, and more where each had over {USERS_OF_A_PROCESS} users."),
        format!(
            "Regent with {THREADS} threads of PHP or of the native module, php-fpm with as many children. Latency is from the call of connect to the \
             end of the answer; a request without a right answer within 3 s is a miss (given up after 9 s)."
        ),
        format!(
            "Apache has {THREADS} processes, the best for a connection for each request. Servers with default settings \
             have those of their distribution: listen backlogs of 511, and of Apache 5 to 150 processes."
        ),
        "A socket of the load generator whose connection both sides have ended serves the next connection: the packets \
         are the same, and more of the cores is left to the servers."
            .to_owned(),
        "The loop is closed: the mean latency is concurrency ÷ throughput, whatever the server; the tail is what \
         tells servers apart."
            .to_owned(),
    ];
    notes.extend(doubts(all));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_form_is_the_original() {
        let (users, requests) = sizes(Length::Full);
        assert_eq!((users.len(), requests), (101, 100_000));
        assert_eq!((users[0], users[1], users[100]), (1, 100, 10_000));
    }

    #[test]
    fn many_users_have_several_processes() {
        let contender: Contender = "classic".parse().expect("a contender");
        let mut selection = Selection {
            contenders: vec![contender.clone()],
            length: Length::Full,
            rounds: 1,
            generators: None,
            scenarios: Vec::new(),
        };
        let whole = case(&selection, &contender, 20_000, 50_000, 1);
        assert!(matches!(whole.load.limit, Limit::Requests(200_000)));
        let mut processes = |generators, users| {
            selection.generators = generators;
            case(&selection, &contender, users, 50_000, 1).load.processes
        };
        assert_eq!([processes(None, 100), processes(None, 20_000)], [1, 2]);
        assert_eq!([processes(Some(3), 1), processes(Some(3), 100), processes(Some(1), 20_000)], [1, 3, 2]);
    }
}
