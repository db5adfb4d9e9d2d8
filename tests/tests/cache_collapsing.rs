//! `cache`: many who ask for the same page at once have PHP run once.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Gate, Response, STOP_AT_GATE, Server, Setup};

/// A site whose clients wait for each other's pages for so long.
fn started(setup: Setup, wait: &str) -> Server {
    setup.site(&format!("cache {{\nwait {wait}\n}}\nphp_server")).start()
}

fn is_hit(response: &Response) -> bool {
    response.header("cache-status").is_some_and(|status| status.contains("; hit"))
}

#[test]
fn a_stampede_on_a_cold_page_runs_php_once() {
    let setup = Setup::new().file(
        "page.php",
        format!(
            "<?php set_time_limit(0); ini_set('default_socket_timeout', 600); {STOP_AT_GATE} \
             header('Cache-Control: max-age=3600'); echo str_repeat('page', 20_000);"
        ),
    );
    let gate = Gate::of(&setup);
    let server = started(setup, "10m");
    const CLIENTS: usize = 500;
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.ask("/page.php")).collect();
    Conn::wait_until_all_read(&clients);
    let running = gate.next();
    assert!(gate.poll().is_none(), "a second run");
    drop(running);
    let mut kinds = [0, 0];
    for client in &mut clients {
        let response = client.response().expect(200);
        assert_eq!(response.text().len(), 80_000);
        kinds[usize::from(is_hit(&response))] += 1;
    }
    assert_eq!(kinds, [1, CLIENTS - 1]);
    assert!(gate.poll().is_none(), "a second run");
    server.stop();
}
