//! What the access log, the metrics and the admin API say of requests.

use regent_rig::{LogReader, Rig, Setup, until};
use serde_json::Value;

/// A site whose access log goes to the test.
fn logged(site: &str) -> (Setup, LogReader) {
    let log = LogReader::new();
    let site = format!("log {{\n\t\toutput net {}\n\t}}\n\t{site}", log.address());
    (Setup::new().site(&site), log)
}

fn counted(rig: &Rig, name: &str, labels: &[(&str, &str)], value: f64) {
    until(&format!("{name} is {value}"), || (rig.admin().metric(name, labels) == value).then_some(()));
}

#[test]
fn the_access_log_has_a_line_of_each_request() {
    let (setup, mut log) = logged("php_server");
    let rig = setup.start();
    let mut client = rig.send(
        "POST /index.php?a=1 HTTP/1.1\r\nHost: example.com\r\nUser-Agent: rig\r\nContent-Length: 4\r\n\r\nbody",
    );
    rig.call().answer_with(201, &[("X-Own", "yes")], "created");
    client.response().expect(201);
    let line = log.next_line();
    let request = &line["request"];
    assert_eq!((&line["status"], &line["size"], &line["bytes_read"]), (&201.into(), &7.into(), &4.into()));
    assert_eq!(request["method"], "POST");
    assert_eq!(request["uri"], "/index.php?a=1");
    assert_eq!(request["host"], "example.com");
    assert_eq!(request["proto"], "HTTP/1.1");
    assert_eq!(request["remote_ip"], "127.0.0.1");
    assert_eq!(request["remote_port"], client.local_address().port().to_string());
    assert_eq!(request["headers"]["User-Agent"][0], "rig");
    assert_eq!(line["resp_headers"]["X-Own"][0], "yes");
    assert!(line["duration"].as_f64().is_some_and(|seconds| seconds > 0.0), "{line}");
}

#[test]
fn the_access_log_says_what_became_of_requests_that_no_script_has_answered() {
    let (setup, mut log) = logged("php_server");
    let rig = setup.start();
    let mut client = rig.ask("/?dies");
    rig.call().crash();
    client.response().expect(502);
    let line = log.next_line();
    assert_eq!((&line["status"], &line["request"]["uri"]), (&502.into(), &Value::from("/?dies")));
}

#[test]
fn the_access_log_says_what_was_run_again() {
    let (setup, mut log) = logged("php_server");
    let rig = setup.php("num_threads 1\n\t\tmax_threads 1\n\t\tmax_wait_time off\n\t\tretry").start();
    let mut client = rig.ask("/");
    rig.call().kill_process();
    rig.answer("again");
    client.response().expect(200);
    assert_eq!(log.next_line()["retried"], true);
    client.send(regent_rig::get("/"));
    rig.answer("once");
    client.response().expect(200);
    assert_eq!(log.next_line().get("retried"), None);
}

#[test]
fn a_line_of_the_access_log_comes_when_the_last_byte_has_left() {
    let (setup, mut log) = logged("php_server");
    let rig = setup.threads(2).start();
    let mut streamed = rig.ask("/?streamed");
    let mut call = rig.call();
    call.head(200, &[]).body("begun").flush();
    streamed.read_until("begun");
    let mut other = rig.ask("/?other");
    rig.answer("");
    other.response().expect(200);
    assert_eq!(log.next_line()["request"]["uri"], "/?other");
    call.body(" and ended");
    call.end();
    let line = log.next_line();
    assert_eq!((&line["request"]["uri"], &line["size"]), (&Value::from("/?streamed"), &15.into()));
}

#[test]
fn names_and_passwords_of_clients_are_not_logged() {
    let (setup, mut log) = logged("php_server");
    let rig = setup.start();
    let mut client =
        rig.send("GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic c2VjcmV0\r\nCookie: id=secret\r\n\r\n");
    rig.call().answer_with(200, &[("Set-Cookie", "id=secret")], "");
    client.response().expect(200);
    let line = log.next_line();
    assert!(!line.to_string().contains("secret") && !line.to_string().contains("c2VjcmV0"), "{line}");
}

#[test]
fn requests_are_counted_by_route_and_class() {
    let rig = Setup::new().file("other.php", "").start();
    let mut client = rig.connect();
    for (target, status) in [("/", 200), ("/", 404), ("/other.php", 500), ("/", 200)] {
        client.send(regent_rig::get(target));
        rig.call().answer(status, "page");
        client.response().expect(status);
    }
    for (route, class, count) in [("/", "2xx", 2.0), ("/", "4xx", 1.0), ("/other.php", "5xx", 1.0)] {
        let labels = [("pool", "classic"), ("route", route), ("class", class)];
        counted(&rig, "regent_requests_total", &labels, count);
    }
    assert_eq!(rig.admin().metric("regent_http_requests_total", &[("protocol", "h1")]), 4.0);
    assert_eq!(rig.admin().metric("regent_queue_wait_seconds_count", &[("route", "/")]), 3.0);
    assert_eq!(rig.admin().metric("regent_execution_seconds_count", &[("route", "/")]), 3.0);
}

#[test]
fn what_an_engine_loses_is_counted() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    rig.call().end();
    client.response().expect(502);
    counted(&rig, "regent_lost_total", &[("route", "/")], 1.0);
}

#[test]
fn what_the_engine_ended_as_overdue_is_counted() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    rig.call().end_overdue();
    client.response().expect(504);
    counted(&rig, "regent_requests_total", &[("route", "/"), ("class", "5xx")], 1.0);
}

#[test]
fn the_admin_api_shows_what_each_thread_is_at() {
    let rig = Setup::new().threads(2).start();
    let _client = rig.ask("/index.php?busy");
    let call = rig.call();
    let busy = rig.admin().busy_threads();
    let [thread] = busy.as_slice() else { panic!("{busy:?}") };
    assert_eq!((thread.pool.as_str(), thread.method.as_str()), ("classic", "GET"));
    assert_eq!(thread.uri, "/index.php?busy");
    assert_eq!(thread.index, call.thread() as u64);
    drop(call);
    until("it is idle again", || rig.admin().busy_threads().is_empty().then_some(()));
}

#[test]
fn the_admin_api_shows_who_waits() {
    let rig = Setup::new().start();
    let _holder = rig.ask("/");
    let held = rig.call();
    let _waiting = [rig.ask("/?1"), rig.ask("/?2")];
    rig.wait_for_queue(2);
    assert_eq!(rig.admin().metric("regent_queue_length", &[("pool", "classic")]), 2.0);
    assert!(rig.admin().pool("classic")["oldest_wait_ms"].as_f64().is_some_and(|wait| wait >= 0.0));
    drop(held);
    rig.answer("");
    rig.answer("");
    rig.wait_for_queue(0);
}

#[test]
fn the_deaths_and_generations_of_engines_are_counted() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    rig.call().crash();
    client.response().expect(502);
    client.send(regent_rig::get("/"));
    rig.answer("");
    client.response().expect(200);
    assert_eq!(rig.admin().metric("regent_engine_deaths_total", &[]), 1.0);
    assert_eq!(rig.admin().metric("regent_generations_total", &[]), 2.0);
}

#[test]
fn a_thread_that_is_ordered_by_hand_takes_requests() {
    let rig = Setup::new()
        .php("num_threads 1\n\t\tmax_threads 2\n\t\tmax_wait_time off\n\t\tmax_idle_time 1h")
        .start();
    rig.admin().request("PUT", "/regent/threads?count=1").send().expect(200);
    rig.admin().wait_for_size("classic", 2);
    let _clients = [rig.ask("/?1"), rig.ask("/?2")];
    let calls = [rig.call(), rig.call()];
    assert_ne!(calls[0].thread(), calls[1].thread());
}
