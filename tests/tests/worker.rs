//! PHP in worker mode: a script that boots once and then handles requests in a loop.
#![forbid(unsafe_code)]

use regent_tests::{Response, Server, Setup, in_parallel, keep_asking, until};

/// A worker script whose handler is this PHP code; `$n` counts the requests of its thread, `$booted` and `$kind` are
/// from the environment at boot.
fn worker(handler: &str) -> String {
    format!(
        "<?php $n = 0; $booted = $_SERVER['FRANKENPHP_WORKER'] ?? null; $kind = $_SERVER['KIND'] ?? '-';
        $handler = function () use (&$n, $booted, $kind) {{ $n++; {handler} }};
        while (frankenphp_handle_request($handler)) {{ }}"
    )
}

/// A site whose requests all go to one worker thread with this handler.
fn site_with(handler: &str) -> Setup {
    Setup::new()
        .php_options("num_threads 2\n\t\tworker {\n\t\t\tfile ROOT/index.php\n\t\t\tnum 1\n\t\t}")
        .file("index.php", worker(handler))
}

/// The number that a handler with `echo $n` answered with.
fn count(answer: &Response) -> u64 {
    answer.text().parse().unwrap_or_else(|_| panic!("a number, not {}", answer.text()))
}

#[test]
fn the_script_boots_once_and_handles_many() {
    let server = site_with("echo $n;").start();
    let first = count(&server.get("/").expect(200));
    for i in 1..=50 {
        assert_eq!(count(&server.get("/").expect(200)), first + i);
    }
    server.stop();
}

#[test]
fn the_script_sees_at_boot_that_it_is_a_worker() {
    let server = site_with("var_export($booted);").start();
    assert_eq!(server.get("/").expect(200).text(), "'1'");
    server.stop();
}

#[test]
fn every_request_has_superglobals_of_its_own() {
    let server = site_with(
        "echo json_encode([$_GET, $_POST, $_COOKIE, array_keys($_FILES), $_SERVER['REQUEST_METHOD'], \
         $_SERVER['REQUEST_URI'], $_SERVER['HTTP_X_ONE'] ?? null, file_get_contents('php://input'), $_REQUEST]);",
    )
    .start();
    let full = server
        .request("POST", "/a?q=1")
        .header("Cookie", "c=2")
        .header("X-One", "1")
        .form(&[("p", "3")])
        .send();
    assert_eq!(
        full.expect(200).json(),
        serde_json::json!([{"q": "1"}, {"p": "3"}, {"c": "2"}, [], "POST", "/a?q=1", "1", "p=3", {"q": "1", "p": "3"}])
    );
    let bare = server.get("/b").expect(200);
    assert_eq!(bare.json(), serde_json::json!([[], [], [], [], "GET", "/b", null, "", []]));
    server.stop();
}

#[test]
fn uploads_arrive_and_are_removed() {
    let server = site_with(
        "$f = $_FILES['doc'] ?? null; echo json_encode($f ? [file_get_contents($f['tmp_name']), $f['tmp_name']] : null);",
    )
    .start();
    let body =
        "--B\r\nContent-Disposition: form-data; name=\"doc\"; filename=\"a\"\r\n\r\nthe content\r\n--B--\r\n";
    let answer = server.post("/", "multipart/form-data; boundary=B", body).expect(200).json();
    assert_eq!(answer[0], "the content");
    let temporary = answer[1].as_str().expect("a path").to_owned();
    until("the uploaded file is removed", || (!std::path::Path::new(&temporary).exists()).then_some(()));
    assert_eq!(server.get("/").expect(200).text(), "null");
    server.stop();
}

#[test]
fn status_headers_and_buffers_start_anew() {
    let server = site_with(
        "if (isset($_GET['dirty'])) { http_response_code(404); header('X-Dirty: 1'); setcookie('d', '1'); ob_start(); ob_start(); } \
         echo 'level ', ob_get_level();",
    )
    .start();
    let before = server.get("/").expect(200).text();
    let dirty = server.get("/?dirty").expect(404);
    assert_eq!(dirty.header("x-dirty"), Some("1"));
    assert!(dirty.text().starts_with("level "), "open buffers reach the client: {}", dirty.text());
    let clean = server.get("/").expect(200);
    assert_eq!(clean.header("x-dirty"), None);
    assert_eq!(clean.header("set-cookie"), None);
    assert_eq!(clean.text(), before);
    server.stop();
}

#[test]
fn sessions_do_not_leak_between_clients() {
    let server = site_with(
        "$had = isset($_SESSION); session_start(); $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; echo json_encode([$had, $_SESSION['n'], session_id()]);",
    )
    .start();
    let ask = |cookie: Option<&str>| {
        let request = server.request("GET", "/");
        let request = match cookie {
            Some(id) => request.header("Cookie", format!("PHPSESSID={id}")),
            None => request,
        };
        request.send().expect(200).json()
    };
    let id_of = |answer: &serde_json::Value| answer[2].as_str().expect("a session id").to_owned();
    let first = ask(None);
    let second = ask(None);
    let (ada, grace) = (id_of(&first), id_of(&second));
    assert_ne!(ada, grace, "a client without a cookie gets a session of its own");
    assert_eq!(ask(Some(&ada)), serde_json::json!([false, 2, ada]));
    assert_eq!(ask(Some(&grace)), serde_json::json!([false, 2, grace]));
    assert_eq!(ask(Some(&ada)), serde_json::json!([false, 3, ada]));
    server.stop();
}

#[test]
fn exit_ends_the_request_and_the_worker_comes_back() {
    let server = site_with("echo 'request ', $n; if (isset($_GET['exit'])) { exit; } echo '.';").start();
    for _ in 0..3 {
        let answer = server.get("/?exit").expect(200).text();
        assert!(answer.starts_with("request ") && !answer.ends_with('.'), "{answer}");
        assert_eq!(server.get("/").expect(200).text(), "request 1.", "a script that ended starts anew");
    }
    server.stop();
}

#[test]
fn an_uncaught_exception_costs_one_request() {
    let server =
        site_with("if (isset($_GET['throw'])) { throw new LogicException('thrown in a worker'); } echo $n;")
            .start();
    for _ in 0..3 {
        server.get("/?throw").expect(500);
        server.get("/").expect(200);
    }
    server.wait_for_log("thrown in a worker");
    server.stop();
}

#[test]
fn a_script_that_ends_its_loop_is_started_again_and_nothing_is_lost() {
    let script = "<?php for ($n = 0; $n < 5; $n++) { \
                  if (!frankenphp_handle_request(function () use ($n) { echo $n; })) { break; } }";
    let server = site_with("").file("index.php", script).start();
    let counts: Vec<u64> = (0..50).map(|_| count(&server.get("/").expect(200))).collect();
    assert!(counts.iter().all(|n| *n < 5), "{counts:?}");
    assert!(counts.iter().filter(|n| **n == 0).count() >= 9, "{counts:?}");
    server.stop();
}

#[test]
fn a_script_that_fails_at_boot_is_tried_again() {
    let script = "<?php $file = __DIR__ . '/tries'; $tries = (int) @file_get_contents($file); file_put_contents($file, $tries + 1); \
                  if ($tries < 2) { throw new RuntimeException('boot ' . $tries . ' fails'); } \
                  while (frankenphp_handle_request(function () { echo 'up'; })) { }";
    let server = site_with("").file("index.php", script).start();
    let answer = until("the worker is up", || Some(server.get("/")).filter(|answer| answer.status == 200));
    assert_eq!(answer.text(), "up");
    server.wait_for_log("boot 0 fails");
    server.wait_for_log("boot 1 fails");
    server.stop();
}

#[test]
fn memory_does_not_grow() {
    let server = site_with(
        "$_SESSION = []; $x = json_decode(json_encode($_SERVER), true); filter_var('1', FILTER_VALIDATE_INT); echo memory_get_usage();",
    )
    .start();
    let request = |i: usize| {
        server.request("POST", &format!("/?i={}", i % 10)).form(&[("a", "b"), ("c[]", "d")]).send()
    };
    (0..200).for_each(|i| drop(request(i)));
    let before = count(&request(0));
    (0..3000).for_each(|i| drop(request(i)));
    let after = count(&request(0));
    assert!(after <= before + 4096, "from {before} to {after} bytes in 3,000 requests");
    server.stop();
}

#[test]
fn streaming_and_finishing_work_as_in_classic_mode() {
    let server = site_with(
        "if (isset($_GET['finish'])) { echo 'finished'; frankenphp_finish_request(); echo 'unseen'; \
           file_put_contents($_SERVER['DOCUMENT_ROOT'] . '/after', 'ran'); return; } \
         echo 'one.'; ob_get_level() && ob_flush(); flush(); \
         while (!file_exists($_SERVER['DOCUMENT_ROOT'] . '/go')) { usleep(1000); clearstatcache(); } echo 'two.';",
    )
    .start();
    assert_eq!(server.get("/?finish").expect(200).text(), "finished");
    assert_eq!(server.wait_for_file("after"), "ran");
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    conn.read_until("one.");
    server.write("go", "now");
    conn.read_until("two.");
    server.stop();
}

#[test]
fn a_departed_client_does_not_end_the_worker() {
    let server = site_with(
        "if (isset($_GET['long'])) { file_put_contents($_SERVER['DOCUMENT_ROOT'] . '/started', '1'); \
           while (!connection_aborted()) { echo str_repeat('x', 4096); ob_get_level() && ob_flush(); flush(); usleep(1000); } \
           file_put_contents($_SERVER['DOCUMENT_ROOT'] . '/ended', (string) $n); } echo $n;",
    )
    .start();
    let mut conn = server.connect();
    conn.send("GET /?long HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_file("started");
    drop(conn);
    let n: u64 = server.wait_for_file("ended").parse().expect("a number");
    assert_eq!(count(&server.get("/").expect(200)), n + 1, "the same script handles the next request");
    server.stop();
}

#[test]
fn static_files_and_other_scripts_are_served_beside_the_worker() {
    let server = site_with("echo 'worker';")
        .file("style.css", "a {}")
        .file("plain.php", "<?php echo 'classic';")
        .start();
    assert_eq!(server.get("/").expect(200).text(), "worker");
    assert_eq!(server.get("/any/route").expect(200).text(), "worker");
    assert_eq!(server.get("/style.css").expect(200).text(), "a {}");
    assert_eq!(server.get("/plain.php").expect(200).text(), "classic");
    server.stop();
}

#[test]
fn workers_of_a_site_have_their_own_paths_and_environment() {
    let server = Setup::new()
        .php_options("num_threads 4")
        .site(
            "php_server {\n\t\tworker {\n\t\t\tfile ROOT/api.php\n\t\t\tnum 1\n\t\t\tname api\n\t\t\tenv KIND api\n\t\t\tmatch /api/*\n\t\t}\n\
             \t\tworker {\n\t\t\tfile ROOT/pages.php\n\t\t\tnum 1\n\t\t\tname pages\n\t\t\tenv KIND pages\n\t\t\tmatch /pages/*\n\t\t}\n\t}",
        )
        .file("api.php", worker("echo 'api ', $kind, ' ', $_SERVER['REQUEST_URI'];"))
        .file("pages.php", worker("echo 'pages ', $kind, ' ', $_SERVER['REQUEST_URI'];"))
        .file("index.php", "<?php echo 'classic';")
        .start();
    assert_eq!(server.get("/api/v1?x").expect(200).text(), "api api /api/v1?x");
    assert_eq!(server.get("/pages/home").expect(200).text(), "pages pages /pages/home");
    assert_eq!(server.get("/").expect(200).text(), "classic");
    server.stop();
}

#[test]
fn many_requests_at_once_on_few_threads() {
    let server = Setup::new()
        .php_options("num_threads 5\n\t\tworker ROOT/index.php 4")
        .file("index.php", worker("usleep(500); echo $_GET['id'];"))
        .start();
    for (id, answer) in in_parallel(120, |id| server.get(&format!("/?id={id}"))).into_iter().enumerate() {
        assert_eq!(answer.expect(200).text(), id.to_string());
    }
    server.stop();
}

#[test]
fn recycling_after_max_requests_loses_nothing() {
    let server = Setup::new()
        .php_options("num_threads 3\n\t\tmax_requests 10\n\t\tworker ROOT/index.php 2")
        .file("index.php", worker("echo $n;"))
        .start();
    let answers = keep_asking(&server, 3, "/", || {
        for _ in 0..100 {
            server.get("/").expect(200);
        }
    });
    let counts: Vec<_> = answers.into_iter().map(|answer| count(&answer.expect(200))).collect();
    // Of two threads one is renewed at a time: the other may go on meanwhile, for half as many.
    assert!(counts.iter().all(|count| *count <= 15), "{counts:?}");
    server.stop();
}

#[test]
fn static_state_stays_and_request_state_goes() {
    let server = site_with(
        "static $kept = 0; $kept++; \
         echo json_encode([$kept === $n, isset($_SERVER['HTTP_X_FIRST']), isset($GLOBALS['_SESSION'])]); $_SESSION = ['x' => 1];",
    )
    .start();
    server.request("GET", "/").header("X-First", "1").send().expect(200);
    assert_eq!(server.get("/").expect(200).text(), "[true,false,false]");
    server.stop();
}

#[test]
fn a_worker_that_runs_out_of_time_or_memory_comes_back() {
    let server = site_with(
        "if (isset($_GET['time'])) { set_time_limit(1); while (true) {} } \
         if (isset($_GET['memory'])) { $x = str_repeat('x', 1 << 30); } echo 'ok';",
    )
    .start();
    let works = |server: &Server| assert_eq!(server.get("/").expect(200).text(), "ok");
    works(&server);
    server.get("/?memory").expect(500);
    works(&server);
    server.get("/?time").expect(500);
    works(&server);
    server.stop();
}
