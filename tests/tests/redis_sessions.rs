//! Sessions in Redis, of two servers: who is logged in at one is at the other too, whatever becomes of either.
#![forbid(unsafe_code)]

use regent_tests::{Redis, Response, Server, Setup, apps, in_parallel, process, until};
use rustix::process::Signal;
use std::path::Path;

/// Counts, slowly enough that two requests without a lock would get in each other's way.
const COUNTER: &str = "<?php
    if (!@session_start()) { http_response_code(503); exit('no session'); }
    $count = ($_SESSION['count'] ?? 0) + 1;
    usleep(3000);
    $_SESSION['count'] = $count;
    echo $count;";
/// Holds the session's lock until its server is gone.
const HOLDER: &str = "<?php session_start(); touch(__DIR__ . '/held'); file_put_contents(__DIR__ . '/held', 'held'); sleep(60);";

/// As docs/sessions.md has it, but for where things are and how long a lock outlives its holder.
fn instance(extension: &Path, redis: &Redis) -> Server {
    let password = Redis::PASSWORD.replace(' ', "%20");
    let options = format!(
        "num_threads 4\n\t\tmax_wait_time off\n\t\tphp_ini {{\n\t\t\textension {}\n\t\t\tsession.save_handler redis\n\t\t\t\
         session.save_path \"tcp://{}?auth={password}&timeout=20&read_timeout=20&persistent=1\"\n\t\t\t\
         redis.session.locking_enabled 1\n\t\t\tredis.session.lock_retries 3000\n\t\t\t\
         redis.session.lock_wait_time 10000\n\t\t\tredis.session.lock_expire 3\n\t\t}}",
        extension.display(),
        redis.address(),
    );
    let site = "php_server";
    Setup::new().file("index.php", COUNTER).file("hold.php", HOLDER).php_options(&options).site(site).start()
}

fn count(server: &Server, cookie: &str) -> Response {
    server.request("GET", "/").header("Cookie", cookie).send()
}

#[test]
fn sessions_in_redis_outlive_servers_locks_and_redis_itself() {
    let Some(extension) = apps::extension("redis") else { return };
    let setup = Setup::new();
    let mut redis = Redis::start(setup.directory());
    let (first, second) = (instance(&extension, &redis), instance(&extension, &redis));
    let servers = [&first, &second];
    let begun = first.get("/").expect(200);
    let cookie =
        begun.header("set-cookie").and_then(|cookie| cookie.split(';').next()).expect("a session begins");

    // Of eighty requests at once, at both servers, none is counted for another.
    let answers = in_parallel(8, |client| {
        (0..10).map(|round| count(servers[(client + round) % 2], cookie).expect(200)).collect::<Vec<_>>()
    });
    let mut counts: Vec<u32> =
        answers.iter().flatten().map(|answer| answer.text().parse().expect("a count")).collect();
    counts.sort_unstable();
    assert_eq!(counts, (2..=81).collect::<Vec<_>>());

    // A server is gone while it holds the lock, which ends by itself.
    let mut held = first.connect();
    held.send(format!("GET /hold.php HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n\r\n"));
    first.wait_for_file("held");
    let (server, engine) = (first.pid(), first.engine());
    first.signal(Signal::KILL);
    until("the server and its engine are gone", || {
        (!process::runs(server, "regent") && !process::runs(engine, "regent-php")).then_some(())
    });
    assert_eq!(count(&second, cookie).expect(200).text(), "82");

    // Redis is gone: scripts can tell. Then it is there again, with all sessions, and connections are made anew.
    redis.kill();
    assert_eq!(count(&second, cookie).expect(503).text(), "no session");
    redis.come_back();
    until("sessions are there again", || {
        let answer = count(&second, cookie);
        (answer.status == 200).then(|| assert_eq!(answer.text(), "83"))
    });
    assert!(redis.ask(&["keys", "*"]).contains("PHPREDIS_SESSION:"));
    second.stop();
}
