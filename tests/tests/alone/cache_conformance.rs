//! What HTTP asks of a shared cache: what is required is so, and all else is as `docs/cache-conformance.md` has it.
//!
//! That page is made anew, nginx beside Regent, by
//! ```sh
//! tools/test server -- --ignored nginx_is_put_through_the_same_cases
//! ```
//! and Regent's part of it, after a change that is meant, by `REGENT_CACHE_CONFORMANCE=record`.
#![forbid(unsafe_code)]

use regent_tests::cache_suite::{
    Case, Column, Group, Level, Origin, Outcome, groups, page, recorded, run_all,
};
use regent_tests::nginx::Nginx;
use regent_tests::{Setup, own_address};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cache-conformance.md");
/// What the page says of the columns.
const CONFIGURATIONS: &str = "\
*Regent* is `cache` before `reverse_proxy`, *Regent, options* is `cache { heuristic; obey_clients; stale_if_error 1h }`, whose one \
failure is what it was told: `stale_if_error` is for responses with `s-maxage` too. nginx has `proxy_cache` with \
`proxy_cache_revalidate`, `proxy_cache_background_update`, `proxy_cache_lock` and `proxy_force_ranges` on.
";
const OPTIONS: &str = "cache {\nheuristic\nobey_clients\nstale_if_error 1h\n}";
/// Required, and not so where the configuration says otherwise.
const AS_TOLD: [&str; 1] = ["stale-s-maxage"];

#[test]
fn required_cases_pass_and_the_others_come_out_as_they_are_recorded() {
    let groups = groups();
    let nginx = recorded(&fs::read_to_string(PAGE).unwrap_or_default());
    let nginx = nginx.unwrap_or_else(|| Column { name: "nginx".to_owned(), words: BTreeMap::new() });
    let (plain, told) = both(&groups);
    assert_required(&groups, &plain, &[]);
    assert_required(&groups, &told, &AS_TOLD);
    settle(&page(&groups, &[plain.column, told.column, nginx], CONFIGURATIONS));
}

#[test]
#[ignore = "nginx is what it is: for the page alone"]
fn nginx_is_put_through_the_same_cases() {
    let Some(program) = Nginx::program() else { return };
    let groups = groups();
    let (origin, address) = (Origin::start(), own_address());
    let directory = tempfile::tempdir().expect("a directory");
    let http = format!(
        "proxy_cache_path {}/cache levels=1:2 keys_zone=cases:8m max_size=100m inactive=600m use_temp_path=off;
        server {{
            listen {address};
            location / {{
                proxy_pass http://{};
                proxy_http_version 1.1;
                proxy_set_header Connection \"\";
                proxy_cache cases;
                proxy_cache_revalidate on;
                proxy_cache_background_update on;
                proxy_cache_lock on;
                proxy_force_ranges on;
            }}
        }}",
        directory.path().display(),
        origin.address(),
    );
    let _nginx = Nginx::start(&program, directory.path(), &http, address);
    let nginx = put_through(&Nginx::version(&program), address, &origin, &groups);
    show(&groups, &nginx);
    let (plain, told) = both(&groups);
    let columns = [plain.column, told.column, nginx.column];
    fs::write(PAGE, page(&groups, &columns, CONFIGURATIONS)).expect("the page can be written");
}

/// What came of all cases.
struct Through {
    column: Column,
    outcomes: BTreeMap<String, Outcome>,
}

/// Regent as it is, and with options. Both wait most of their time.
fn both(groups: &[Group]) -> (Through, Through) {
    std::thread::scope(|scope| {
        let told = scope.spawn(|| regent("Regent, options", OPTIONS, groups));
        (regent("Regent", "cache", groups), told.join().expect("it is put through"))
    })
}

fn regent(name: &str, directive: &str, groups: &[Group]) -> Through {
    let origin = Origin::start();
    let site = format!("{directive}\nreverse_proxy {}", origin.address());
    let server = Setup::new().site(&site).start();
    let through = put_through(name, server.address(), &origin, groups);
    server.stop();
    through
}

fn put_through(name: &str, cache: SocketAddr, origin: &Origin, groups: &[Group]) -> Through {
    let cases: Vec<&Case> = groups.iter().flat_map(|group| &group.cases).collect();
    let outcomes = run_all(&cases, cache, origin);
    let word = |case: &&Case| (case.id.clone(), outcomes[&case.id].word(case.level).to_owned());
    let column = Column { name: name.to_owned(), words: cases.iter().map(word).collect() };
    Through { column, outcomes }
}

#[track_caller]
fn assert_required(groups: &[Group], through: &Through, excepted: &[&str]) {
    let cases = groups.iter().flat_map(|group| &group.cases).filter(|case| case.level == Level::Required);
    let failed = cases.filter(|case| matches!(through.outcomes[&case.id], Outcome::Fail(_)));
    let failed: Vec<String> = failed
        .filter(|case| !excepted.contains(&case.id.as_str()))
        .map(|case| {
            format!("{} ({}: {}): {:?}", case.id, case.section, case.demand, through.outcomes[&case.id])
        })
        .collect();
    assert!(failed.is_empty(), "{}:\n{}", through.column.name, failed.join("\n"));
}

/// Whatever is not as one could wish.
fn show(groups: &[Group], through: &Through) {
    for case in groups.iter().flat_map(|group| &group.cases) {
        if through.outcomes[&case.id] != Outcome::Pass {
            println!(
                "{} {:?} {}: {:?}",
                through.column.name, case.level, case.id, through.outcomes[&case.id]
            );
        }
    }
}

/// The page is as the outcomes are, or becomes so.
fn settle(made: &str) {
    if std::env::var("REGENT_CACHE_CONFORMANCE").is_ok_and(|value| value == "record") {
        fs::write(PAGE, made).expect("the page can be written");
    }
    let stored = fs::read_to_string(PAGE).expect("the page is there");
    let differences: Vec<String> = stored
        .lines()
        .zip(made.lines())
        .filter(|(stored, made)| stored != made)
        .map(|(stored, made)| format!("- {stored}\n+ {made}"))
        .collect();
    assert!(
        stored == made,
        "docs/cache-conformance.md is not what came of the cases; after a change that is meant, run this with \
         REGENT_CACHE_CONFORMANCE=record:\n{}",
        differences.join("\n")
    );
}
