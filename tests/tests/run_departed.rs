//! `run_departed`: requests that run although their clients have left.
#![forbid(unsafe_code)]

use regent_tests::{Gate, STOP_AT_GATE, Server, Setup, until};

/// A thread, a page that holds it until the gate opens, and what clients do not wait for.
fn site(site: &str) -> (Server, Gate) {
    const CRON: &str = "<?php file_put_contents(__DIR__ . '/ran', $_SERVER['REQUEST_METHOD'] . file_get_contents('php://input') . \"\\n\", FILE_APPEND); \
        echo str_repeat('x', 100_000); flush(); echo 'more'; flush(); \
        file_put_contents(__DIR__ . '/ran', \"to its end\\n\", FILE_APPEND);";
    let setup = Setup::new()
        .php_options("num_threads 1\n\t\tmax_threads 1\n\t\tmax_wait_time off")
        .site(site)
        .admin("ADMIN")
        .file("held.php", format!("<?php {STOP_AT_GATE} echo 'held';"))
        .file("index.php", "<?php echo 'ok';")
        .file("cron.php", CRON);
    let gate = Gate::of(&setup);
    (setup.start(), gate)
}

const REQUESTS: [&str; 2] = [
    "GET /cron.php HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /cron.php HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n body",
];

/// Clients ask while the only thread is held, and leave.
fn ask_and_leave(server: &Server, gate: &Gate) {
    let mut held = server.ask("/held.php");
    let visitor = gate.next();
    let mut conns = Vec::new();
    for (number, request) in (1..).zip(REQUESTS) {
        let mut conn = server.connect();
        conn.send(request);
        server.admin().wait_for_queue("classic", number);
        conns.push(conn);
    }
    drop(conns);
    until("the server has seen them leave", || left(server).then_some(()));
    drop(visitor);
    assert_eq!(held.response().expect(200).text(), "held");
}

/// Whether no connections are left but that of the page that is held.
fn left(server: &Server) -> bool {
    server.admin().metric("regent_connections", &[("protocol", "h1")]) <= 1.0
}

#[test]
fn a_request_whose_client_had_left_while_all_threads_were_busy_never_ran() {
    let (server, gate) = site("run_departed /cron.php\n\tphp_server");
    ask_and_leave(&server, &gate);
    let lines = until("both have run", || {
        let lines = std::fs::read_to_string(server.root().join("ran")).ok()?;
        (lines.matches("to its end").count() == 2).then_some(lines)
    });
    assert_eq!(lines, "GET\nto its end\nPOST body\nto its end\n");
    assert_eq!(server.get("/").expect(200).text(), "ok");
    server.stop();
}

#[test]
fn others_are_taken_out_of_the_queue_as_ever() {
    let (server, gate) = site("run_departed /other.php\n\tphp_server");
    ask_and_leave(&server, &gate);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    assert!(!server.root().join("ran").exists());
    server.stop();
}
