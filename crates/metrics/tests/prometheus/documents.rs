//! The page for users and the dashboard name what is exported, and nothing else.

use crate::server::{Scrape, Server};
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/monitoring.md");
const DASHBOARD: &str = include_str!("../../../../packaging/grafana/regent.json");
const ALERTS: &str = include_str!("../../../../packaging/prometheus/regent.rules.yml");

/// Metrics that a text names, whether as a whole or as a part of a histogram.
fn metrics_in(text: &str, scrape: &Scrape) -> BTreeSet<String> {
    let name = Regex::new(r"\b(regent|frankenphp|process|caddy)_[a-z_]*[a-z]").unwrap();
    let families = scrape.families();
    let whole = |name: &str| {
        let part = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
        part.filter(|family| families.get(family) == Some(&"histogram")).unwrap_or(name).to_owned()
    };
    name.find_iter(text).map(|found| whole(found.as_str())).collect()
}

fn unknown<'a>(names: &'a BTreeSet<String>, scrape: &Scrape) -> Vec<&'a String> {
    names.iter().filter(|name| !scrape.families().contains_key(name.as_str())).collect()
}

/// Type and labels of each metric, by the page's table.
fn documented() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let row = Regex::new(r"(?m)^\| `([a-z_]+)` \| ([a-z]+) \| ([a-z, ]*)\| .+ \|$").unwrap();
    let labels = |list: &str| {
        list.split(',').map(|label| label.trim().to_owned()).filter(|label| !label.is_empty()).collect()
    };
    row.captures_iter(PAGE)
        .map(|cells| (cells[1].to_owned(), (cells[2].to_owned(), labels(&cells[3]))))
        .collect()
}

fn dashboard() -> Value {
    serde_json::from_str(DASHBOARD).expect("JSON")
}

fn panels(dashboard: &Value) -> &[Value] {
    dashboard["panels"].as_array().expect("panels")
}

fn queries(dashboard: &Value) -> Vec<&str> {
    let targets = panels(dashboard).iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().expect("a query")).collect()
}

#[test]
fn the_table_has_every_metric_with_its_type_and_labels() {
    let scrape = Server::new().scrape();
    let exported: BTreeMap<_, _> = scrape
        .families()
        .into_iter()
        .map(|(name, kind)| (name.to_owned(), (kind.to_owned(), scrape.labels(name))))
        .collect();
    assert_eq!(documented(), exported);
}

#[test]
fn what_the_page_asks_for_is_exported() {
    let scrape = Server::new().scrape();
    assert_eq!(unknown(&metrics_in(PAGE, &scrape), &scrape), Vec::<&String>::new());
}

#[test]
fn what_the_dashboard_asks_for_is_exported() {
    let scrape = Server::new().scrape();
    let named = metrics_in(DASHBOARD, &scrape);
    assert_eq!(unknown(&named, &scrape), Vec::<&String>::new());
    let exported = scrape.families();
    let missing: Vec<_> = exported
        .keys()
        .filter(|name| {
            name.starts_with("regent_") && **name != "regent_build_info" && !named.contains(**name)
        })
        .collect();
    assert_eq!(missing, Vec::<&&str>::new());
}

#[test]
fn what_the_alerts_ask_for_is_exported_and_the_page_tells_of_each() {
    let scrape = Server::new().scrape();
    let named = metrics_in(ALERTS, &scrape);
    assert!(named.len() > 15, "{named:?}");
    assert_eq!(unknown(&named, &scrape), Vec::<&String>::new());
    let alert = Regex::new(r"(?m)^ +- alert: (\w+)$").unwrap();
    let row = Regex::new(r"(?m)^\| `(Regent\w+)` \| .+ \| .+ \|$").unwrap();
    let all = |of: &Regex, text: &str| {
        of.captures_iter(text).map(|found| found[1].to_owned()).collect::<BTreeSet<_>>()
    };
    assert_eq!(all(&row, PAGE), all(&alert, ALERTS));
}

#[test]
fn the_dashboard_is_one_that_grafana_can_draw() {
    let dashboard = dashboard();
    let ids: BTreeSet<_> =
        panels(&dashboard).iter().map(|panel| panel["id"].as_u64().expect("an id")).collect();
    assert_eq!(ids.len(), panels(&dashboard).len());
    for panel in panels(&dashboard) {
        let (x, width) = (&panel["gridPos"]["x"], &panel["gridPos"]["w"]);
        assert!(x.as_u64().unwrap() + width.as_u64().unwrap() <= 24, "{panel}");
        let drawn = panel["targets"].as_array().is_some_and(|targets| !targets.is_empty());
        assert_eq!(drawn, panel["type"] != "row", "{panel}");
    }
}

#[test]
fn promtool_accepts_the_output_the_alerts_and_the_queries() {
    if Command::new("promtool").arg("--version").output().is_err() {
        println!("SKIPPED: promtool, of Debian's package prometheus, is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let check = |kind: &str, text: &str| {
        let file = directory.path().join(kind);
        fs::write(&file, text).unwrap();
        promtool(kind, &file)
    };
    // It finds fault only with names that are FrankenPHP's and those of a module of Caddy's.
    let findings = check("metrics", &Server::new().scrape().0);
    assert!(
        findings.lines().all(|line| ["frankenphp_", "caddy_"].iter().any(|name| line.starts_with(name))),
        "{findings}"
    );

    let findings = check("rules", ALERTS);
    assert!(findings.contains("SUCCESS"), "{findings}");

    let (dashboard, mut rules) = (dashboard(), String::from("groups:\n- name: dashboard\n  rules:\n"));
    for (number, query) in queries(&dashboard).into_iter().enumerate() {
        let query = serde_json::to_string(&query.replace("$__rate_interval", "1m")).unwrap();
        rules += &format!("  - record: query{number}\n    expr: {query}\n");
    }
    let findings = check("rules", &rules);
    assert!(findings.contains("SUCCESS"), "{findings}");
}

fn promtool(kind: &str, file: &Path) -> String {
    let output = Command::new("promtool")
        .args(["check", kind])
        .args((kind == "rules").then_some(file))
        .stdin(fs::File::open(file).unwrap())
        .output()
        .expect("promtool");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
