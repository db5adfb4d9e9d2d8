//! `departed_timeout`: requests that hang do not hold their threads for ever when their clients have left, though nobody has set
//! a `request_timeout`.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, until};

/// What a script waits for that nobody ever answers.
const WAITS: [(&str, &str); 4] = [
    ("sleep", "sleep(600);"),
    (
        "server",
        "$server = stream_socket_server('tcp://127.0.0.1:0'); \
         $client = stream_socket_client('tcp://' . stream_socket_get_name($server, false)); \
         stream_set_timeout($client, 600); while (true) { fgets($client); }",
    ),
    ("poll", "while (true) { usleep(50_000); }"),
    (
        "lock",
        "$mine = fopen(__FILE__, 'r'); flock($mine, LOCK_EX); $other = fopen(__FILE__, 'r'); flock($other, LOCK_EX);",
    ),
];

/// Two threads for classic requests and one for a worker, whose handler runs the file that the query names.
fn site(option: &str) -> Setup {
    const WORKER: &str = "<?php ignore_user_abort(true); \
        do { $more = frankenphp_handle_request(function () { include __DIR__ . '/' . $_GET['run']; }); } while ($more);";
    Setup::new()
        .php_options(&format!(
            "num_threads 3\n\t\tmax_threads 3\n\t\tmax_wait_time off\n\t\t{option}\n\t\tphp_ini max_execution_time 0\n\t\t\
             worker {{\n\t\t\tfile ROOT/worker.php\n\t\t\tnum 1\n\t\t\tmax_threads 1\n\t\t\tmax_consecutive_failures 1\n\t\t}}",
        ))
        .site("php_server {\n\t\tindex off\n\t\ttry_files {path} worker.php\n\t}")
        .admin("ADMIN")
        .file("worker.php", WORKER)
        .file("ok.php", "<?php echo 'ok';")
}

fn script(name: &str, waits: &str) -> String {
    script_that_begins(name, "", waits)
}

/// Its client leaves when it has begun.
fn script_that_begins(name: &str, begin: &str, waits: &str) -> String {
    format!("<?php {begin} file_put_contents(__DIR__ . '/{name}.' . getmypid() . uniqid(), '1'); {waits}")
}

fn started(server: &Server, name: &str) -> usize {
    let files = std::fs::read_dir(server.root()).expect("the site");
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    names.filter(|file| file.starts_with(&format!("{name}.")) && !file.ends_with(".php")).count()
}

/// So many clients ask for it, and leave when all of them are served.
fn ask_and_leave(server: &Server, target: &str, name: &str, clients: usize) {
    let conns: Vec<_> = (0..clients).map(|_| server.ask(target)).collect();
    until("all of them run", || (started(server, name) == clients).then_some(()));
    drop(conns);
}

#[test]
fn requests_that_hang_do_not_keep_a_fixed_pool_busy_for_ever_when_their_clients_have_left() {
    let mut setup = site("departed_timeout 400ms");
    for (name, waits) in WAITS {
        setup = setup.file(&format!("{name}.php"), script(name, waits));
    }
    let server = setup.start();
    for (number, (name, _)) in (1..).zip(WAITS) {
        ask_and_leave(&server, &format!("/{name}.php"), name, 2);
        assert_eq!(server.get("/ok.php").expect(200).text(), "ok", "{name}");
        let ended = || server.admin().metric("regent_departed_timeouts_total", &[("pool", "classic")]);
        until("both were ended", || (ended() == f64::from(2 * number)).then_some(()));
    }
    server.wait_for_log("a request whose client has left stood in a wait");
    assert_eq!(server.admin().metric("regent_request_timeouts_total", &[]), 0.0);
    server.stop();
}

/// What its script says while it boots is there to keep the script, and means no request.
#[test]
fn a_worker_that_hangs_is_free_again_when_its_client_has_left() {
    for (name, waits) in WAITS {
        let server = site("departed_timeout 400ms").file(&format!("{name}.php"), script(name, waits)).start();
        ask_and_leave(&server, &format!("/worker.php?run={name}.php"), name, 1);
        assert_eq!(server.get("/worker.php?run=ok.php").expect(200).text(), "ok", "{name}");
        server.stop();
    }
}

/// Its file is written long after the time in which others are ended that have nothing to say.
const LONG_WORK: &str =
    "for ($i = 0; $i < 3; $i++) { usleep(400_000); } file_put_contents(__DIR__ . '/done', 'all of it');";

#[test]
fn what_is_to_outlive_its_client_does() {
    for (name, begin) in [
        ("told", "ignore_user_abort(true);"),
        ("told_by_ini", "ini_set('ignore_user_abort', '1');"),
        ("answered", "echo 'early'; fastcgi_finish_request();"),
    ] {
        for target in [format!("/{name}.php"), format!("/worker.php?run={name}.php")] {
            let server = site("departed_timeout 200ms")
                .file(&format!("{name}.php"), script_that_begins(name, begin, LONG_WORK))
                .start();
            ask_and_leave(&server, &target, name, 1);
            assert_eq!(server.wait_for_file("done"), "all of it", "{target}");
            server.stop();
        }
    }
}

#[test]
fn what_computes_is_not_what_waits() {
    const BUSY: &str = "$end = hrtime(true) + 1_200_000_000; while (hrtime(true) < $end) { } \
        file_put_contents(__DIR__ . '/done', 'all of it');";
    let server = site("departed_timeout 200ms").file("busy.php", script("busy", BUSY)).start();
    ask_and_leave(&server, "/busy.php", "busy", 1);
    assert_eq!(server.wait_for_file("done"), "all of it");
    server.stop();
}

#[test]
fn who_waits_with_its_client_is_not_ended() {
    let server = site("departed_timeout 200ms")
        .file("long.php", script("long", &format!("{LONG_WORK} echo 'end';")))
        .start();
    assert_eq!(server.get("/long.php").expect(200).text(), "end");
    server.stop();
}

#[test]
fn without_the_option_it_goes_on() {
    let server = site("departed_timeout off").file("long.php", script("long", LONG_WORK)).start();
    ask_and_leave(&server, "/long.php", "long", 1);
    assert_eq!(server.wait_for_file("done"), "all of it");
    server.stop();
}
