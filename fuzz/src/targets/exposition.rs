//! The metrics: whatever pools and routes are called, each line is of Prometheus' text format, and each name can be read
//! back from it.
//!
//! Names of routes, apart by the byte FF; the first is the name of the pool.

use crate::input::Input;
use regent_metrics::{Gauges, LaneGauges, Registry, Serves, Standing, render};
use std::time::Instant;

/// Beyond it names are cut. See `regent_metrics::names`.
const LONGEST_NAME: usize = 120;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let registry = Registry::new(Instant::now());
    let name = |input: &mut Input<'_>| String::from_utf8_lossy(input.until(0xFF)).into_owned();
    let pool_name = name(&mut input);
    let pool = registry.pool(&pool_name, Serves::Worker(pool_name.clone().into()));
    let mut names = Vec::new();
    while !input.is_empty() && names.len() < 8 {
        let route = name(&mut input);
        registry.route(pool, &route, Standing::Returning);
        names.push(route);
    }
    let lane = |route: &String| LaneGauges { pool, route: route.clone(), limit: 1, inside: 1, waiting: 0 };
    let gauges = Gauges { lanes: names.iter().map(lane).collect(), ..Gauges::default() };
    let text = render(&registry, &gauges);
    let read: Vec<_> = text.split_terminator('\n').filter(|line| !line.starts_with("# ")).map(labels).collect();
    for name in names.iter().filter(|name| name.len() <= LONGEST_NAME) {
        let label = ("route".to_owned(), name.clone());
        assert!(read.iter().any(|labels| labels.contains(&label)), "{name:?} is not in {text}");
    }
}

/// Names and values of a sample's labels, without their escapes. Panics on what is no sample.
fn labels(line: &str) -> Vec<(String, String)> {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    assert!(value.parse::<f64>().is_ok(), "{line}");
    let Some((name, rest)) = series.split_once('{') else { return Vec::new() };
    assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
    let mut rest = rest;
    let mut labels = Vec::new();
    while rest != "}" {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label in {line}"));
        let (value, after) = unquoted(after);
        labels.push((name.trim_start_matches(',').to_owned(), value));
        rest = after;
    }
    labels
}

/// The value up to its quote, and what follows that.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match characters.next() {
                Some((_, 'n')) => '\n',
                Some((_, same @ ('"' | '\\'))) => same,
                other => panic!("no escape of the format: {other:?}"),
            }),
            character => value.push(character),
        }
    }
    panic!("the quote does not end: {text}")
}
