//! `shutdown_delay`: a server that is told to stop goes on serving, and says that it is about to stop.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, until};
use rustix::process::Signal;
use std::time::{Duration, Instant};

const SITE: &str = "@stopping vars {http.shutting_down} true\n\thandle /health {\n\t\trespond @stopping \"stops in {http.time_until_shutdown}\" 503\n\t\trespond \"serves {http.shutting_down}\" 200\n\t}\n\tphp_server";

fn server(delay: &str) -> Server {
    let server = Setup::new()
        .admin("ADMIN")
        .global_options(&format!("shutdown_delay {delay}"))
        .site(SITE)
        .file("index.php", "<?php echo 'ok';")
        .start();
    // Told to stop before that, it does not wait.
    server.wait_for_log("serving http://");
    server
}

fn wait_for_notice(server: &Server) {
    until("it says that it is about to stop", || (server.get("/health").status == 503).then_some(()));
}

#[test]
fn it_goes_on_serving_and_says_that_it_is_about_to_stop() {
    let mut server = server("1h");
    assert_eq!(server.get("/health").expect(200).text(), "serves false");
    until("it is ready", || (server.admin().get("/regent/ready").status == 200).then_some(()));
    server.signal(Signal::TERM);
    wait_for_notice(&server);
    let text = server.get("/health").expect(503).text().to_owned();
    assert!(text.starts_with("stops in 35") && text.ends_with('s'), "{text}");
    let said = server.admin().get("/regent/ready").expect(503).text().to_owned();
    assert!(said.contains("about to stop"), "{said}");
    server.admin().get("/regent/live").expect(200);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    server.signal(Signal::TERM);
    server.wait();
}

#[test]
fn it_stops_by_itself_after_the_delay() {
    let mut by_signal = server("2s");
    let told = Instant::now();
    by_signal.signal(Signal::TERM);
    assert!(by_signal.wait().success());
    #[expect(
        clippy::disallowed_methods,
        reason = "the least that the delay takes, which no busy machine shortens"
    )]
    let waited = told.elapsed();
    assert!(waited >= Duration::from_secs(2), "it has waited for {waited:?}");
    let mut by_admin = server("1s");
    by_admin.admin().request("POST", "/stop").send().expect(200);
    assert!(by_admin.wait().success());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut server = server("10m");
    server.signal(Signal::TERM);
    wait_for_notice(&server);
    server.signal(Signal::TERM);
    server.wait();
    server.wait_for_log("stopped at once");
}

#[test]
fn the_admin_api_s_stop_waits_too() {
    let mut server = server("1h");
    server.admin().request("POST", "/stop").send().expect(200);
    wait_for_notice(&server);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    server.signal(Signal::TERM);
    server.wait();
}
