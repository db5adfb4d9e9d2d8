//! Log files that are renamed while the server writes them, as logrotate does it.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, until};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

const ROTATIONS: usize = 4;

fn logging_server() -> Server {
    Setup::new()
        .global_options("log {\n\t\toutput file DIRECTORY/server.log\n\t}")
        .site("log {\n\t\toutput file DIRECTORY/access.log\n\t}\n\trespond /n/* ok\n\tphp_server")
        .start()
}

/// Renames both logs and tells the server, then waits until it has made new ones.
fn rotate(server: &Server, signal: Signal, number: usize) {
    for name in ["access.log", "server.log"] {
        let file = server.directory().join(name);
        fs::rename(&file, rotated(server, name, number)).expect("the log is there");
    }
    server.signal(signal);
    for name in ["access.log", "server.log"] {
        let file = server.directory().join(name);
        until(&format!("{name} is there again"), || file.exists().then_some(()));
    }
}

fn rotated(server: &Server, name: &str, number: usize) -> PathBuf {
    server.directory().join(format!("{name}.{number}"))
}

/// Asks for `/n/0`, `/n/1` … on one connection until it is told to stop; gives how many it asked for.
fn ask_until(server: &Server, enough: &AtomicBool) -> usize {
    let mut conn = server.connect();
    let mut count = 0;
    while !enough.load(Ordering::Relaxed) {
        conn.send(format!("GET /n/{count} HTTP/1.1\r\nHost: x\r\n\r\n"));
        conn.response().expect(200);
        count += 1;
    }
    count
}

/// The numbers of the requests in a log, in its order.
fn numbers(log: &str) -> Vec<usize> {
    let uri = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).expect("a whole line of JSON");
        line["request"]["uri"].as_str().expect("a request has a URI").to_owned()
    };
    log.lines().filter_map(|line| uri(line).strip_prefix("/n/")?.parse().ok()).collect()
}

#[test]
fn no_line_of_an_access_log_is_lost_or_doubled() {
    let mut server = logging_server();
    let enough = AtomicBool::new(false);
    let count = std::thread::scope(|scope| {
        let client = scope.spawn(|| ask_until(&server, &enough));
        for number in 1..=ROTATIONS {
            // Something for each file.
            let file = server.directory().join("access.log");
            until("there are lines", || {
                let log = fs::read_to_string(&file).ok()?;
                (log.matches("/n/").count() > 20).then_some(())
            });
            rotate(&server, if number % 2 == 0 { Signal::HUP } else { Signal::USR1 }, number);
        }
        enough.store(true, Ordering::Relaxed);
        client.join().expect("every request is answered")
    });
    // The last lines are written when the server ends.
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    let mut files: Vec<_> = (1..=ROTATIONS).map(|number| rotated(&server, "access.log", number)).collect();
    files.push(server.directory().join("access.log"));
    let found: Vec<_> =
        files.iter().flat_map(|file| numbers(&fs::read_to_string(file).expect("a log"))).collect();
    assert_eq!(found, (0..count).collect::<Vec<_>>());
}

#[test]
fn the_servers_own_log_is_opened_again_too() {
    let mut server = logging_server();
    rotate(&server, Signal::USR1, 1);
    let log = server.directory().join("server.log");
    until("the new log says why it is there", || {
        fs::read_to_string(&log).ok()?.contains("opening the log files again").then_some(())
    });
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    let old = fs::read_to_string(rotated(&server, "server.log", 1)).expect("it was renamed");
    assert!(old.contains("serving http://") && !old.contains("stopped"), "{old}");
    assert!(fs::read_to_string(log).expect("a log").contains("stopped"));
}

#[test]
fn without_files_a_hangup_changes_nothing() {
    let server = Setup::new().file("index.php", "<?php echo 'ok';").start();
    let engine = server.engine();
    server.signal(Signal::HUP);
    server.wait_for_log("opening the log files again");
    assert_eq!(server.get("/").expect(200).text(), "ok");
    assert_eq!(server.engine(), engine);
    server.stop();
}
