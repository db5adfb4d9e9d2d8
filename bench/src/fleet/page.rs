//! The page of the results.

use super::limits::{self, Limit};
use super::measured::Balancing;
use super::model::Policy;
use super::scenarios::{Choice, Growth, Happening, POLICIES, Scenarios};
use super::simulation::Outcome;
use super::{Measured, Options};
use crate::generator::histogram::Latencies;
use crate::machine::Machine;
use crate::report::format;
use crate::report::page::{Column, Figure, Page, Point, Scale, Section, Series, Style};
use crate::statistics::Spread;
use crate::suites::tables::{axis, figure, number, section, table, text};

/// Of a node, of which so much is used.
const CORES: f64 = 16.0;
const USED: f64 = 0.7;

pub fn page(
    options: &Options,
    machine: &Machine,
    scenarios: &Scenarios,
    measured: Option<&Measured>,
) -> Page {
    let mut sections = vec![stateless(options)];
    sections.extend(measured.map(|measured| validation(&measured.balancing)));
    sections.extend([
        policies(scenarios),
        sizes(&scenarios.sizes),
        faults(&scenarios.faults),
        growth(&scenarios.growth),
    ]);
    sections.extend(measured.map(|measured| shared(options, measured)));
    Page {
        name: "fleet".to_owned(),
        title: "A fleet".to_owned(),
        introduction: introduction(options, machine, measured),
        sections,
    }
}

fn introduction(options: &Options, machine: &Machine, measured: Option<&Measured>) -> Vec<String> {
    let fleet = options.fleet();
    let mut lines = vec![
        "What scales to many servers, what does not, and where that ends?".to_owned(),
        format!(
            "Simulated, unless a heading says measured: {} servers of {} threads, {} requests/s of {}, {} balancers; {} \
             requests for each figure, with the seed {}. A simulation of queues: how long requests wait for a thread, \
             given who is sent where and what fails. Networks, caches, and threads that want a core at the same time are \
             not simulated.",
            fleet.nodes,
            fleet.threads,
            format::count(f64::from(options.rate)),
            fleet.service,
            fleet.balancing.balancers,
            format::count(f64::from(options.requests)),
            options.seed,
        ),
    ];
    if let Some(measured) = measured {
        let software = measured.balancing.software.iter().chain([&measured.shared.software]);
        lines.push(format!(
            "What is measured: on {}, {} cores, {}, once, {} s for each figure, with {}.",
            machine.cpu,
            machine.cores,
            machine.kernel,
            options.measure.as_secs_f64(),
            software.cloned().collect::<Vec<_>>().join(", "),
        ));
    }
    lines
}

/// Arithmetic with what the other pages have measured.
fn stateless(options: &Options) -> Section {
    let mut section = section("What scales: requests that share nothing");
    let rate = f64::from(options.rate);
    let nodes = options.fleet().nodes as f64;
    let columns = vec![
        text("page"),
        number("CPU µs/req, measured"),
        text("on the page"),
        number(&format!("cores for {}/s", format::count(rate))),
        number("servers of 16 cores, 70 % busy"),
        number(&format!("requests/s of {} such servers", format::count(nodes))),
    ];
    let row = |page: &limits::Page| {
        vec![
            page.what.to_owned(),
            format::significant(page.us),
            page.source.to_owned(),
            format::count(page.cores(rate)),
            format::count((page.cores(rate) / (CORES * USED)).ceil()),
            format::count(nodes * CORES * USED / page.us * 1e6),
        ]
    };
    section.tables.push(table("", columns, limits::PAGES.iter().map(row).collect()));
    section.notes.push(
        "Arithmetic: the CPU time of a request is that of bench/results, with the cores of the machine that these were \
         measured on. The network of a server is not in it."
            .to_owned(),
    );
    section
}

fn validation(balancing: &Balancing) -> Section {
    let mut section = section("Measured: four servers behind HAProxy, beside the simulation of the same");
    section.paragraphs.push(format!(
        "Four servers of four threads, whose script sleeps for 20 ms, so that cores are not what is waited for; requests \
         come evenly spaced. Measured before: a request has its thread for {} ms (the throughput when all are busy), and \
         takes {} ms more when nobody waits. The simulation has both from there, and finds the rest by itself.",
        format::significant(balancing.service.as_secs_f64() * 1e3),
        format::significant(balancing.way.as_secs_f64() * 1e3),
    ));
    let columns = vec![
        text("HAProxy's choice"),
        number("threads busy"),
        number("req/s"),
        number("p50 ms, measured"),
        number("simulated"),
        number("p90 ms, measured"),
        number("simulated"),
        number("p99 ms, measured"),
        number("simulated"),
        number("failed"),
        number("HAProxy's CPU µs/req"),
    ];
    let row = |point: &super::measured::Point| {
        let both = |quantile| [at(&point.measured, quantile), at(&point.simulated, quantile)];
        let named =
            vec![point.policy.to_string(), percent(point.load), format::count(point.rate)].into_iter();
        let figures = [0.5, 0.9, 0.99].into_iter().flat_map(both);
        let rest =
            [point.failed.to_string(), point.balancer_us.map_or_else(|| "–".to_owned(), format::significant)];
        named.chain(figures).chain(rest).collect()
    };
    section.tables.push(table("", columns, balancing.points.iter().map(row).collect()));
    section
}

fn policies(scenarios: &Scenarios) -> Section {
    let mut section = section("Which server a request is sent to");
    let rows = scenarios.policies.iter().map(|choice| {
        let named = vec![choice.policy.to_string(), choice.balancers.to_string(), percent(choice.load)];
        [named, tails(&choice.outcome)].concat()
    });
    let named = vec![text("choice"), number("balancers"), number("threads busy")];
    section.tables.push(table("", [named, tail_columns()].concat(), rows.collect()));
    section.notes.push(
        "A balancer knows of its own requests alone: the more of them, the less each knows. What is left of leastconn \
         with many is what chance has."
            .to_owned(),
    );
    section.figures.push(Figure {
        series: POLICIES.iter().map(|policy| series_of(*policy, &scenarios.loads)).collect(),
        ..figure(
            "fleet-wait",
            "99th percentile of the wait for a thread",
            axis("threads busy", "%", Scale::Linear),
            axis("wait", "ms", Scale::Logarithmic),
        )
    });
    section
}

fn series_of(policy: Policy, loads: &[Choice]) -> Series {
    let own = loads.iter().filter(|choice| choice.policy == policy);
    let point = |choice: &Choice| {
        let wait = choice.outcome.total.wait.quantile_ms(0.99)?;
        Some(Point { x: choice.load * 100.0, y: Spread::of([wait])? })
    };
    Series {
        label: policy.to_string(),
        identity: policy.to_string(),
        style: Style::Line,
        points: own.filter_map(point).collect(),
    }
}

fn sizes(sizes: &[Choice]) -> Section {
    let mut section = section("How many servers, each with its part of the load");
    let rows = sizes.iter().map(|choice| {
        [vec![choice.nodes.to_string(), percent(choice.load)], tails(&choice.outcome)].concat()
    });
    let named = vec![number("servers"), number("threads busy")];
    section.tables.push(table("", [named, tail_columns()].concat(), rows.collect()));
    section
}

fn faults(faults: &[Happening]) -> Section {
    let mut section = section("When servers fail and are restarted");
    let columns = vec![
        text("what happens"),
        number("req/s"),
        number("requests"),
        number("lost"),
        number("p50 ms"),
        number("p99 ms"),
        number("p99.9 ms"),
        number("greatest ms"),
    ];
    let row = |happening: &Happening| {
        let total = &happening.outcome.total;
        vec![
            happening.what.clone(),
            format::count(happening.rate),
            format::count(total.answered as f64),
            format::count(total.lost as f64),
            at(&total.latency, 0.5),
            at(&total.latency, 0.99),
            at(&total.latency, 0.999),
            total.latency.max_ms().map_or_else(|| "–".to_owned(), format::significant),
        ]
    };
    section.tables.push(table("", columns, faults.iter().map(row).collect()));
    section.notes.push(
        "Checks as docs/load-balancers.md has them: every second, two in vain; connections time out after 2 s. What a \
         server was running when it was killed is lost, as tests/tests/haproxy.rs has measured it; what is sent to one \
         that is gone is refused, and goes to another. What a server that stands still has taken is answered when it \
         goes on."
            .to_owned(),
    );
    section
}

fn growth(growth: &Growth) -> Section {
    let mut section = section("An autoscaler by the wait for a thread");
    let fleet = &growth.fleet;
    section.paragraphs.push(format!(
        "Pods of {} threads, {} at first, whose requests take {} ms: {} requests/s make them all busy. The load goes from \
         {} to {} requests/s in two minutes, and back after 20. The HorizontalPodAutoscaler is that of \
         packaging/kubernetes/autoscaling/hpa-queue-wait.yaml; a pod serves 30 s after it was asked for. More than 2 s of \
         waiting is refused (`max_wait_time`).",
        fleet.threads,
        fleet.nodes,
        fleet.service.mean().as_millis(),
        format::count(fleet.capacity()),
        format::count(growth.rates.first().map_or(0.0, |(_, rate)| *rate)),
        format::count(growth.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)),
    ));
    let seconds = growth.bin.as_secs_f64();
    let minute = |place: usize| place as f64 * seconds / 60.0;
    let bins = &growth.outcome.bins;
    let over_time = |label: &str, value: &dyn Fn(usize) -> Option<f64>| Series {
        label: label.to_owned(),
        identity: label.to_owned(),
        style: Style::Thin,
        points: (0..bins.len())
            .filter_map(|place| Some(Point { x: minute(place), y: Spread::of([value(place)?])? }))
            .collect(),
    };
    let nodes = |place: usize| bins.get(place).map(|bin| bin.nodes as f64).filter(|nodes| *nodes > 0.0);
    let refused = |place: usize| {
        let bin = bins.get(place)?;
        Some(bin.refused as f64 / (bin.refused + bin.answered).max(1) as f64 * 100.0)
    };
    section.figures.push(Figure {
        series: vec![over_time("pods that serve", &nodes), over_time("% refused", &refused)],
        ..figure(
            "fleet-growth",
            "Pods, and what is refused",
            axis("time", "min", Scale::Linear),
            axis("pods, %", "", Scale::Linear),
        )
    });
    let most = bins.iter().map(|bin| bin.nodes).max().unwrap_or(0);
    let last_refusal = bins.iter().rposition(|bin| bin.refused > 0);
    let total = &growth.outcome.total;
    section.tables.push(table(
        "",
        vec![
            number("pods at most"),
            number("refused"),
            number("of requests"),
            number("minutes until none is refused"),
        ],
        vec![vec![
            most.to_string(),
            format::count(total.refused as f64),
            percent(total.refused as f64 / (total.refused + total.answered).max(1) as f64),
            last_refusal.map_or_else(|| "0".to_owned(), |place| format::significant(minute(place + 1) - 3.0)),
        ]],
    ));
    section
}

fn shared(options: &Options, measured: &Measured) -> Section {
    let mut section = section("What does not scale: what servers share");
    let columns = vec![
        text("what"),
        text("CPU time of redis-server, measured"),
        text("where it ends, computed: 70 % of a core"),
        text("beyond that"),
    ];
    let limits = limits::of(&measured.shared, options.fleet().nodes as f64, f64::from(options.rate));
    let row = |limit: Limit| vec![limit.what, limit.cost, limit.limit, limit.beyond];
    section.tables.push(table("", columns, limits.into_iter().map(row).collect()));
    let updates = measured.shared.updates_us.iter();
    let updates: Vec<_> =
        updates.map(|(hubs, us)| format!("{hubs}: {} µs", format::significant(*us))).collect();
    section
        .notes
        .push(format!("An update, by the number of instances that wait for it: {}.", updates.join(", ")));
    section.notes.push(
        "A Redis that does not answer holds up nothing but what needs it: certificates are served from copies, sessions \
         fail, updates of Mercure are refused. A primary that has died is found anew where Sentinels or several addresses \
         are named."
            .to_owned(),
    );
    section
}

fn tail_columns() -> Vec<Column> {
    ["wait p50 ms", "wait p99 ms", "wait p99.9 ms", "answer p50 ms", "answer p99 ms", "answer p99.9 ms"]
        .map(number)
        .into()
}

fn tails(outcome: &Outcome) -> Vec<String> {
    let of = |latencies| [0.5, 0.99, 0.999].map(|quantile| at(latencies, quantile));
    [of(&outcome.total.wait), of(&outcome.total.latency)].concat()
}

/// Less than the resolution of a µs is nothing.
fn at(latencies: &Latencies, quantile: f64) -> String {
    match latencies.quantile_ms(quantile) {
        Some(ms) if ms > 0.001 => format::significant(ms),
        Some(_) => "0".to_owned(),
        None => "–".to_owned(),
    }
}

fn percent(part: f64) -> String {
    format!("{} %", format::significant(part * 100.0))
}
