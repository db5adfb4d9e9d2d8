//! Figures of what is replaced while it runs: how many requests fail, and what the others wait, beside a quiet server.
//!
//! They take a machine of their own, and are measured by hand:
//!
//! ```sh
//! REGENT_BIN=target/release/regent cargo test -p regent-tests --test server -- living_figures:: --ignored --nocapture --test-threads 1
//! ```
//!
//! `REGENT_FIGURES_RATE` is the number of requests a second (1000), `REGENT_FIGURES_ROUNDS` how often a thing is done (100),
//! and `REGENT_NEXT_BIN` the build that an upgrade leads to, if it is another one.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "figures: times are what is printed")]

use regent_tests::chaos::Clock;
use regent_tests::chaos::faults::Operation;
use regent_tests::chaos::load::{Load, Record};
use regent_tests::chaos::operator::Operator;
use regent_tests::chaos::question::{Route, Versions};
use regent_tests::chaos::site::Site;
use regent_tests::chaos::timeline::{Percentiles, percentiles};
use regent_tests::{Conn, Server, Setup, in_parallel, regent_command, until};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a server is measured with nothing going on.
const QUIET: Duration = Duration::from_secs(5);
/// Between two things that are done.
const PAUSE: Duration = Duration::from_millis(100);

fn number(name: &str, usual: f64) -> f64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

fn rate() -> f64 {
    number("REGENT_FIGURES_RATE", 1000.0)
}

fn rounds() -> usize {
    number("REGENT_FIGURES_ROUNDS", 100.0) as usize
}

/// A row of the table.
fn show(what: &str, records: &[Record], quiet: Option<Percentiles>) -> Percentiles {
    let answered = records.iter().filter(|record| record.trouble.is_none());
    let figures = percentiles(answered.map(Record::latency).collect());
    let failed: Vec<&Record> = records.iter().filter(|record| record.trouble.is_some()).collect();
    let ratio = quiet.map(|quiet| format!("{:.2}", figures.p99 / quiet.p99)).unwrap_or_default();
    println!(
        "| {what} | {} | {} | {:.2} | {:.2} | {:.1} | {ratio} |",
        records.len(),
        failed.len(),
        figures.p50,
        figures.p99,
        figures.max
    );
    failed.iter().take(10).for_each(|record| println!("    failed: {record:?}"));
    figures
}

fn head() {
    println!("\n| what | requests | failed | p50 ms | p99 ms | greatest ms | p99 beside quiet |");
    println!("|---|--:|--:|--:|--:|--:|--:|");
}

/// Has a server measured: first as it is when nothing goes on, then by `measure`.
fn measured(
    server: &mut Server,
    versions: &Versions,
    only: Option<Route>,
    measure: impl FnOnce(&mut Server, &Load<'_>, Percentiles),
) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (site, tls, clock) = (server.address(), server.tls_address(), Clock::start());
    let load = Load::new(site, tls, versions, clock, runtime.handle().clone());
    let load = match only {
        Some(route) => load.only(route),
        None => load,
    };
    load.wait_until_ready();
    load.during(rate(), || std::thread::sleep(QUIET));
    head();
    let (records, ()) = load.during(rate(), || std::thread::sleep(QUIET));
    let quiet = show("quiet", &records, None);
    measure(server, &load, quiet);
}

/// Does each of these again and again under load.
fn operate(operations: &[(&str, Operation)]) {
    let versions = Versions::default();
    let mut server = Site::plain().setup(&versions).start();
    measured(&mut server, &versions, None, |server, load, quiet| {
        let mut operator = Operator::new(server, Site::plain(), &versions);
        for (what, operation) in operations {
            let (records, ()) = load.during(rate(), || {
                for round in 0..rounds() {
                    let done = operator.operate(*operation);
                    assert_eq!(done, Ok(()), "{what}, round {round}");
                    std::thread::sleep(PAUSE);
                }
            });
            show(&format!("{} × {what}", rounds()), &records, Some(quiet));
        }
    });
    server.stop();
}

#[test]
#[ignore = "a figure"]
fn reloads_and_restarts() {
    operate(&[
        ("reload", Operation::Reload),
        ("reload with another engine", Operation::ReloadEngine),
        ("restart of the workers", Operation::RestartWorkers),
        ("restart of the modules", Operation::RestartNative),
    ]);
}

#[test]
#[ignore = "a figure"]
fn releases() {
    operate(&[("new release, the old one deleted", Operation::Deploy)]);
}

/// A server that was started by a link in its directory, with the engines beside the program that it leads to.
fn linked(versions: &Versions) -> Server {
    let setup = Site::plain().setup(versions).launcher(&["sh", "-c", "shift; exec ./regent \"$@\"", "sh"]);
    let program = regent_command(setup.directory()).get_program().to_owned();
    symlink(program, setup.directory().join("regent")).expect("the directory is ours");
    setup.start()
}

/// Asks for streams that last for seconds, one after the other, and counts those that are not whole.
fn stream(server: std::net::SocketAddr, is_over: &AtomicBool) -> (usize, usize) {
    let (mut whole, mut broken) = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        let mut conn = Conn::open(server);
        conn.send("GET /stream.php HTTP/1.1\r\nHost: x\r\n\r\n");
        match conn.try_response("GET") {
            Ok(Some(answer)) if answer.status == 200 && answer.text().ends_with("end of 60") => whole += 1,
            answer => {
                println!("    a stream broke: {answer:?}");
                broken += 1;
            }
        }
    }
    (whole, broken)
}

#[test]
#[ignore = "a figure"]
fn upgrades() {
    let versions = Versions::default();
    let mut server = linked(&versions);
    let own = fs::read_link(server.directory().join("regent")).expect("it is a link");
    let next = std::env::var_os("REGENT_NEXT_BIN").map_or_else(|| own.clone(), PathBuf::from);
    measured(&mut server, &versions, None, |server, load, quiet| {
        let address = server.address();
        let is_over = AtomicBool::new(false);
        let times = rounds().div_ceil(10);
        let (records, streams) = load.during(rate(), || {
            std::thread::scope(|scope| {
                let streams: Vec<_> = (0..4).map(|_| scope.spawn(|| stream(address, &is_over))).collect();
                let link = server.directory().join("regent");
                let mut operator = Operator::new(server, Site::plain(), &versions);
                for round in 0..times {
                    fs::remove_file(&link).expect("it is ours");
                    symlink(if round % 2 == 0 { &next } else { &own }, &link).expect("the directory is ours");
                    assert_eq!(operator.operate(Operation::Upgrade), Ok(()), "round {round}");
                }
                is_over.store(true, Ordering::Relaxed);
                streams
                    .into_iter()
                    .map(|stream| stream.join().expect("it counts what fails"))
                    .collect::<Vec<_>>()
            })
        });
        show(&format!("{times} × upgrade to {}", next.display()), &records, Some(quiet));
        let (whole, broken) = streams.into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        println!("streams of 3 s meanwhile: {whole} whole, {broken} broken");
    });
    server.stop();
}

/// The ways of hanging.
const HANGS: [(&str, &str); 5] = [
    ("sleep()", "/faults/sleeps.php"),
    ("TCP read", "/faults/reads.php"),
    ("flock()", "/faults/locks.php"),
    ("loop", "/faults/computes.php"),
    ("function of C that does not return", "/faults/never_returns.php"),
];
const LIMIT: Duration = Duration::from_millis(500);

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// With one thread, so that the next request is answered when it is free.
#[test]
#[ignore = "a figure"]
fn hung_requests_end_in_time() {
    let options =
        "num_threads 1\n\t\tmax_threads 1\n\t\trequest_timeout 500ms\n\t\tphp_ini max_execution_time 0";
    let setup = Setup::new().php_options(options).file("index.php", "<?php echo 'ok';");
    regent_tests::apps::copy_tree(&regent_tests::apps::fixture("chaos/faults"), &setup.root().join("faults"));
    let server = setup.start();
    println!("\n| hangs in | times | 504 after, greatest | next request answered after, greatest | limit |");
    println!("|---|--:|--:|--:|--:|");
    for (what, target) in HANGS {
        server.get("/").expect(200);
        let times = rounds().div_ceil(10);
        let (mut answered, mut back) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..times {
            let asked = Instant::now();
            server.get(target).expect(504);
            answered = answered.max(asked.elapsed());
            server.get("/").expect(200);
            back = back.max(asked.elapsed());
        }
        println!(
            "| {what} | {times} | {:.0} ms | {:.0} ms | {:.0} ms |",
            milliseconds(answered),
            milliseconds(back),
            milliseconds(LIMIT)
        );
    }
    server.stop();
}

/// While one after the other hangs, and then fifty at once on four threads.
#[test]
#[ignore = "a figure"]
fn hung_requests_beside_a_fast_route() {
    let versions = Versions::default();
    let setup = Site::plain().setup(&versions);
    let caddyfile = Site::plain()
        .caddyfile(0, 0)
        .replace("num_threads 8", "num_threads 4")
        .replace("max_threads 24", "max_threads 6");
    let mut server = setup.caddyfile(&caddyfile).start();
    measured(&mut server, &versions, Some(Route::Classic), |server, load, quiet| {
        for (what, target) in HANGS {
            let (records, ()) = load.during(rate(), || {
                for _ in 0..rounds().div_ceil(20) {
                    server.get(target).expect(504);
                }
            });
            show(&format!("one after the other hangs: {what}"), &records, Some(quiet));
        }
        let (records, ended) = load.during(rate(), || {
            let answers = in_parallel(50, |_| server.get("/faults/sleeps.php").status);
            answers.into_iter().filter(|status| *status == 504).count()
        });
        show("50 hang at once on four threads", &records, Some(quiet));
        println!("of the 50, {ended} got 504 after they had run, the others 503");
    });
    server.stop();
}

#[test]
#[ignore = "a figure"]
fn opcache_is_emptied_by_every_request_of_a_route() {
    let versions = Versions::default();
    let mut server = Site::plain().setup(&versions).start();
    measured(&mut server, &versions, None, |server, load, quiet| {
        let before = server.log().len();
        let length = Duration::from_secs_f64(number("REGENT_FIGURES_ROUNDS", 100.0) / 5.0);
        let (records, resets) = load.during(rate(), || {
            let (begin, mut resets) = (Instant::now(), 0);
            while begin.elapsed() < length {
                assert_eq!(server.get("/faults/resets_opcache.php").expect(200).text(), "reset");
                resets += 1;
            }
            resets
        });
        show("opcache_reset() again and again", &records, Some(quiet));
        let log = server.log_from(before);
        println!(
            "{resets} times in {:.0} s, for which {} generations were started",
            length.as_secs_f64(),
            log.matches("starting a new generation of the engine").count()
        );
        until("the last generation is alone", || (server.engines().len() == 1).then_some(()));
    });
    server.stop();
}
