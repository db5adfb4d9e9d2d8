//! PHP in classic mode: a script from its first line for each request.
#![forbid(unsafe_code)]

use regent_tests::{Setup, in_parallel, until};

/// Prints `$_SERVER` as JSON.
const SERVER_VARIABLES: &str = "<?php header('Content-Type: application/json'); echo json_encode($_SERVER);";

#[test]
fn a_script_answers_with_its_output() {
    let server = Setup::new().file("index.php", "<?php echo 'Hello, ', $_GET['name'] ?? 'world';").start();
    let answer = server.get("/").expect(200);
    assert_eq!(answer.text(), "Hello, world");
    assert_eq!(answer.header("content-type"), Some("text/html; charset=UTF-8"));
    assert!(answer.header("x-powered-by").is_some_and(|value| value.starts_with("PHP/8")));
    assert_eq!(server.get("/?name=Ada%20L").text(), "Hello, Ada L");
    assert_eq!(server.get("/index.php?name=Grace").text(), "Hello, Grace");
    server.stop();
}

#[test]
fn server_variables_describe_the_request() {
    let server = Setup::new().file("app/info.php", SERVER_VARIABLES).start();
    let vars = server
        .request("GET", "/app/info.php/rest/of%20it?a=1&b=2")
        .header("Host", "Example.Test:8123")
        .header("Accept", "text/x-one")
        .header("X-Twice", "first")
        .header("X-Twice", "second")
        .header("X_Spoofed", "dropped")
        .header("X-Empty", "")
        .send()
        .expect(200)
        .json();
    let root = server.root().canonicalize().expect("the root exists").display().to_string();
    for (name, value) in [
        ("REQUEST_METHOD", "GET"),
        ("REQUEST_URI", "/app/info.php/rest/of%20it?a=1&b=2"),
        ("QUERY_STRING", "a=1&b=2"),
        ("SCRIPT_NAME", "/app/info.php"),
        ("SCRIPT_FILENAME", &format!("{root}/app/info.php")),
        ("PATH_INFO", "/rest/of it"),
        ("PATH_TRANSLATED", &format!("{root}/rest/of it")),
        ("PHP_SELF", "/app/info.php/rest/of it"),
        ("DOCUMENT_ROOT", &root),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("SERVER_NAME", "example.test"),
        ("SERVER_PORT", "8123"),
        ("REQUEST_SCHEME", "http"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("HTTP_ACCEPT", "text/x-one"),
        ("HTTP_X_TWICE", "first, second"),
        ("HTTP_X_EMPTY", ""),
    ] {
        assert_eq!(
            vars[name].as_str().map(str::to_lowercase),
            Some(value.to_lowercase()),
            "{name} in {vars:#}"
        );
    }
    assert!(vars.get("HTTP_X_SPOOFED").is_none(), "a name with an underscore spoofs one with a dash");
    assert!(vars["REMOTE_PORT"].as_str().is_some_and(|port| port.parse::<u16>().is_ok()), "{vars:#}");
    assert!(vars["REQUEST_TIME_FLOAT"].as_f64().is_some_and(|time| time > 1.7e9), "{vars:#}");
    assert!(vars["SERVER_SOFTWARE"].as_str().is_some_and(|name| !name.is_empty()), "{vars:#}");
    server.stop();
}

#[test]
fn without_a_path_info_there_is_no_path_translated() {
    let server = Setup::new().file("index.php", SERVER_VARIABLES).start();
    let vars = server.get("/some/route?x=1").expect(200).json();
    assert_eq!(vars["REQUEST_URI"], "/some/route?x=1", "the original, before the rewrite to index.php");
    assert_eq!(vars["SCRIPT_NAME"], "/index.php");
    assert_eq!(vars["PHP_SELF"], "/index.php");
    assert!(vars.get("PATH_TRANSLATED").is_none(), "{vars:#}");
    server.stop();
}

#[test]
fn a_path_info_that_ends_in_a_slash_keeps_it() {
    let server = Setup::new().file("index.php", SERVER_VARIABLES).start();
    for (target, info) in
        [("/index.php/2024/01/post/", "/2024/01/post/"), ("/index.php/a/", "/a/"), ("/index.php/", "/")]
    {
        let vars = server.get(target).expect(200).json();
        assert_eq!(
            (&vars["SCRIPT_NAME"], &vars["PATH_INFO"]),
            (&"/index.php".into(), &info.into()),
            "{target}"
        );
    }
    server.stop();
}

/// No second language reads them.
#[test]
fn values_of_env_arrive_as_they_are_written() {
    let values = [
        r#"{"a": "b;c", "d": ["${HOME}", 1]}"#,
        "'quoted' and \"quoted\"",
        "E_ALL & ~1",
        "none",
        "a # b",
        "100%",
    ];
    let lines: String = values.iter().enumerate().map(|(n, value)| format!("env V{n} `{value}`\n")).collect();
    let script = "<?php for ($n = 0; isset($_SERVER[\"V$n\"]); $n++) { $all[] = [$_SERVER[\"V$n\"], getenv(\"V$n\")]; } echo json_encode($all);";
    let server = Setup::new().site(&format!("php_server {{\n{lines}}}")).file("index.php", script).start();
    let expected: Vec<_> = values.iter().map(|value| [value, value]).collect();
    assert_eq!(server.get("/").expect(200).json(), serde_json::json!(expected));
    server.stop();
}

#[test]
fn credentials_reach_php() {
    let server = Setup::new()
        .file(
            "index.php",
            "<?php echo $_SERVER['PHP_AUTH_USER'] ?? '-', ':', $_SERVER['PHP_AUTH_PW'] ?? '-';",
        )
        .start();
    // "ada:open sesame"
    let answer = server.request("GET", "/").header("Authorization", "Basic YWRhOm9wZW4gc2VzYW1l").send();
    assert_eq!(answer.text(), "ada:open sesame");
    assert_eq!(server.get("/").text(), "-:-", "one request's credentials are not the next one's");
    server.stop();
}

#[test]
fn forms_cookies_and_raw_bodies_arrive() {
    let script = "<?php echo json_encode(['post' => $_POST, 'cookie' => $_COOKIE, 'raw' => file_get_contents('php://input'), \
                  'length' => $_SERVER['CONTENT_LENGTH'] ?? null, 'type' => $_SERVER['CONTENT_TYPE'] ?? null]);";
    let server = Setup::new().file("index.php", script).start();
    let form = server
        .request("POST", "/")
        .header("Cookie", "one=1; two=a%20b")
        .header("Cookie", "three=3")
        .form(&[("name", "Ada & Grace"), ("list[]", "x"), ("list[]", "y")])
        .send()
        .expect(200)
        .json();
    assert_eq!(form["post"], serde_json::json!({"name": "Ada & Grace", "list": ["x", "y"]}));
    assert_eq!(form["cookie"], serde_json::json!({"one": "1", "two": "a b", "three": "3"}));
    let json = server.post("/", "application/json", r#"{"a":1}"#).json();
    assert_eq!(json["raw"], r#"{"a":1}"#);
    assert_eq!(json["length"], "7");
    assert_eq!(json["type"], "application/json");
    assert_eq!(json["post"], serde_json::json!([]));
    server.stop();
}

#[test]
fn an_uploaded_file_is_there_and_removed_afterwards() {
    let script = "<?php $f = $_FILES['doc']; echo json_encode(['name' => $f['name'], 'type' => $f['type'], \
                  'size' => $f['size'], 'error' => $f['error'], 'md5' => md5_file($f['tmp_name']), \
                  'tmp' => $f['tmp_name'], 'ok' => is_uploaded_file($f['tmp_name']), 'field' => $_POST['field']]);";
    let server = Setup::new().file("index.php", script).start();
    let content: Vec<u8> = (0..300_000_u32).map(|i| (i * 7 % 251) as u8).collect();
    let body = [
        b"--B0UND\r\nContent-Disposition: form-data; name=\"field\"\r\n\r\nvalue\r\n--B0UND\r\n".as_slice(),
        b"Content-Disposition: form-data; name=\"doc\"; filename=\"a b.bin\"\r\nContent-Type: text/x-doc\r\n\r\n",
        &content,
        b"\r\n--B0UND--\r\n",
    ]
    .concat();
    let answer = server.post("/", "multipart/form-data; boundary=B0UND", body).expect(200).json();
    assert_eq!(answer["name"], "a b.bin");
    assert_eq!(answer["type"], "text/x-doc");
    assert_eq!(answer["size"], 300_000);
    assert_eq!(answer["error"], 0);
    assert_eq!(answer["ok"], true);
    assert_eq!(answer["field"], "value");
    assert_eq!(answer["md5"].as_str().map(str::len), Some(32));
    let temporary = answer["tmp"].as_str().expect("a path").to_owned();
    // PHP removes it when the request ends, which may be after its answer was sent.
    until("the uploaded file is removed", || (!std::path::Path::new(&temporary).exists()).then_some(()));
    server.stop();
}

#[test]
fn status_and_headers_are_what_the_script_says() {
    let script = "<?php http_response_code(418); header('X-One: 1'); header('X-Gone: 1'); header_remove('X-Gone'); \
                  header('X-Many: a'); header('X-Many: b', false); setcookie('c', 'v w', httponly: true); \
                  header('X-Tight:no space'); header('Content-Type: text/x-tea'); header_remove('X-Powered-By'); echo 'short';";
    let server = Setup::new()
        .file("index.php", script)
        .file("location.php", "<?php header('Location: /elsewhere');")
        .file("line.php", "<?php header('HTTP/1.1 404 Gone Fishing'); echo 'no';")
        .file("empty.php", "<?php http_response_code(204);")
        .start();
    let answer = server.get("/").expect(418);
    assert_eq!(answer.header("x-one"), Some("1"));
    assert_eq!(answer.header("x-gone"), None);
    assert_eq!(answer.header_all("x-many"), ["a", "b"]);
    assert_eq!(answer.header("x-tight"), Some("no space"));
    assert_eq!(answer.header("set-cookie"), Some("c=v%20w; HttpOnly"));
    assert!(answer.header("content-type").is_some_and(|value| value.starts_with("text/x-tea")));
    assert_eq!(answer.header("x-powered-by"), None);
    assert_eq!(answer.text(), "short");
    let redirect = server.get("/location.php").expect(302);
    assert_eq!(redirect.header("location"), Some("/elsewhere"));
    assert_eq!(server.get("/line.php").expect(404).text(), "no");
    let empty = server.get("/empty.php").expect(204);
    assert_eq!(empty.header("content-length").unwrap_or("0"), "0");
    server.stop();
}

#[test]
fn a_status_out_of_range_becomes_500() {
    let server = Setup::new()
        .file("index.php", "<?php echo 'ok';")
        .file("zero.php", "<?php header('X: y', true, 7); echo 'x';")
        .file("huge.php", "<?php header('X: y', true, 70000); echo 'x';")
        .start();
    server.get("/zero.php").expect(500);
    server.get("/huge.php").expect(500);
    server.get("/").expect(200);
    server.stop();
}

#[test]
fn errors_of_a_script_end_that_request_only() {
    let server = Setup::new()
        .file("index.php", "<?php echo 'fine';")
        .file("throw.php", "<?php throw new RuntimeException('thrown by the test');")
        .file("undefined.php", "<?php no_such_function();")
        .file("syntax.php", "<?php this is not PHP")
        .file("memory.php", "<?php ini_set('memory_limit', '8M'); $a = str_repeat('x', 64 << 20);")
        .file("time.php", "<?php set_time_limit(1); while (true) {}")
        .file("exit.php", "<?php echo 'before'; exit(1); echo 'after';")
        .file("negative.php", "<?php echo 'before'; exit(-1);")
        .start();
    for script in ["throw", "undefined", "syntax", "memory", "time"] {
        let answer = server.get(&format!("/{script}.php"));
        assert_eq!(answer.status, 500, "{script}: {}", answer.text());
        assert_eq!(server.get("/").expect(200).text(), "fine", "after {script}");
    }
    assert_eq!(server.get("/exit.php").expect(200).text(), "before");
    assert_eq!(server.get("/negative.php").expect(200).text(), "before");
    server.wait_for_log("thrown by the test");
    server.stop();
}

#[test]
fn a_missing_script_is_404() {
    let server = Setup::new().file("about.php", "<?php echo 'about';").start();
    server.get("/nothing.php").expect(404);
    server.get("/nothing").expect(404);
    server.get("/about.php").expect(200);
    server.stop();
}

#[test]
fn flushed_output_arrives_while_the_script_runs() {
    let script = "<?php echo 'first.'; ob_flush(); flush(); \
                  while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } echo 'second.';";
    let server = Setup::new().file("index.php", script).start();
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    conn.read_until("first.");
    server.write("go", "now");
    conn.read_until("second.");
    server.stop();
}

#[test]
fn early_hints_arrive_while_the_script_runs() {
    let script = "<?php header('Link: </style.css>; rel=preload'); headers_send(103); \
                  while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } \
                  header('Link: </last.css>; rel=preload'); echo 'body ', http_response_code();";
    let server = Setup::new().file("index.php", script).start();
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let hints = conn.head().unwrap().expect("the connection is open");
    assert_eq!((hints.status, hints.reason.as_str()), (103, "Early Hints"));
    assert_eq!(hints.header("link"), Some("</style.css>; rel=preload"));
    server.write("go", "now");
    let answer = conn.response().expect(200);
    assert_eq!(
        (answer.text().as_str(), answer.header("link")),
        ("body 200", Some("</last.css>; rel=preload"))
    );
    server.stop();
}

#[test]
fn early_hints_are_not_for_http_1_0() {
    let script =
        "<?php header('Link: </style.css>; rel=preload'); headers_send(103); usleep(20000); echo 'body';";
    let server = Setup::new().file("index.php", script).start();
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
    let answer = conn.response().expect(200);
    assert_eq!((answer.text().as_str(), answer.header("link")), ("body", Some("</style.css>; rel=preload")));
    assert!(answer.informational.is_empty());
    server.stop();
}

#[test]
fn after_finish_request_the_client_has_everything_and_the_script_goes_on() {
    for function in ["frankenphp_finish_request", "fastcgi_finish_request"] {
        let script = format!(
            "<?php echo 'done'; {function}(); echo 'never seen'; \
             while (!file_exists(__DIR__ . '/go')) {{ usleep(1000); clearstatcache(); }} \
             file_put_contents(__DIR__ . '/result', 'status ' . connection_status());"
        );
        let server = Setup::new().file("index.php", &script).start();
        assert_eq!(server.get("/").expect(200).text(), "done");
        server.write("go", "now");
        assert_eq!(server.wait_for_file("result"), "status 0", "writing after the finish is no abort");
        server.stop();
    }
}

#[test]
fn a_departed_client_aborts_the_script() {
    let script = "<?php ignore_user_abort(true); file_put_contents(__DIR__ . '/started', '1'); \
                  while (!connection_aborted()) { echo str_repeat('x', 4096); ob_flush(); flush(); usleep(1000); } \
                  file_put_contents(__DIR__ . '/result', 'status ' . connection_status());";
    let server = Setup::new().file("index.php", script).start();
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_file("started");
    drop(conn);
    assert_eq!(server.wait_for_file("result"), "status 1");
    server.stop();
}

#[test]
fn requests_leave_nothing_behind() {
    let dirty = "<?php $GLOBALS['leak'] = 1; define('LEAK', 1); putenv('LEAK=1'); $_ENV['LEAK'] = 1; ini_set('precision', '3'); \
                 chdir('/'); header('X-Leak: 1'); http_response_code(201); ob_start(); setlocale(LC_ALL, 'C'); \
                 date_default_timezone_set('Asia/Tokyo'); error_reporting(0); set_error_handler(fn () => true); \
                 ignore_user_abort(true); function leak() {} echo 'dirty';";
    let clean = "<?php echo json_encode([isset($GLOBALS['leak']), defined('LEAK'), getenv('LEAK'), isset($_ENV['LEAK']), \
                 ini_get('precision'), getcwd() === __DIR__, ob_get_level(), date_default_timezone_get(), \
                 error_reporting() !== 0, function_exists('leak'), ignore_user_abort()]);";
    let server =
        Setup::new().php_options("num_threads 1").file("dirty.php", dirty).file("clean.php", clean).start();
    let before = server.get("/clean.php").expect(200);
    assert_eq!(server.get("/dirty.php").expect(201).text(), "dirty");
    let after = server.get("/clean.php").expect(200);
    assert_eq!(after.text(), before.text());
    assert_eq!(after.header("x-leak"), None);
    server.stop();
}

#[test]
fn sessions_belong_to_their_client() {
    let script = "<?php session_start(); $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; echo $_SESSION['n'];";
    let server = Setup::new().php_options("num_threads 1").file("index.php", script).start();
    let cookie_of = |answer: &regent_tests::Response| {
        let cookie = answer.header("set-cookie").expect("a new session sets its cookie");
        cookie.split(';').next().expect("a cookie has a value").to_owned()
    };
    let first = server.get("/");
    let second = server.get("/");
    let (ada, grace) = (cookie_of(&first), cookie_of(&second));
    assert_ne!(ada, grace, "a client without a cookie gets a session of its own");
    let visit = |cookie: &str| server.request("GET", "/").header("Cookie", cookie).send().text();
    assert_eq!(visit(&ada), "2");
    assert_eq!(visit(&ada), "3");
    assert_eq!(visit(&grace), "2");
    server.stop();
}

#[test]
fn a_hundred_requests_at_once_get_their_own_answers() {
    let server = Setup::new()
        .php_options("num_threads 8")
        .file("index.php", "<?php usleep(2000); echo $_GET['id'], ' ', $_SERVER['HTTP_X_ID'], ' ', file_get_contents('php://input');")
        .start();
    let answers = in_parallel(100, |id| {
        let request = server.request("POST", &format!("/?id={id}")).header("X-Id", id.to_string());
        request.body("text/plain", format!("body {id}")).send()
    });
    for (id, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.expect(200).text(), format!("{id} {id} body {id}"));
    }
    server.stop();
}

#[test]
fn a_large_answer_arrives_whole() {
    let script =
        "<?php for ($i = 0; $i < 4000; $i++) { echo str_pad((string) $i, 1024, \"\\0\\n\\r\\xFF\"); }";
    let server = Setup::new().file("index.php", script).start();
    let answer = server.get("/").expect(200);
    assert_eq!(answer.body.len(), 4000 * 1024);
    for (i, block) in answer.body.chunks(1024).enumerate() {
        assert!(block.starts_with(i.to_string().as_bytes()), "block {i} is out of place");
    }
    server.stop();
}

#[test]
fn configuration_reaches_php() {
    let server = Setup::new()
        .php_options("num_threads 1\n\t\tphp_ini memory_limit 77M\n\t\tphp_ini date.timezone {$ZONE}")
        .site("php_server {\n\t\tenv APP_MODE test\n\t}")
        .env("ZONE", "Europe/Oslo")
        .env("FROM_PROCESS", "inherited")
        .file(
            "index.php",
            "<?php echo json_encode([ini_get('memory_limit'), date_default_timezone_get(), getenv('APP_MODE'), \
             $_SERVER['APP_MODE'] ?? null, $_SERVER['FROM_PROCESS'] ?? null, getenv('FROM_PROCESS')]);",
        )
        .start();
    let answer = server.get("/").expect(200).json();
    assert_eq!(answer, serde_json::json!(["77M", "Europe/Oslo", "test", "test", "inherited", "inherited"]));
    server.stop();
}

#[test]
fn scripts_are_served_from_opcache() {
    let script = "<?php $s = opcache_get_status(true); echo json_encode([$s['opcache_enabled'] ?? false, \
                  isset($s['scripts'][__FILE__])]);";
    let server = Setup::new()
        .php_options("num_threads 1\n\t\tphp_ini opcache.file_update_protection 0")
        .file("index.php", script)
        .start();
    server.get("/").expect(200);
    assert_eq!(server.get("/").expect(200).text(), "[true,true]");
    server.stop();
}

#[test]
fn a_request_that_waits_too_long_is_503() {
    let server = Setup::new()
        .php_options("num_threads 1\n\t\tmax_wait_time 1s")
        .file(
            "busy.php",
            "<?php file_put_contents(__DIR__ . '/started', '1'); \
             while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } echo 'finished';",
        )
        .file("index.php", "<?php echo 'quick';")
        .start();
    let mut busy = server.connect();
    busy.send("GET /busy.php HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    server.wait_for_file("started");
    server.get("/").expect(503);
    server.write("go", "now");
    assert_eq!(busy.response().expect(200).text(), "finished");
    server.get("/").expect(200);
    server.stop();
}

#[test]
fn functions_of_frankenphp_are_there() {
    let script = "<?php foreach (['frankenphp_handle_request', 'frankenphp_finish_request', 'fastcgi_finish_request', 'headers_send', \
                  'frankenphp_request_headers', 'apache_request_headers', 'getallheaders', 'frankenphp_response_headers', \
                  'apache_response_headers', 'frankenphp_log'] as $f) { if (!function_exists($f)) { echo $f, ' is missing; '; } } \
                  try { frankenphp_handle_request(fn () => 1); } catch (RuntimeException $e) { echo $e->getMessage(); } \
                  header('X-Own: 1'); echo '|', getallheaders()['X-Asked'], '|', apache_response_headers()['X-Own']; \
                  frankenphp_log('logged by the test', FRANKENPHP_LOG_LEVEL_WARN, ['answer' => 42]); error_log('error_log of the test');";
    let server = Setup::new().file("index.php", script).start();
    let answer = server.request("GET", "/").header("X-Asked", "yes").send().expect(200);
    assert_eq!(answer.text(), "frankenphp_handle_request() called while not in worker mode|yes|1");
    server.wait_for_log("logged by the test");
    server.wait_for_log("42");
    server.wait_for_log("error_log of the test");
    server.stop();
}

#[test]
fn threads_are_recycled_after_max_requests_unnoticed() {
    let server = Setup::new()
        .php_options("num_threads 2\n\t\tmax_requests 3")
        .file("index.php", "<?php echo 'ok';")
        .start();
    for _ in 0..60 {
        assert_eq!(server.get("/").expect(200).text(), "ok");
    }
    server.stop();
}
