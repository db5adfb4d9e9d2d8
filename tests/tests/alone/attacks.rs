//! Attacks side by side with steady load: nobody else's request fails, but for those of an engine that was made to die.
//!
//! Ten seconds of each here; `make attack` goes on for ten minutes.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a load for some time, and attackers who take theirs")]

use regent_tests::apps::{copy_tree, fixture};
use regent_tests::{Conn, Server, Setup, in_parallel, until};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Seconds of each attack.
const LENGTH: &str = "REGENT_ATTACK_SECONDS";
const SHORT: u64 = 10;
/// Clients who are not part of any attack.
const VISITORS: usize = 4;
/// PHP threads of an engine that dies.
const THREADS: usize = 4;

/// What attackers do again and again until their time is over.
type Attack = fn(&Server, usize);

/// These end no engine: not one request of the visitors may fail.
const HARMLESS: [Attack; 8] = [
    forge_a_response,
    compute,
    leave_an_endless_loop,
    invent_paths,
    send_signals,
    reach_into_the_server,
    smuggle,
    leave_in_the_middle,
];

/// Each of these ends an engine, and with it the requests that it is running.
const DEADLY: [Attack; 3] = [become_another_program, write_into_the_memory, babble];

#[test]
fn attacks_within_php_and_http_cost_nobody_else_a_request() {
    let server = start("");
    server.get("/steady.php?n=0").expect(200);
    let engine = server.engine();
    let figures = besiege(&server, &HARMLESS);
    assert_eq!(figures.lost, 0, "requests of visitors that got 502 or broke");
    assert_eq!(server.engine(), engine, "no engine died");
    server.stop();
}

#[test]
fn attacks_that_end_an_engine_cost_the_requests_that_it_runs() {
    // The next engine waits longer and longer while one after the other dies, and so do visitors.
    let server = start(&format!("num_threads {THREADS}\n\t\tmax_wait_time off"));
    server.get("/steady.php?n=0").expect(200);
    let figures = besiege(&server, &DEADLY);
    let deaths = server.log().matches("the engine has died").count();
    assert!(deaths > 0, "the attacks reached an engine");
    // What it runs, and what waits in memory that it has overwritten.
    let most = deaths * (THREADS + VISITORS);
    assert!(figures.lost <= most, "{} requests were lost with {deaths} engines", figures.lost);
    until("PHP answers again", || Some(server.get("/steady.php?n=1")).filter(|answer| answer.status == 200));
    server.stop();
}

fn start(php_options: &str) -> Server {
    let setup = Setup::new().php_options(&format!("php_ini ffi.enable 1\n\t\t{php_options}"));
    copy_tree(&fixture("attacks"), &setup.root());
    setup.start()
}

/// What became of the visitors' requests.
struct Figures {
    lost: usize,
}

/// Lets visitors come while all of these attacks go on.
fn besiege(server: &Server, attacks: &[Attack]) -> Figures {
    let seconds = std::env::var(LENGTH).map_or(SHORT, |text| text.parse().expect("a number of seconds"));
    let end = Instant::now() + Duration::from_secs(seconds);
    // A site in use: a server that has just started knows no route, and holds back none (docs/deadlines.md).
    (0..50).for_each(|_| drop(server.get("/steady.php?n=1").expect(200)));
    let (served, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    in_parallel(VISITORS + attacks.len(), |i| match i.checked_sub(VISITORS) {
        None => visit(server, i, end, &served, &lost),
        Some(attack) => {
            for round in 0.. {
                if Instant::now() >= end {
                    break;
                }
                attacks[attack](server, round);
            }
        }
    });
    let (served, lost) = (served.into_inner(), lost.into_inner());
    println!("{served} requests of visitors were answered, {lost} were lost, in {seconds} s");
    assert!(served > 0);
    Figures { lost }
}

/// Asks one question after the other over one connection, as long as that lasts, and wants the answer to each.
fn visit(server: &Server, visitor: usize, end: Instant, served: &AtomicUsize, lost: &AtomicUsize) {
    let mut conn = server.connect();
    for round in 0.. {
        if Instant::now() >= end {
            return;
        }
        let name = format!("{visitor}-{round}");
        conn.send(format!("GET /steady.php?n={name} HTTP/1.1\r\nHost: x\r\n\r\n"));
        match conn.try_response("GET") {
            Ok(Some(answer)) if answer.status == 200 => {
                assert_eq!(answer.text(), format!("steady {name}"), "an answer to somebody else's question");
                served.fetch_add(1, Relaxed);
            }
            Ok(Some(answer)) => {
                assert_eq!(answer.status, 502, "{answer:?}");
                lost.fetch_add(1, Relaxed);
            }
            Ok(None) | Err(_) => {
                lost.fetch_add(1, Relaxed);
                conn = server.connect();
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A script that says a wrong length must not be able to write the next response of its connection.
fn forge_a_response(server: &Server, round: usize) {
    const LENGTHS: [&str; 8] = ["0", "5", "400", "abc", "-1", "3,3", "%2B5", "18446744073709551616"];
    let (length, flush) = (LENGTHS[round % LENGTHS.len()], ["", "&flush=1"][round / LENGTHS.len() % 2]);
    let mut conn = server.connect();
    conn.send(format!("GET /lies.php?length={length}{flush} HTTP/1.1\r\nHost: x\r\n\r\n"));
    // A body that falls short of its length ends with the connection.
    let first: io::Result<_> = conn.try_response("GET");
    if first.is_err() || conn.try_send("GET /steady.php?n=mine HTTP/1.1\r\nHost: x\r\n\r\n").is_err() {
        return;
    }
    if let Ok(Some(answer)) = conn.try_response("GET") {
        assert_eq!(answer.text(), "steady mine", "a forged response to {length}{flush}");
    }
}

fn compute(server: &Server, _: usize) {
    let mut clients: Vec<Conn> = (0..8).map(|_| server.ask("/computes.php")).collect();
    clients.iter_mut().for_each(|client| drop(client.try_response("GET")));
}

fn leave_an_endless_loop(server: &Server, _: usize) {
    let clients: Vec<Conn> = (0..10).map(|_| server.ask("/endless.php")).collect();
    Conn::wait_until_all_read(&clients);
    drop(clients);
    std::thread::sleep(Duration::from_secs(3));
}

fn invent_paths(server: &Server, round: usize) {
    let paths = (0..40).map(|client| format!("/sleeps.php/{round}/{client}"));
    let mut clients: Vec<Conn> = paths.map(|path| server.ask(&path)).collect();
    clients.iter_mut().for_each(|client| drop(client.try_response("GET")));
}

fn send_signals(server: &Server, _: usize) {
    let answer = server.get("/signals.php");
    // Among attackers it may have to wait for too long.
    assert!(answer.status == 503 || answer.text() == "signalled", "{answer:?}");
}

fn reach_into_the_server(server: &Server, _: usize) {
    // Root may read everything; engines get a user of their own in time.
    if !rustix::process::geteuid().is_root() {
        assert_eq!(server.get("/reaches.php").text(), "nothing");
    }
}

fn smuggle(server: &Server, round: usize) {
    const HEADS: [&str; 5] = [
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: +5",
    ];
    let head = HEADS[round % HEADS.len()];
    let behind = "GET /steady.php?n=smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    let answer =
        server.raw(format!("POST /steady.php?n=mine HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n0\r\n\r\n{behind}"));
    assert!(!answer.contains("steady smuggled"), "{head}: {answer}");
}

fn leave_in_the_middle(server: &Server, _: usize) {
    let mut conn = server.connect();
    conn.send("POST /steady.php?n=mine HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nhalf of it");
    drop(conn);
}

fn become_another_program(server: &Server, _: usize) {
    end_an_engine(server, "/becomes_another.php");
}

fn write_into_the_memory(server: &Server, _: usize) {
    end_an_engine(server, "/writes_into_memory.php");
}

fn babble(server: &Server, _: usize) {
    end_an_engine(server, "/babbles.php");
}

/// Asks for a script that ends its engine, and waits for the answer, which is that it could not be had.
fn end_an_engine(server: &Server, target: &str) {
    let answer = server.ask(target).try_response("GET");
    assert!(
        !matches!(&answer, Ok(Some(answer)) if answer.status == 200 && !answer.body.is_empty()),
        "{answer:?}"
    );
    std::thread::sleep(Duration::from_secs(1));
}
