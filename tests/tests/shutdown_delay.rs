//! `shutdown_delay`: a server that is told to stop goes on serving, and says that it is about to stop.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, until};
use rustix::process::Signal;
use std::time::Instant;

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
    let mut server = server("2s");
    assert_eq!(server.get("/health").expect(200).text(), "serves false");
    until("it is ready", || (server.admin().get("/regent/ready").status == 200).then_some(()));
    let told = Instant::now();
    server.signal(Signal::TERM);
    wait_for_notice(&server);
    let text = server.get("/health").expect(503).text().to_owned();
    assert!(text.starts_with("stops in 1.") || text.ends_with("ms"), "{text}");
    let said = server.admin().get("/regent/ready").expect(503).text().to_owned();
    assert!(said.contains("about to stop"), "{said}");
    server.admin().get("/regent/live").expect(200);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    assert!(server.wait().success());
    assert!(told.elapsed().as_secs() >= 2, "it has not waited");
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
    let mut server = server("1s");
    server.admin().request("POST", "/stop").send().expect(200);
    wait_for_notice(&server);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    assert!(server.wait().success());
}
