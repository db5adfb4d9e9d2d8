//! `server_timing`: clients are told where the time of a request went.
#![forbid(unsafe_code)]

use regent_tests::upstream::ok;
use regent_tests::{Gate, Response, STOP_AT_GATE, Setup, Upstream, until};
use std::collections::BTreeMap;
use std::time::Duration;

/// The members of the field that is the server's own, with their milliseconds or their description.
#[track_caller]
fn timing(response: &Response) -> BTreeMap<String, String> {
    let fields = response.header_all("server-timing");
    let own = fields.last().unwrap_or_else(|| panic!("no Server-Timing in {response:?}"));
    let member = |member: &str| {
        let (name, rest) = member.trim().split_once(';').expect("a parameter");
        let value = rest.strip_prefix("dur=").or(rest.strip_prefix("desc=")).expect("a time or a word");
        (name.to_owned(), value.to_owned())
    };
    own.split(',').map(member).collect()
}

fn names(timing: &BTreeMap<String, String>) -> Vec<&str> {
    timing.keys().map(String::as_str).collect()
}

fn milliseconds(timing: &BTreeMap<String, String>, name: &str) -> f64 {
    timing[name].parse().expect("a number")
}

#[test]
fn php_and_upstreams_and_the_cache_have_their_part() {
    let upstream = Upstream::answering(|_| {
        #[expect(clippy::disallowed_methods, reason = "the least that is measured; more does no harm")]
        std::thread::sleep(Duration::from_millis(30));
        ok("Server-Timing: db;dur=7\r\n", "hello")
    });
    let site = format!(
        "server_timing {{\n\t\tqueue_wait\n\t}}\n\tcache /cached.php\n\treverse_proxy /up/* {}\n\tphp_server",
        upstream.address()
    );
    let server = Setup::new()
        .site(&site)
        .file("slow.php", "<?php usleep(50000); echo 'slow';")
        .file("cached.php", "<?php header('Cache-Control: public, max-age=60'); echo 'kept';")
        .file("page.txt", "text")
        .start();
    let response = server.get("/slow.php").expect(200);
    let slow = timing(&response);
    assert_eq!(names(&slow), ["php", "queue", "total"]);
    assert!(milliseconds(&slow, "php") >= 50.0 && milliseconds(&slow, "total") >= 50.0, "{slow:?}");
    assert_eq!(response.header("x-queue-wait"), Some(slow["queue"].as_str()));

    let response = server.get("/up/x").expect(200);
    assert_eq!(response.header_all("server-timing")[0], "db;dur=7", "the application's own stays");
    assert_eq!(
        (names(&timing(&response)), response.header("x-queue-wait")),
        (vec!["total", "upstream"], None)
    );
    assert!(milliseconds(&timing(&response), "upstream") >= 30.0);

    server.get("/cached.php").expect(200);
    let response = server.get("/cached.php").expect(200);
    assert_eq!(names(&timing(&response)), ["cache", "total"]);
    assert_eq!(timing(&response)["cache"], "hit");
    assert_eq!(names(&timing(&server.get("/page.txt").expect(200))), ["total"]);
    server.stop();
}

#[test]
fn a_wait_for_a_thread_is_told() {
    let setup = Setup::new()
        .admin("ADMIN")
        .site("server_timing\n\tphp_server")
        .php_options("num_threads 1\n\t\tmax_threads 1");
    let gate = Gate::of(&setup);
    let server = setup.file("held.php", format!("<?php {STOP_AT_GATE} echo 'done';")).start();
    let mut first = server.ask("/held.php?first");
    let at_gate = gate.next();
    let mut second = server.ask("/held.php?second");
    second.wait_until_read();
    let waited = || server.admin().pool("classic")["oldest_wait_ms"].as_f64();
    until("it has waited for a while", || waited().filter(|milliseconds| *milliseconds >= 60.0));
    drop(at_gate);
    first.response().expect(200);
    drop(gate.next());
    let second = timing(&second.response().expect(200));
    assert!(milliseconds(&second, "queue") >= 50.0, "{second:?}");
    assert!(milliseconds(&second, "total") >= milliseconds(&second, "queue"), "{second:?}");
    server.stop();
}

#[test]
fn the_head_of_a_streamed_response_says_what_is_known_when_it_leaves() {
    let setup = Setup::new().site("server_timing\n\tphp_server");
    let gate = Gate::of(&setup);
    let script = format!("<?php usleep(30000); echo 'one'; flush(); {STOP_AT_GATE} echo 'two';");
    let server = setup.file("streamed.php", script).start();
    let mut client = server.ask("/streamed.php");
    let at_gate = gate.next();
    let head = client.head().expect("a head").expect("a response");
    let times = timing(&head);
    assert_eq!(names(&times), ["php", "queue", "total"]);
    assert!(milliseconds(&times, "php") >= 30.0, "{times:?}");
    drop(at_gate);
    assert_eq!(client.rest_of(head).expect("the rest").text(), "onetwo");
    server.stop();
}

#[test]
fn nobody_is_told_unasked() {
    let server = Setup::new()
        .site("@staff header X-Staff yes\n\tserver_timing @staff\n\tphp_server")
        .file("index.php", "<?php echo 'ok';")
        .start();
    assert_eq!(server.get("/").expect(200).header("server-timing"), None);
    assert!(
        server
            .request("GET", "/")
            .header("X-Staff", "yes")
            .send()
            .expect(200)
            .header("server-timing")
            .is_some()
    );
    server.stop();
}
