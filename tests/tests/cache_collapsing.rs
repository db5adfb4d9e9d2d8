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

#[test]
fn those_who_waited_for_a_private_page_each_get_their_own() {
    let setup = Setup::new().php_options("num_threads 8\nmax_wait_time off").file(
        "page.php",
        format!("<?php {STOP_AT_GATE} header('Cache-Control: private'); echo $_SERVER['HTTP_X_ME'];"),
    );
    let gate = Gate::of(&setup);
    let server = started(setup, "10m");
    let ask = |me: usize| {
        let mut client = server.connect();
        client.send(format!("GET /page.php HTTP/1.1\r\nHost: x\r\nX-Me: {me}\r\n\r\n"));
        client.wait_until_read();
        client
    };
    let mut clients: Vec<_> = (0..8).map(ask).collect();
    let first = gate.next();
    assert!(gate.poll().is_none(), "all others wait for it");
    drop(first);
    drop(gate.wait_for(7));
    for (me, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.response().expect(200).text(), me.to_string());
    }
    let mut two: Vec<_> = (0..2).map(ask).collect();
    drop(gate.wait_for(2));
    two.iter_mut().for_each(|client| drop(client.response().expect(200)));
    server.stop();
}

#[test]
fn a_fetch_goes_on_when_the_client_leaves_that_asked() {
    let setup = Setup::new()
        .file("page.php", format!("<?php {STOP_AT_GATE} header('Cache-Control: max-age=60'); echo 'page';"));
    let gate = Gate::of(&setup);
    let server = started(setup, "10m");
    let leader = server.ask("/page.php");
    let running = gate.next();
    let mut follower = server.ask("/page.php");
    follower.wait_until_read();
    drop(leader);
    // The server has noticed when it answers something else on both its I/O threads.
    (0..20).for_each(|_| drop(server.get("/is-it-ready.txt")));
    drop(running);
    let response = follower.response().expect(200);
    assert_eq!(response.text(), "page");
    assert!(is_hit(&response), "{response:?}");
    assert!(gate.poll().is_none(), "a second run");
    server.stop();
}

#[test]
fn a_wait_for_another_has_an_end() {
    let setup = Setup::new()
        .file("page.php", format!("<?php {STOP_AT_GATE} header('Cache-Control: max-age=60'); echo 'page';"));
    let gate = Gate::of(&setup);
    let server = started(setup, "20ms");
    let mut clients = [server.ask("/page.php"), server.ask("/page.php")];
    let both = gate.wait_for(2);
    drop(both);
    clients.iter_mut().for_each(|client| assert_eq!(client.response().expect(200).text(), "page"));
    server.stop();
}
