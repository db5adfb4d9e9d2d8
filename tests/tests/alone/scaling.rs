//! Pools that grow when requests wait and shrink when nobody does.
#![forbid(unsafe_code)]

use regent_tests::process::{children, signal, thread_count};
use regent_tests::{Admin, Conn, Gate, STOP_AT_GATE, Server, Setup, in_parallel, php, until};
use rustix::process::Signal;
use std::collections::HashSet;
use std::thread::available_parallelism;

/// A site with the script `gated.php`, which stops at the gate, and one that does not.
fn site(php_options: &str) -> (Server, Gate) {
    let setup = Setup::new()
        .admin("ADMIN")
        // However slow the machine is, requests wait for what the test does, not for a time.
        .php_options(&format!("max_wait_time off\n\t\t{php_options}"))
        .file("gated.php", format!("<?php {STOP_AT_GATE} echo 'done';"))
        .file("index.php", "<?php echo 'ok';");
    let gate = Gate::of(&setup);
    (setup.start(), gate)
}

/// Requests that stop at the gate, named by their numbers.
fn go_to_gate(server: &Server, count: usize) -> Vec<Conn> {
    (0..count).map(|number| server.ask(&format!("/gated.php?{number}"))).collect()
}

/// The same, each after the one before has arrived.
fn go_to_gate_in_order(server: &Server, count: usize) -> Vec<Conn> {
    let ask = |number| {
        let conn = server.ask(&format!("/gated.php?{number}"));
        server.admin().wait_for_requests("classic", number as u64 + 1);
        conn
    };
    (0..count).map(ask).collect()
}

fn all_are_answered(conns: Vec<Conn>) {
    for mut conn in conns {
        assert_eq!(conn.response().expect(200).text(), "done");
    }
}

/// Threads of the system that an engine has, or processes.
fn php_threads(engine: u32) -> usize {
    if php::is_in_processes() {
        children(engine).into_iter().map(|zygote| children(zygote).len()).sum()
    } else {
        thread_count(engine)
    }
}

/// Numbers of the threads that are at a request.
fn busy(admin: Admin) -> HashSet<u64> {
    admin.busy_threads().iter().map(|thread| thread.index).collect()
}

/// The largest size that a pool ever had, by its remembered changes.
fn largest_size(admin: Admin, pool: &str) -> u64 {
    let events = admin.scale_events();
    let sizes = events.iter().filter(|event| event["pool"] == pool).map(|event| event["to"].as_u64());
    sizes.map(|size| size.expect("a number")).chain([admin.size(pool)]).max().expect("not empty")
}

fn cores() -> u64 {
    available_parallelism().map_or(1, usize::from) as u64
}

#[test]
fn blocked_requests_all_run_at_the_same_time_and_then_the_threads_end() {
    const REQUESTS: usize = 24;
    let (server, gate) = site("num_threads 2\n\t\tmax_threads 40\n\t\tmax_idle_time 200ms");
    let admin = server.admin();
    admin.wait_for_size("classic", 2);
    let engine = server.engine();
    let threads_before = php_threads(engine);

    let conns = go_to_gate(&server, REQUESTS);
    let visitors = gate.wait_for(REQUESTS);
    assert_eq!(busy(admin).len(), REQUESTS);
    assert!(php_threads(engine) >= threads_before + REQUESTS - 2);
    drop(visitors);
    all_are_answered(conns);

    admin.wait_for_size("classic", 2);
    until("the threads have ended for the system too", || {
        (php_threads(engine) <= threads_before).then_some(())
    });
    assert_eq!(server.engine(), engine);
    assert_eq!(server.get("/").expect(200).text(), "ok");
    server.stop();
}

#[test]
fn changes_are_told_with_their_reason() {
    let (server, gate) = site("num_threads 2\n\t\tmax_threads 12\n\t\tmax_idle_time 200ms");
    let admin = server.admin();
    for direction in ["up", "down"] {
        let series = [("pool", "classic"), ("direction", direction)];
        assert_eq!(admin.metric("regent_scale_events_total", &series), 0.0);
    }
    let conns = go_to_gate(&server, 8);
    drop(gate.wait_for(8));
    all_are_answered(conns);
    admin.wait_for_size("classic", 2);

    let events = admin.scale_events();
    let (first, last) = (events.last().expect("it has grown"), &events[0]);
    assert_eq!((&first["pool"], &first["from"]), (&"classic".into(), &2.into()), "{first}");
    assert!(first["to"].as_u64() > first["from"].as_u64(), "{first}");
    let reason = first["reason"].as_str().expect("a sentence");
    assert!(reason.starts_with("queue head waited ") && reason.ends_with(" % blocked"), "{reason}");
    assert_eq!(last["to"], 2, "{last}");
    assert!(last["reason"].as_str().expect("a sentence").contains("not needed for 200ms"), "{last}");
    for event in &events {
        server.wait_for_log(&format!(
            "{}: {} → {}",
            event["reason"].as_str().unwrap(),
            event["from"],
            event["to"]
        ));
    }
    for direction in ["up", "down"] {
        let is_meant = |event: &&serde_json::Value| {
            (event["to"].as_u64() > event["from"].as_u64()) == (direction == "up")
        };
        let series = [("pool", "classic"), ("direction", direction)];
        let counted = admin.metric("regent_scale_events_total", &series);
        assert_eq!(counted, events.iter().filter(is_meant).count() as f64, "{direction}: {events:?}");
    }
    assert_eq!(admin.metric("regent_threads", &[("pool", "classic")]), 2.0);
    assert_eq!(admin.metric("frankenphp_total_threads", &[]), 2.0);
    server.stop();
}

#[test]
fn a_pool_stays_within_max_threads_and_the_rest_waits_in_order() {
    const REQUESTS: usize = 12;
    let (server, gate) = site("num_threads 1\n\t\tmax_threads 4");
    let admin = server.admin();
    let conns = go_to_gate_in_order(&server, REQUESTS);
    let mut visitors = gate.wait_for(4);
    // The first four run at the same time: who of them comes to the gate first is up to the kernel.
    let first: HashSet<String> = visitors.iter().map(|visitor| visitor.name.clone()).collect();
    assert_eq!(first, (0..4).map(|number| number.to_string()).collect());
    for number in 4..REQUESTS {
        drop(visitors.remove(0));
        visitors.push(gate.next());
        assert_eq!(visitors.last().expect("just pushed").name, number.to_string());
        assert_eq!(admin.size("classic"), 4);
    }
    drop(visitors);
    all_are_answered(conns);
    assert_eq!(largest_size(admin, "classic"), 4);
    server.stop();
}

#[test]
fn a_worker_has_bounds_of_its_own() {
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options(
            "num_threads 3\n\t\tmax_threads 20\n\t\tmax_idle_time 200ms\n\t\tworker {\n\t\t\tfile ROOT/index.php\n\
             \t\t\tname app\n\t\t\tnum 1\n\t\t\tmax_threads 5\n\t\t}",
        )
        .file(
            "index.php",
            format!("<?php while (frankenphp_handle_request(function () {{ {STOP_AT_GATE} echo 'done'; }})) {{ }}"),
        );
    let gate = Gate::of(&setup);
    let server = setup.start();
    let admin = server.admin();
    let conns = go_to_gate(&server, 8);
    let visitors = gate.wait_for(5);
    admin.wait_for_queue("app", 3);
    assert_eq!(busy(admin).len(), 5);
    assert!(admin.busy_threads().iter().all(|thread| thread.pool == "app"));
    assert_eq!((admin.size("app"), admin.size("classic")), (5, 2));
    drop(visitors);
    drop(gate.wait_for(3));
    all_are_answered(conns);
    admin.wait_for_size("app", 1);
    assert_eq!(largest_size(admin, "app"), 5);
    assert_eq!(largest_size(admin, "classic"), 2);
    server.stop();
}

#[test]
fn pools_share_what_there_is_in_all() {
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options("num_threads 3\n\t\tmax_threads 6\n\t\tworker ROOT/worker.php 1")
        .site("php_server {\n\t\ttry_files {path} worker.php\n\t}")
        .file("gated.php", format!("<?php {STOP_AT_GATE} echo 'done';"))
        .file(
            "worker.php",
            format!(
                "<?php while (frankenphp_handle_request(function () {{ {STOP_AT_GATE} echo 'done'; }})) {{ }}"
            ),
        );
    let gate = Gate::of(&setup);
    let server = setup.start();
    let admin = server.admin();
    let classic = go_to_gate(&server, 10);
    let first = gate.wait_for(5);
    let in_worker: Vec<_> = (0..4).map(|_| server.ask("/worker.php?w")).collect();
    let second = gate.next();
    assert_eq!(second.name, "w");
    until("three wait for the worker's only thread", || {
        (admin.get("/regent/queue").json()["queued"] == 5 + 3).then_some(())
    });
    assert_eq!(admin.threads().len(), 6);
    drop((first, second));
    (0..8).for_each(|_| drop(gate.next()));
    all_are_answered(classic);
    all_are_answered(in_worker);
    server.stop();
}

#[test]
fn computation_gets_no_more_threads_than_the_cpu_feeds() {
    // 40 clients that wait would get 40 threads; what computes has to share the CPU whatever the number.
    let (server, _gate) = site("num_threads 2\n\t\tmax_threads 64");
    server
        .write("compute.php", "<?php for ($i = 0; $i < 300000; $i++) { $x = crc32((string) $i); } echo $x;");
    let answers = in_parallel(40, |_| (0..5).map(|_| server.get("/compute.php").status).collect::<Vec<_>>());
    assert!(answers.iter().flatten().all(|status| *status == 200), "{answers:?}");
    let largest = largest_size(server.admin(), "classic");
    assert!(largest <= cores() + 8, "{largest} threads for {} cores", cores());
    server.stop();
}

#[test]
fn num_threads_alone_is_a_fixed_size() {
    let (server, gate) = site("num_threads 3");
    let admin = server.admin();
    let conns = go_to_gate(&server, 8);
    let mut visitors = gate.wait_for(3);
    admin.wait_for_queue("classic", 5);
    for _ in 3..8 {
        drop(visitors.remove(0));
        visitors.push(gate.next());
        assert_eq!(busy(admin).len(), 3);
    }
    drop(visitors);
    all_are_answered(conns);
    assert_eq!(admin.threads().len(), 3);
    assert!(admin.scale_events().is_empty());
    server.stop();
}

#[test]
fn a_fresh_install_scales() {
    let (server, gate) = site("");
    let admin = server.admin();
    admin.wait_for_size("classic", 2 * cores());
    let many = 2 * cores() as usize + 10;
    let conns = go_to_gate(&server, many);
    let visitors = gate.wait_for(many);
    assert_eq!(busy(admin).len(), many);
    drop(visitors);
    all_are_answered(conns);
    server.stop();
}

#[test]
fn hung_requests_are_no_reason_not_to_answer_others() {
    let (server, gate) = site("num_threads 2\n\t\tmax_threads 10");
    let hung = go_to_gate(&server, 2);
    let visitors = gate.wait_for(2);
    for answer in in_parallel(20, |_| server.get("/")) {
        assert_eq!(answer.expect(200).text(), "ok");
    }
    assert_eq!(server.admin().busy_threads().iter().filter(|thread| thread.uri != "/").count(), 2);
    drop(visitors);
    all_are_answered(hung);
    server.stop();
}

#[test]
fn an_engine_that_is_killed_comes_back_as_large_as_it_was() {
    const GROWN: usize = 12;
    // No more than that, or it grows on for a reserve while it is looked at.
    let (server, gate) = site("num_threads 2\n\t\tmax_threads 12\n\t\tmax_idle_time 10m");
    let admin = server.admin();
    let conns = go_to_gate(&server, GROWN);
    let visitors = gate.wait_for(GROWN);
    let size = admin.size("classic");
    let growth = || admin.metric("regent_scale_events_total", &[("direction", "up")]);
    let before = growth();
    let engine = server.engine();
    assert!(signal(engine, Signal::KILL));
    for mut conn in conns {
        conn.response().expect(502);
    }
    drop(visitors);
    until("there is another engine", || server.engines().iter().any(|pid| *pid != engine).then_some(()));
    admin.wait_for_size("classic", size);
    let conns = go_to_gate(&server, GROWN);
    drop(gate.wait_for(GROWN));
    all_are_answered(conns);
    assert_eq!(growth(), before, "no thread had to be added");
    assert_eq!(admin.metric("regent_engine_deaths_total", &[]), 1.0);
    server.stop();
}

#[test]
fn opcache_reset_keeps_the_size() {
    const GROWN: usize = 9;
    // As above.
    let (server, gate) = site("num_threads 2\n\t\tmax_threads 9\n\t\tmax_idle_time 10m");
    server.write("reset.php", "<?php var_export(opcache_reset());");
    let admin = server.admin();
    let conns = go_to_gate(&server, GROWN);
    drop(gate.wait_for(GROWN));
    all_are_answered(conns);
    let (engine, size) = (server.engine(), admin.size("classic"));
    assert!(size >= GROWN as u64);
    assert_eq!(server.get("/reset.php").expect(200).text(), "true");
    until("another engine has taken over", || (server.engines().first()? != &engine).then_some(()));
    admin.wait_for_size("classic", size);
    let conns = go_to_gate(&server, GROWN);
    let visitors = gate.wait_for(GROWN);
    assert_eq!(busy(admin).len(), GROWN);
    drop(visitors);
    all_are_answered(conns);
    server.stop();
}

/// Requests of each thread after 100 of them, one after the other.
fn requests_by_thread(scheduling: &str) -> Vec<u64> {
    let (server, _gate) = site(&format!("num_threads 4\n\t\tscheduling {scheduling}"));
    let admin = server.admin();
    admin.wait_for_size("classic", 4);
    for _ in 0..100 {
        server.get("/").expect(200);
        // A thread is idle a moment after its answer is complete.
        until("all threads are idle", || admin.busy_threads().is_empty().then_some(()));
    }
    let requests = admin.threads().iter().map(|thread| thread.requests).collect();
    server.stop();
    requests
}

#[test]
fn spread_gives_work_to_every_thread() {
    let requests = requests_by_thread("spread");
    assert_eq!(requests.iter().sum::<u64>(), 100);
    assert!(requests.iter().all(|count| *count >= 10), "{requests:?}");
}

#[test]
fn pack_gives_work_to_as_few_threads_as_it_takes() {
    let requests = requests_by_thread("pack");
    assert_eq!(requests.iter().sum::<u64>(), 100);
    assert!(requests.iter().any(|count| *count >= 90), "{requests:?}");
}

/// A worker with room to grow whose script fails until the file `repaired` is there; each try is a byte in `boots`.
fn site_that_does_not_boot(options: &str) -> Server {
    let php_options = format!(
        "num_threads 2\n\t\tmax_threads 30\n\t\tworker {{\n\t\t\tfile ROOT/index.php\n\t\t\tname app\n\t\t\tnum 1\n\
         \t\t\t{options}\n\t\t}}"
    );
    Setup::new()
        .admin("ADMIN")
        .php_options(&php_options)
        .file("classic.php", "<?php echo 'classic';")
        .file(
            "index.php",
            "<?php file_put_contents(__DIR__ . '/boots', '1', FILE_APPEND); \
             if (!file_exists(__DIR__ . '/repaired')) { throw new RuntimeException('it does not boot'); } \
             while (frankenphp_handle_request(function () { echo 'repaired'; })) { }",
        )
        .start()
}

fn boots(server: &Server) -> u64 {
    std::fs::metadata(server.root().join("boots")).map_or(0, |file| file.len())
}

#[test]
fn a_worker_that_does_not_boot_is_not_multiplied() {
    let server = site_that_does_not_boot("max_consecutive_failures -1");
    let admin = server.admin();
    until("a boot has failed", || (boots(&server) >= 2).then_some(()));
    let conns: Vec<_> = (0..20).map(|_| server.ask("/")).collect();
    admin.wait_for_queue("app", 20);
    let before = boots(&server);
    until("it was tried again while requests wait", || (boots(&server) >= before + 3).then_some(()));
    assert_eq!(admin.size("app"), 1, "{:?}", admin.scale_events());
    server.write("repaired", "1");
    for mut conn in conns {
        assert_eq!(conn.response().expect(200).text(), "repaired");
    }
    server.stop();
}

#[test]
fn threads_do_not_come_and_go_while_nothing_happens() {
    let setup = Setup::new()
        .admin("ADMIN")
        .php_options("num_threads 3\n\t\tmax_threads 20\n\t\tmax_idle_time 200ms\n\t\tworker {\n\t\t\tfile ROOT/index.php\n\t\t\tname app\n\t\t\tnum 2\n\t\t}")
        .file("index.php", format!("<?php usleep(20000); while (frankenphp_handle_request(function () {{ {STOP_AT_GATE} }})) {{ }}"));
    let gate = Gate::of(&setup);
    let server = setup.start();
    let conns: Vec<_> = (0..8).map(|n| server.ask(&format!("/?{n}"))).collect();
    let visitors = gate.wait_for(8);
    let admin = server.admin();
    until("all are stuck", || (admin.pool("app")["threads"]["stuck"] == 8).then_some(()));
    let before = admin.scale_events().len();
    let reach = admin.threads().iter().map(|t| t.running_milliseconds).max().unwrap() + 2000;
    until("2 s", || admin.threads().iter().any(|t| t.running_milliseconds > reach).then_some(()));
    let after = admin.scale_events().len();
    assert!(
        after <= before + 8,
        "{before} {after} {:?}",
        admin.scale_events().iter().map(|e| e["reason"].to_string()).collect::<Vec<_>>()
    );
    drop((visitors, conns));
    server.stop();
}
