//! The generator against servers that behave as told.

mod server;

use std::collections::BTreeSet;
use std::net::{IpAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::outcome::{Failures, KindOutcome, Outcome};
use super::plan::{Connections, Expect, Kind, Limit, Pace, Plan, Stage, Window};
use crate::interrupt::Interrupt;
use server::Server;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const OK_CLOSE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
const MINUTE: Duration = Duration::from_secs(60);

/// A small plan; tests change what they are about.
pub fn plan() -> Plan {
    Plan {
        targets: vec![([127, 0, 0, 1], 1).into()],
        host: "test".to_owned(),
        pace: Pace::Closed { users: 2 },
        connections: Connections::KeepAlive,
        limit: Limit::Requests(20),
        timeout: MINUTE,
        mix: vec![kind("all")],
        source: None,
        seed: 1,
    }
}

fn kind(name: &str) -> Kind {
    Kind {
        name: name.to_owned(),
        weight: 1,
        method: "GET".to_owned(),
        target: "/".to_owned(),
        body_bytes: 0,
        window: None,
        leave_after: None,
        expect: Expect::Body("hello".to_owned()),
    }
}

fn run(server: &Server, plan: Plan) -> Outcome {
    let plan = Plan { targets: vec![server.address], ..plan };
    super::run(&plan, None, &Interrupt::default()).expect("it runs")
}

/// Runs the small plan, whose requests all end as `expected`.
fn assert_all(server: &Server, connections: Connections, expected: Failures) {
    let outcome = run(server, Plan { connections, ..plan() });
    let right = 20 - expected.total();
    assert_eq!((outcome.failures(), outcome.right(), outcome.requests()), (expected, right, 20));
}

#[test]
fn connections_are_kept() {
    let server = Server::answering(OK);
    let outcome = run(&server, plan());
    assert_eq!((outcome.right(), outcome.failed(), outcome.right_in_time), (20, 0, 20));
    assert_eq!((server.accepted(), outcome.most_connections), (2, 2));
    assert_eq!(outcome.kinds["all"].bytes, 20 * OK.len() as u64);
}

#[test]
fn connections_come_from_the_address_of_the_plan() {
    let source = IpAddr::from([127, 0, 0, 9]);
    let server = Server::start(move |mut peer| {
        let answer = if peer.source() == source { OK } else { OK_CLOSE };
        while peer.request().is_some() && peer.send(answer.as_bytes()).is_some() {}
    });
    let outcome = run(&server, Plan { source: Some(source), ..plan() });
    assert_eq!((outcome.right(), outcome.kinds["all"].bytes), (20, 20 * OK.len() as u64));
}

#[test]
fn a_connection_per_request_is_closed_by_the_server() {
    let server = Server::start(|mut peer| {
        let head = peer.request().expect("a request");
        assert!(head.contains("Connection: close\r\n"), "{head}");
        peer.send(OK_CLOSE.as_bytes());
    });
    assert_all(&server, Connections::PerRequest, Failures::default());
    assert_eq!(server.accepted(), 20);
}

#[test]
fn a_server_that_ignores_close_is_closed_by_the_client() {
    let server = Server::answering(OK);
    assert_all(&server, Connections::PerRequest, Failures::default());
    assert_eq!(server.accepted(), 20);
}

#[test]
fn connections_that_the_server_closes_are_opened_again() {
    // Announced or not: nothing had been sent on them.
    for answer in [OK_CLOSE, OK] {
        let server = Server::start(move |mut peer| {
            if peer.request().is_some() {
                peer.send_and_close(answer.as_bytes());
            }
        });
        assert_all(&server, Connections::KeepAlive, Failures::default());
        assert_eq!(server.accepted(), 20);
    }
}

#[test]
fn chunks_in_odd_pieces_are_right() {
    let answer =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nhel\r\n2\r\nlo\r\n0\r\nT: x\r\n\r\n";
    let server = Server::start(move |mut peer| {
        while peer.request().is_some() {
            answer.as_bytes().chunks(3).for_each(|piece| peer.send(piece).expect("the client reads"));
        }
    });
    assert_all(&server, Connections::KeepAlive, Failures::default());
}

#[test]
fn an_answer_up_to_the_end_of_the_connection_is_right() {
    let server = Server::start(|mut peer| {
        if peer.request().is_some() {
            peer.send(b"HTTP/1.1 200 OK\r\n\r\nhello");
        }
    });
    assert_all(&server, Connections::KeepAlive, Failures::default());
}

#[test]
fn other_answers_are_wrong() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhullo",
        "SSH-2.0-OpenSSH\r\n",
        &format!("{OK}HTTP/1.1 200"),
    ] {
        assert_all(
            &Server::answering(answer),
            Connections::KeepAlive,
            Failures { wrong: 20, ..Failures::default() },
        );
    }
}

#[test]
fn a_connection_that_ends_within_an_answer_is_broken() {
    for length in [0, 10, OK.len() - 1] {
        let server = Server::start(move |mut peer| {
            if peer.request().is_some() {
                peer.send(&OK.as_bytes()[..length]);
            }
        });
        assert_all(&server, Connections::KeepAlive, Failures { broken: 20, ..Failures::default() });
    }
}

#[test]
fn a_closed_port_is_a_failure_to_connect() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address");
    let outcome =
        super::run(&Plan { targets: vec![port], ..plan() }, None, &Interrupt::default()).expect("it runs");
    assert_eq!(outcome.failures(), Failures { connect: 20, ..Failures::default() });
}

#[test]
fn errors_are_counted_by_their_status() {
    let server = Server::answering("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    let outcome = run(&server, plan());
    assert_eq!((outcome.kinds["all"].statuses[&503].count(), outcome.right(), outcome.failed()), (20, 0, 20));
    assert_eq!((outcome.misses(MINUTE), server.accepted()), (20, 2));
}

/// A server that never answers, and says when each client has gone.
fn silent_server() -> (Server, mpsc::Receiver<()>) {
    let (gone, departures) = mpsc::channel();
    let server = Server::start(move |mut peer| {
        peer.request();
        peer.wait_for_end();
        let _ = gone.send(());
    });
    (server, departures)
}

#[test]
fn an_answer_that_never_comes_is_a_timeout_and_its_connection_is_closed() {
    let (server, departures) = silent_server();
    let outcome =
        run(&server, Plan { timeout: Duration::from_millis(20), limit: Limit::Requests(4), ..plan() });
    assert_eq!(outcome.failures(), Failures { timeout: 4, ..Failures::default() });
    (0..4).for_each(|_| departures.recv_timeout(MINUTE).expect("the connection is closed"));
}

#[test]
fn clients_leave_as_planned() {
    let (server, departures) = silent_server();
    let mix = vec![Kind { leave_after: Some(Duration::from_millis(20)), ..kind("all") }];
    let outcome = run(&server, Plan { mix, limit: Limit::Requests(4), ..plan() });
    assert_eq!(outcome.failures(), Failures { left: 4, ..Failures::default() });
    assert_eq!((outcome.misses(MINUTE), outcome.failed()), (0, 4));
    (0..4).for_each(|_| departures.recv_timeout(MINUTE).expect("the connection is closed"));
}

#[test]
fn requests_that_wait_for_a_connection_time_out_too() {
    let (server, _departures) = silent_server();
    let pace = Pace::Open { rate: 1000.0, most_connections: 1 };
    let outcome =
        run(&server, Plan { pace, timeout: Duration::from_millis(50), limit: Limit::Requests(10), ..plan() });
    assert_eq!(outcome.failures(), Failures { timeout: 10, ..Failures::default() });
    assert_eq!(outcome.most_connections, 1);
}

#[test]
fn bodies_are_sent_whole() {
    const LENGTH: u64 = 3_000_001;
    let server = Server::start(|mut peer| {
        while peer.request().is_some_and(|head| head.contains("Content-Length: 3000001\r\n"))
            && peer.body(LENGTH).is_some()
        {
            peer.send(OK.as_bytes());
        }
    });
    let mix = vec![Kind { method: "POST".to_owned(), body_bytes: LENGTH, ..kind("all") }];
    let outcome = run(&server, Plan { mix, limit: Limit::Requests(6), ..plan() });
    assert_eq!((outcome.right(), server.accepted()), (6, 2), "{outcome:?}");
}

#[test]
fn an_answer_before_the_end_of_the_body_counts_and_ends_the_connection() {
    let server = Server::start(|mut peer| {
        peer.request();
        peer.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
        peer.wait_for_end();
    });
    let mix = vec![Kind { method: "PUT".to_owned(), body_bytes: 1 << 40, ..kind("all") }];
    let outcome = run(&server, Plan { mix, limit: Limit::Requests(4), ..plan() });
    assert_eq!(outcome.kinds["all"].statuses[&413].count(), 4, "{outcome:?}");
    assert_eq!(server.accepted(), 4);
}

#[test]
fn large_answers_are_checked_to_the_last_byte() {
    let body = "x".repeat(3_000_000);
    let server =
        Server::answering(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    let last = format!("{}y", &body[1..]);
    for (expect, right) in [(body, 6), (last, 0)] {
        let mix = vec![Kind { expect: Expect::Body(expect), ..kind("all") }];
        assert_eq!(run(&server, Plan { mix, limit: Limit::Requests(6), ..plan() }).right(), right);
    }
}

#[test]
fn equal_seeds_ask_for_equal_targets() {
    let asked = |seed| {
        let targets = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&targets);
        let server = Server::start(move |mut peer| {
            while let Some(head) = peer.request() {
                seen.lock().expect("no panic").push(head.lines().next().expect("a line").to_owned());
                peer.send(OK.as_bytes());
            }
        });
        let mix = vec![Kind { target: "/{1-1000}".to_owned(), ..kind("all") }];
        run(&server, Plan { mix, seed, pace: Pace::Closed { users: 1 }, ..plan() });
        let targets = targets.lock().expect("no panic");
        targets.clone()
    };
    let first = asked(1);
    assert_eq!((first.len(), &first), (20, &asked(1)));
    assert_ne!(first, asked(2));
}

#[test]
fn kinds_are_sent_in_their_windows() {
    let server = Server::answering(OK);
    let windowed = |name, phase| {
        let window = Some(Window { period: Duration::from_millis(200), of: 2, phase });
        Kind { window, ..kind(name) }
    };
    let mix = vec![windowed("even", 0), windowed("odd", 1)];
    // Scheduled moments, so that the numbers are exact: every 20 ms.
    let pace = Pace::Open { rate: 50.0, most_connections: 100 };
    let outcome =
        run(&server, Plan { mix, pace, limit: Limit::Duration(Duration::from_millis(600)), ..plan() });
    let right = |kind: &KindOutcome| kind.right.count();
    assert_eq!((right(&outcome.kinds["even"]), right(&outcome.kinds["odd"])), (20, 10));
}

#[test]
fn users_follow_the_ramp() {
    let server = Server::answering(OK);
    let stage = |milliseconds, users| Stage { duration: Duration::from_millis(milliseconds), users };
    let pace = Pace::Ramp { stages: vec![stage(400, 20), stage(1000, 20), stage(400, 0)] };
    let outcome = run(&server, Plan { pace, limit: Limit::Stages, ..plan() });
    let users: Vec<u32> = outcome.series.iter().map(|tick| tick.users).collect();
    let top = users.iter().position(|users| *users == 20).expect("the ramp has a top");
    assert!(users[..=top].is_sorted() && users[top..].is_sorted_by(|a, b| a >= b), "{users:?}");
    assert_eq!((outcome.most_connections, outcome.failed()), (20, 0));
    let in_ticks: u64 = outcome.series.iter().map(|tick| u64::from(tick.right)).sum();
    assert!(in_ticks <= outcome.right() && in_ticks > 0, "{in_ticks}");
}

/// A server that answers at once, but that from its hundredth request on stalls once, for this long, as a whole.
fn stalling_server(stall: Duration) -> Server {
    let (requests, gate) = (AtomicU32::new(0), Mutex::new(()));
    let stalled = AtomicBool::new(false);
    Server::start(move |mut peer| {
        while peer.request().is_some() {
            let open = gate.lock().expect("no panic");
            if requests.fetch_add(1, Ordering::Relaxed) == 100 && !stalled.swap(true, Ordering::Relaxed) {
                thread::sleep(stall);
            }
            drop(open);
            peer.send(OK.as_bytes());
        }
    })
}

#[test]
fn an_open_loop_sees_the_stall_in_every_request_that_was_due() {
    let server = stalling_server(Duration::from_millis(600));
    let pace = Pace::Open { rate: 200.0, most_connections: 10 };
    let outcome = run(&server, Plan { pace, limit: Limit::Duration(Duration::from_secs(2)), ..plan() });
    assert_eq!((outcome.right(), outcome.failed()), (400, 0));
    // Of the 600 ms those that were due in the first 300 took longer than 300: 60, however few the connections.
    let late = outcome.latencies().count_above(Duration::from_millis(300));
    assert!(late >= 58, "{late}");
}

#[test]
fn a_closed_loop_sees_the_stall_once_for_each_user() {
    let server = stalling_server(Duration::from_millis(1500));
    let outcome =
        run(&server, Plan { pace: Pace::Closed { users: 10 }, limit: Limit::Requests(1000), ..plan() });
    let late = outcome.latencies().count_above(Duration::from_millis(1000));
    assert!((1..=10).contains(&late), "{late}");
}

#[test]
fn arrivals_share_few_connections() {
    let server = Server::answering(OK);
    let pace = Pace::Open { rate: 100_000.0, most_connections: 3 };
    let outcome = run(&server, Plan { pace, limit: Limit::Requests(300), ..plan() });
    assert_eq!((outcome.right(), outcome.failed()), (300, 0));
    assert!(server.accepted() <= 3 && outcome.most_connections <= 3, "{outcome:?}");
}

#[test]
fn the_raw_log_has_a_line_for_each_request() {
    let server = Server::answering(OK);
    let file = tempfile::NamedTempFile::new().expect("a file");
    let plan = Plan { targets: vec![server.address], ..plan() };
    super::run(&plan, Some(file.path()), &Interrupt::default()).expect("it runs");
    let text = std::fs::read_to_string(file.path()).expect("readable");
    assert_eq!(text.lines().filter(|line| line.ends_with("\tall\t200")).count(), 20, "{text}");
}

#[test]
fn a_full_disk_ends_the_run() {
    let server = Server::answering(OK);
    let plan = Plan { targets: vec![server.address], ..plan() };
    let error =
        super::run(&plan, Some("/dev/full".as_ref()), &Interrupt::default()).expect_err("nothing fits");
    assert!(error.to_string().contains("/dev/full"), "{error}");
}

#[test]
fn all_targets_are_used_in_turn() {
    let hosts = Arc::new(Mutex::new(BTreeSet::new()));
    let servers: Vec<Server> = (0..3)
        .map(|index| {
            let hosts = Arc::clone(&hosts);
            Server::start(move |mut peer| {
                peer.request();
                hosts.lock().expect("no panic").insert(index);
                peer.send(OK_CLOSE.as_bytes());
            })
        })
        .collect();
    let targets = servers.iter().map(|server| server.address).collect();
    let plan = Plan { targets, connections: Connections::PerRequest, limit: Limit::Requests(6), ..plan() };
    assert_eq!(super::run(&plan, None, &Interrupt::default()).expect("it runs").right(), 6);
    assert_eq!(servers.iter().map(Server::accepted).collect::<Vec<_>>(), [2, 2, 2]);
    assert_eq!(hosts.lock().expect("no panic").len(), 3);
}

#[test]
fn only_this_machine_is_loaded() {
    let targets = vec![([192, 0, 2, 1], 80).into()];
    let error =
        super::run(&Plan { targets, ..plan() }, None, &Interrupt::default()).expect_err("not loopback");
    assert!(error.to_string().contains("192.0.2.1:80 is not a loopback address"), "{error}");
}
