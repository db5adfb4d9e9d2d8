//! Who gets a thread, when, and who is turned away.
#![forbid(unsafe_code)]

use regent_tests::{Admin, Conn, Gate, Response, STOP_AT_GATE, Server, Setup, Visitor, until};
use std::collections::HashSet;

/// A site with the script `gated.php`, which stops at the gate, and one that does not.
fn site(php_options: &str, directives: &str) -> (Server, Gate) {
    // However slow the machine is, what waits here waits for what the test does, not for a time.
    let bound = if php_options.contains("max_wait_time") { "" } else { "\n\t\tmax_wait_time off" };
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options(&format!("{php_options}{bound}"))
        .site(&format!("{directives}\n\tphp_server"))
        .file("gated.php", format!("<?php {STOP_AT_GATE} echo 'done';"))
        .file("urgent.php", format!("<?php {STOP_AT_GATE} echo 'urgent';"))
        .file("index.php", "<?php echo 'ok';");
    let gate = Gate::of(&setup);
    let server = setup.start();
    // What comes while PHP boots has to wait, and what has to wait may be turned away.
    until("PHP serves", || (server.admin().get("/regent/ready").status == 200).then_some(()));
    (server, gate)
}

/// A request that is at the gate, and so holds a thread.
fn hold_a_thread(server: &Server, gate: &Gate) -> (Conn, Visitor) {
    let conn = server.ask("/gated.php?holds");
    let visitor = gate.next();
    assert_eq!(visitor.name, "holds");
    (conn, visitor)
}

/// Ends the wait of [`hold_a_thread`].
fn let_go((mut conn, visitor): (Conn, Visitor)) {
    drop(visitor);
    assert_eq!(conn.response().expect(200).text(), "done");
}

/// The next who comes to the gate is one who asks now: those who came before were not started.
fn nobody_else_has_started(server: &Server, gate: &Gate) {
    server.admin().wait_for_requests("classic", 0);
    let conn = server.ask("/gated.php?after");
    let visitor = gate.next();
    assert_eq!(visitor.name, "after");
    let_go((conn, visitor));
    assert!(gate.poll().is_none());
}

fn is_turned_away(answer: Response) {
    let answer = answer.expect(503);
    let seconds: u64 = answer.header("retry-after").expect("a time").parse().expect("seconds");
    assert!((1..=30).contains(&seconds), "{seconds}");
}

fn shed(admin: Admin, route: &str, reason: &str) -> f64 {
    admin.metric("regent_shed_total", &[("pool", "classic"), ("route", route), ("reason", reason)])
}

#[test]
fn more_than_max_queue_are_turned_away_on_connections_that_stay() {
    let (server, gate) = site("num_threads 1\n\t\tmax_queue 2", "");
    let admin = server.admin();
    let held = hold_a_thread(&server, &gate);
    let waiting: Vec<_> = (0..2).map(|_| server.ask("/")).collect();
    admin.wait_for_queue("classic", 2);
    let mut conn = server.connect();
    for _ in 0..3 {
        conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        is_turned_away(conn.response());
    }
    assert_eq!(shed(admin, "/", "queue_full"), 3.0);
    assert_eq!(admin.metric("regent_shed_total", &[]), 3.0, "and for no other reason");
    server.wait_for_log("as many requests wait as max_queue allows");
    let_go(held);
    for mut conn in waiting {
        assert_eq!(conn.response().expect(200).text(), "ok");
    }
    conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), "ok");
    server.stop();
}

#[test]
fn what_cannot_meet_its_deadline_is_turned_away_at_once() {
    // Longer than any test waits for an answer: it is the estimate that turns away, not the clock.
    let (server, gate) = site("num_threads 1\n\t\tdeadline 1h", "deadline /urgent.php 1m");
    let admin = server.admin();
    let held = hold_a_thread(&server, &gate);
    let waiting: Vec<_> = (0..100).map(|_| server.ask("/")).collect();
    admin.wait_for_queue("classic", 100);
    until("a hundred wait for a thread that has started nothing for a second", || {
        (admin.pool("classic")["oldest_wait_ms"].as_f64()? >= 1000.0).then_some(())
    });
    is_turned_away(server.get("/urgent.php?never"));
    assert_eq!(shed(admin, "/urgent.php", "deadline"), 1.0);
    assert_eq!(admin.metric("regent_shed_total", &[]), 1.0);
    let_go(held);
    for mut conn in waiting {
        assert_eq!(conn.response().expect(200).text(), "ok");
    }
    nobody_else_has_started(&server, &gate);
    server.stop();
}

#[test]
fn deadlines_that_are_missed_are_counted_by_route() {
    let (server, gate) = site("num_threads 2", "deadline /gated.php 3s\n\tdeadline /index.php 5m");
    let admin = server.admin();
    let counted = |name, route| admin.metric(name, &[("pool", "classic"), ("route", route)]);
    for _ in 0..2 {
        let held = hold_a_thread(&server, &gate);
        until("the deadline has passed", || {
            admin.busy_threads().iter().any(|thread| thread.running_milliseconds > 3000).then_some(())
        });
        let_go(held);
        server.get("/index.php").expect(200);
    }
    for (route, misses) in [("/gated.php", 2.0), ("/index.php", 0.0)] {
        until("the figures have come", || {
            (counted("regent_deadline_requests_total", route) == 2.0).then_some(())
        });
        assert_eq!(counted("regent_deadline_misses_total", route), misses);
        until("the ratio of the last minute has been renewed", || {
            (counted("regent_deadline_miss_ratio", route) == misses / 2.0).then_some(())
        });
    }
    server.stop();
}

#[test]
fn a_script_whose_client_has_left_ends_at_its_next_output_unless_it_ignores_that() {
    let script = |first: &str| {
        format!(
            "<?php {first} register_shutdown_function(function () {{ \
               file_put_contents(__DIR__ . '/ended' . $_SERVER['QUERY_STRING'], connection_status() . ($GLOBALS['went_on'] ?? '')); }}); \
             {STOP_AT_GATE} \
             for ($i = 0; $i < 5000 && connection_status() === 0; $i++) {{ echo str_repeat('x', 4096); ob_get_level() && ob_flush(); flush(); usleep(1000); }} \
             $went_on = ' and went on';"
        )
    };
    let setup = Setup::new()
        .admin("ADMIN")
        .file("ends.php", script(""))
        .file("goes-on.php", script("ignore_user_abort(true);"));
    let gate = Gate::of(&setup);
    let server = setup.start();
    for (path, name, expected) in [("/ends.php", "1", "1"), ("/goes-on.php", "2", "1 and went on")] {
        let conn = server.ask(&format!("{path}?{name}"));
        let visitor = gate.next();
        drop(conn);
        drop(visitor);
        assert_eq!(server.wait_for_file(&format!("ended{name}")), expected, "{path}");
    }
    server.stop();
}

/// Waits until so many clients are known to have left the queue.
fn wait_for_leavers(admin: Admin, route: &str, count: usize) {
    until(&format!("{count} clients have left"), || {
        (shed(admin, route, "client_gone") == count as f64).then_some(())
    });
}

/// Makes `/gated.php` a slow route: beside a fast one, it has a request that runs for long. Gives the request.
fn make_slow(server: &Server, gate: &Gate) -> (Conn, Visitor) {
    // Routes are listed when one of their requests has ended.
    let_go(hold_a_thread(server, gate));
    let held = run_for_long(server, gate);
    until("the route is slow", || {
        let statistics = server.admin().get("/regent/statistics").expect(200).json();
        let routes = statistics["routes"].as_array().expect("a list");
        let is_slow = |route: &serde_json::Value| route["route"] == "/gated.php" && !route["lane"].is_null();
        routes.iter().any(is_slow).then_some(())
    });
    held
}

fn run_for_long(server: &Server, gate: &Gate) -> (Conn, Visitor) {
    // So many that they are most requests of the last ten seconds even when those of the slow route wait for long.
    for _ in 0..100 {
        server.get("/").expect(200);
    }
    let held = hold_a_thread(server, gate);
    until("the request has run for far longer than is usual", || {
        server.admin().busy_threads().iter().any(|thread| thread.running_milliseconds > 300).then_some(())
    });
    held
}

#[test]
fn a_slow_route_leaves_threads_for_fast_ones() {
    let (server, gate) = site("num_threads 8", "");
    let admin = server.admin();
    let slow = make_slow(&server, &gate);
    let mut others: Vec<_> = (0..12).map(|i| server.ask(&format!("/gated.php?{i}"))).collect();
    // It has half of the threads in any case, and a quarter stays for the fast in any case.
    let mut visitors = gate.wait_for(3);
    for _ in 0..50 {
        assert_eq!(server.get("/").expect(200).text(), "ok");
    }
    visitors.extend(std::iter::from_fn(|| gate.poll()));
    let running = admin.busy_threads().iter().filter(|thread| thread.uri.starts_with("/gated.php")).count();
    assert_eq!(running, 1 + visitors.len());
    assert!(running <= 6, "{running} of 8 threads");
    assert_eq!(admin.pool("classic")["queued"], 0, "the others wait in the lane");
    let still_waiting = others.len() - visitors.len();
    drop(visitors);
    let_go(slow);
    (0..still_waiting).for_each(|_| drop(gate.next()));
    for conn in &mut others {
        assert_eq!(conn.response().expect(200).text(), "done");
    }
    server.stop();
}

#[test]
fn a_slow_route_leaves_threads_for_fast_ones_in_a_fixed_pool_that_was_made_smaller_by_hand() {
    let (server, gate) = site("num_threads 8\n\t\tmax_threads 8", "");
    server.admin().request("DELETE", "/regent/threads?count=4").send().expect(200);
    server.admin().wait_for_size("classic", 4);
    let slow = make_slow(&server, &gate);
    let mut others: Vec<_> = (0..12).map(|i| server.ask(&format!("/gated.php?{i}"))).collect();
    Conn::wait_until_all_read(&others);
    let mut visitors = gate.wait_for(1);
    // In lanes that were still made for eight threads the slow ones would have all four.
    for _ in 0..20 {
        assert_eq!(server.get("/").expect(200).text(), "ok");
    }
    visitors.extend(std::iter::from_fn(|| gate.poll()));
    let still_waiting = others.len() - visitors.len();
    drop(visitors);
    let_go(slow);
    (0..still_waiting).for_each(|_| drop(gate.next()));
    for conn in &mut others {
        assert_eq!(conn.response().expect(200).text(), "done");
    }
    server.stop();
}

#[test]
fn lane_off_lets_a_slow_route_have_all_threads() {
    let (server, gate) = site("num_threads 4", "lane /gated.php off");
    let slow = run_for_long(&server, &gate);
    let mut others: Vec<_> = (0..3).map(|i| server.ask(&format!("/gated.php?{i}"))).collect();
    let visitors = gate.wait_for(3);
    assert_eq!(server.admin().busy_threads().len(), 4);
    drop(visitors);
    let_go(slow);
    for conn in &mut others {
        conn.response().expect(200);
    }
    server.stop();
}

#[test]
fn a_thousand_waiting_requests_are_each_started_once() {
    let (server, gate) = site("num_threads 2", "");
    server.write("log.php", "<?php file_put_contents(__DIR__ . '/started', \"$_GET[id]\\n\", FILE_APPEND | LOCK_EX); echo $_GET['id'];");
    let held = [hold_a_thread(&server, &gate), hold_a_thread(&server, &gate)];
    let mut conns: Vec<_> = (0..1000).map(|id| server.ask(&format!("/log.php?id={id}"))).collect();
    server.admin().wait_for_queue("classic", 1000);
    // Every third client leaves.
    let mut id = 0;
    let mut left = HashSet::new();
    conns.retain(|_| {
        let stays = id % 3 != 0;
        if !stays {
            left.insert(id);
        }
        id += 1;
        stays
    });
    wait_for_leavers(server.admin(), "/log.php", left.len());
    held.into_iter().for_each(let_go);
    let stayed: Vec<usize> = (0..1000).filter(|id| !left.contains(id)).collect();
    for (conn, id) in conns.iter_mut().zip(&stayed) {
        assert_eq!(conn.response().expect(200).text(), id.to_string());
    }
    let text = std::fs::read_to_string(server.root().join("started")).expect("some have started");
    let mut started: Vec<usize> = text.lines().map(|line| line.parse().expect("a number")).collect();
    started.sort_unstable();
    assert_eq!(started, stayed);
    server.stop();
}

#[test]
fn clients_that_have_left_take_no_room_in_the_queue() {
    let (server, gate) = site("num_threads 1\n\t\tmax_queue 2", "");
    let admin = server.admin();
    let held = hold_a_thread(&server, &gate);
    let leaving = [server.ask("/"), server.ask("/")];
    admin.wait_for_queue("classic", 2);
    drop(leaving);
    wait_for_leavers(admin, "/", 2);
    let mut conn = server.ask("/");
    admin.wait_for_queue("classic", 1);
    let_go(held);
    assert_eq!(conn.response().expect(200).text(), "ok");
    server.stop();
}
