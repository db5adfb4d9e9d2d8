//! The API over real sockets.

use crate::support::{DEADLINE, Fake, HOSTILE_URI, Panics, Response, Site, WORKER};
use regent_admin::{
    Access, Address, Force, Inherited, Language, Phase, Readiness, Refusal, Reload, Source, bind,
};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

#[test]
fn threads_are_listed_as_frankenphp_lists_them() {
    let site = Site::start();
    let list = site.get("/frankenphp/threads").json();
    assert_eq!(list["ReservedThreadCount"], 16);
    let threads = list["ThreadDebugStates"].as_array().unwrap();
    assert_eq!(threads.len(), 8);
    assert_eq!(threads[0]["Name"], "Regular PHP Thread");
    assert_eq!(threads[0]["CurrentURI"], HOSTILE_URI);
    assert_eq!(threads[0]["IsBusy"], true);
    assert_eq!(threads[2]["Name"], format!("Worker PHP Thread - {WORKER}"));
    assert_eq!(
        (&threads[6]["Name"], &threads[6]["Engine"]),
        (&json!("Native Thread - hello"), &json!("native"))
    );
    assert_eq!(threads[2]["WaitingSinceMilliseconds"], 1_234);
    assert_eq!(site.get("/regent/threads").json()["ReservedThreadCount"], 16);
}

#[test]
fn threads_are_added_and_removed() {
    let site = Site::start();
    let added = site.call("PUT", "/frankenphp/threads").json();
    assert_eq!(added, json!({ "pool": "classic", "worker": null, "added": 1, "total": 3 }));
    let added = site.call("PUT", &format!("/regent/threads?worker={WORKER}&count=3")).json();
    assert_eq!(added, json!({ "pool": "app", "worker": WORKER, "added": 3, "total": 7 }));
    let removed = site.call("DELETE", "/frankenphp/threads?worker=app&count=6").json();
    assert_eq!(removed, json!({ "pool": "app", "worker": WORKER, "removed": 6, "total": 1 }));
    assert_eq!(site.fake.state().threads, [3, 1, 2]);
    let added = site.call("PUT", "/regent/threads?worker=hello&count=2").json();
    assert_eq!(added, json!({ "pool": "hello", "worker": null, "added": 2, "total": 4 }));
    assert_eq!(site.call("PUT", "/regent/threads?count=5").status, 200);
    let full = site.call("PUT", "/regent/threads").error();
    assert_eq!(full, "the pool has 8 threads, as many as it may: raise `max_threads` in the configuration");
}

#[test]
fn a_configuration_is_loaded_from_a_body_or_a_file() {
    let site = Site::start();
    let load = |fields: &[(&str, &str)], body: &str| site.send("POST", "/load", fields, body);
    let caddyfile = ("Content-Type", "text/caddyfile; charset=utf-8");
    let loaded = load(&[caddyfile], ":80").json();
    assert_eq!(loaded, json!({ "changed": true, "warnings": [] }));
    assert_eq!(load(&[caddyfile, ("Cache-Control", "must-revalidate")], ":81").status, 200);
    assert_eq!(site.call("POST", "/regent/reload").status, 200);
    let waited = site.call("POST", "/regent/reload?config=/etc/Caddyfile&force=true&wait=30").json();
    assert_eq!(waited, json!({ "changed": true, "warnings": [], "before": "ended" }));
    assert_eq!(site.call("POST", "/regent/reload?config=/etc/caddy&adapter=json").status, 200);
    let text = |text: &str| Source::Text(Language::Caddyfile, text.into());
    let expected = [
        (text(":80"), Force::No, None),
        (text(":81"), Force::Yes, None),
        (Source::Own, Force::No, None),
        (Source::File("/etc/Caddyfile".into(), None), Force::Yes, Some(Duration::from_secs(30))),
        (Source::File("/etc/caddy".into(), Some(Language::Json)), Force::No, None),
    ];
    assert_eq!(
        site.fake.state().reloads,
        expected.map(|(source, force, wait)| Reload { source, force, replaces: None, wait })
    );
    for (answer, status, hint) in [
        (load(&[caddyfile], "broken"), 400, "Caddyfile:1:1: broken"),
        (load(&[], ":80"), 400, "the body is no JSON: expected value at line 1 column 1"),
        (load(&[("Content-Type", "text/yaml")], "a: 1"), 415, "text/caddyfile"),
        (site.call("POST", "/regent/reload?config=Caddyfile"), 400, "no absolute path"),
        (site.call("GET", "/load"), 405, "it takes POST"),
    ] {
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.error().contains(hint), "{}", answer.body);
    }
    assert_eq!(site.fake.state().reloads.len(), 5);
}

#[test]
fn bad_input_is_refused_and_changes_nothing() {
    let site = Site::start();
    for (query, status, hint) in [
        ("count=0", 400, "from 1 to 65535"),
        ("count=-1", 400, "from 1 to 65535"),
        ("count=x", 400, "from 1 to 65535"),
        ("count=", 400, "from 1 to 65535"),
        ("count=1000000000", 400, "from 1 to 65535"),
        ("count=1&count=2", 400, "comes twice"),
        ("count=1;worker=app", 400, "from 1 to 65535"),
        ("cuont=1", 400, "there are `worker` and `count`"),
        ("worker=/no/such.php", 404, WORKER),
        ("worker=", 404, WORKER),
        ("worker=no", 404, "`hello`"),
        ("worker=classic", 404, WORKER),
        ("worker=app&count=8", 409, "the pool has 4 threads"),
        ("count=65535", 409, "the pool has 2 threads"),
    ] {
        for method in ["PUT", "DELETE"] {
            let answer = site.call(method, &format!("/frankenphp/threads?{query}"));
            assert_eq!(answer.status, status, "{method} {query}: {answer:?}");
            assert!(answer.error().contains(hint), "{method} {query}: {answer:?}");
        }
    }
    assert_eq!(site.fake.state().threads, [2, 4, 2]);
}

#[test]
fn a_thread_is_looked_into() {
    let site = Site::start();
    let stack = json!({ "index": 0, "stack": ["#0 sleep()", "#1 {main} /app/a.php:3"] });
    assert_eq!(site.call("GET", "/regent/threads/stack?index=0").json(), stack);
    for (query, status, error) in [
        ("index=9", 404, "there is no thread 9 of PHP"),
        ("", 400, "name a thread"),
        ("index=-1", 400, "is no number of a thread"),
        ("index=70000", 400, "is no number of a thread"),
        ("index=1&index=2", 400, "comes twice"),
        ("index=1&x", 400, "is not known here"),
    ] {
        let answer = site.call("GET", &format!("/regent/threads/stack?{query}"));
        assert_eq!(answer.status, status, "{query}");
        assert!(answer.error().contains(error), "{query}: {}", answer.error());
    }
}

#[test]
fn a_profile_is_written_as_it_is_asked_for() {
    let site = Site::start();
    let page = site.call("GET", "/regent/profile");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.body.contains("\"samples\":99") && page.body.contains("\"file\":\"all pools\""));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("sandbox allow-scripts; default-src 'none'"), "{policy}");
    let folded =
        site.call("GET", &format!("/regent/profile?format=folded&seconds=2&hertz=7&worker={WORKER}"));
    assert_eq!((folded.status, folded.body), (200, "{main} app 7\n".to_owned()));
    for (query, status, error) in [
        ("seconds=0", 400, "`seconds=0` is no whole number from 1 to 300"),
        ("worker=hello", 404, "runs no PHP"),
        ("worker=nope.php", 404, "no worker"),
        ("path=/under-way", 409, "a profile is being taken already"),
    ] {
        let answer = site.call("GET", &format!("/regent/profile?{query}"));
        assert_eq!(answer.status, status, "{query}");
        assert!(answer.error().contains(error), "{query}: {}", answer.error());
    }
}

#[test]
fn the_last_thread_stays() {
    let site = Site::start();
    let answer = site.call("DELETE", "/regent/threads?count=2");
    assert_eq!(answer.status, 409);
    assert_eq!(answer.error(), "the pool has 2 threads: at most 1 can be removed, since one always stays");
}

#[test]
fn a_server_that_cannot_says_why() {
    let site = Site::start();
    site.fake.state().refusal = Some(Refusal::Unavailable("PHP is restarting; try again".into()));
    for (method, target) in [
        ("GET", "/regent/threads"),
        ("PUT", "/regent/threads"),
        ("POST", "/regent/workers/restart"),
        ("POST", "/regent/native/restart"),
        ("GET", "/regent/queue"),
    ] {
        let answer = site.call(method, target);
        assert_eq!((answer.status, answer.error().as_str()), (503, "PHP is restarting; try again"));
    }
}

#[test]
fn a_change_goes_on_when_its_client_has_gone() {
    let site = Site::start();
    site.fake.hold();
    let mut client = site.connect();
    let request = format!("PUT /regent/threads HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
    client.write_all(request.as_bytes()).unwrap();
    wait_for(&site.fake.begun);
    drop(client);
    // Answered by the same thread after it has seen the client go: it sees events in their order.
    site.get("/regent/live");
    site.fake.release();
    wait_for(&site.fake.made);
    assert_eq!(site.fake.state().threads, [3, 4, 2]);
}

#[test]
fn a_change_that_panics_is_an_error_and_not_the_end() {
    let site = Site::start();
    site.fake.state().panics = Panics::InChanges;
    let answer = site.call("PUT", "/regent/threads");
    assert_eq!(answer.status, 500);
    assert!(answer.error().contains("its log says why"));
    assert_eq!(site.get("/regent/live").status, 200);
}

#[test]
fn workers_are_restarted() {
    let site = Site::start();
    assert_eq!(site.call("POST", "/frankenphp/workers/restart").json(), json!({ "restarted": 4 }));
    assert_eq!(site.call("POST", "/regent/workers/restart?now=1").status, 400);
    assert_eq!(site.fake.state().restarts, 1);
}

#[test]
fn native_modules_are_restarted_apart_from_workers() {
    let site = Site::start();
    assert_eq!(site.call("POST", "/regent/native/restart").json(), json!({ "restarted": 2 }));
    assert_eq!(site.call("POST", "/regent/native/restart?now=1").status, 400);
    let state = site.fake.state();
    assert_eq!((state.native_restarts, state.restarts), (1, 0));
}

#[test]
fn octane_probes_reloads_and_stops() {
    let site = Site::start();
    let probe = site.get("/config/apps/frankenphp");
    let worker = json!({ "name": "app", "file_name": WORKER, "num": 4 });
    assert_eq!(probe.json(), json!({ "num_threads": 6, "workers": [worker] }));
    // As Octane's ServerProcessInspector does it.
    let fields = [("Cache-Control", "must-revalidate"), ("Content-Type", "application/json")];
    let reload = site.send("PATCH", "/config/apps/frankenphp", &fields, &probe.body);
    assert_eq!(reload.json(), json!({ "restarted": 4 }));
    assert_eq!(site.send("PATCH", "/config/apps/frankenphp", &fields[1..], "").status, 200);
    assert_eq!(site.fake.state().restarts, 2);
    assert_eq!(site.fake.state().reloads, []);
    // Where nothing is said of PHP, `null` is what is read and sent back.
    site.fake.state().document = Arc::new(json!({}));
    assert_eq!(site.get("/config/apps/frankenphp").status, 404);
    site.fake.state().document = Arc::new(json!({ "apps": {} }));
    let probe = site.get("/config/apps/frankenphp");
    assert_eq!((probe.status, probe.body.trim()), (200, "null"));
    assert_eq!(site.send("PATCH", "/config/apps/frankenphp", &fields, &probe.body).status, 200);
    assert_eq!(site.fake.state().restarts, 3);
    assert_eq!(site.call("POST", "/stop?now=1").status, 400);
    assert_eq!(site.fake.state().stops, 0);
    assert_eq!(site.call("POST", "/stop").json(), json!({ "stopping": true }));
    assert_eq!(site.fake.state().stops, 1);
}

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];
const ROUTES: &str = "/config/apps/http/servers/srv0/routes";

#[test]
fn parts_of_the_configuration_are_read_and_changed() {
    let site = Site::start();
    let send = |method, target: &str, body| site.send(method, target, &JSON, body);
    let ids = || -> Vec<Value> {
        let routes = site.get(ROUTES).json();
        routes.as_array().unwrap().iter().map(|route| route["@id"].clone()).collect()
    };
    assert_eq!(site.get(&format!("{ROUTES}/0/handle/0/body")).json(), "hello");
    assert_eq!(site.get(&format!("{ROUTES}/1")).status, 404);
    assert_eq!(site.get(&format!("{ROUTES}/first")).status, 400);
    assert_eq!(send("POST", ROUTES, r#"{"@id":"last"}"#).json()["changed"], true);
    assert_eq!(send("PUT", &format!("{ROUTES}/0"), r#"{"@id":"first"}"#).status, 200);
    assert_eq!(send("POST", &format!("{ROUTES}/..."), r#"[{"@id":1},{"@id":2}]"#).status, 200);
    assert_eq!(ids(), [json!("first"), json!("hello"), json!("last"), json!(1), json!(2)]);
    assert_eq!(send("PATCH", &format!("{ROUTES}/1/handle/0/body"), "\"bye\"").status, 200);
    assert_eq!(site.get("/id/hello/handle/0/body").json(), "bye");
    assert_eq!(send("PATCH", "/id/hello/handle/0/body", "\"good bye\"").status, 200);
    assert_eq!(site.get(&format!("{ROUTES}/1/handle/0/body")).json(), "good bye");
    assert_eq!(site.call("DELETE", "/id/first").status, 200);
    assert_eq!(site.call("DELETE", &format!("{ROUTES}/1")).status, 200);
    assert_eq!(ids(), [json!("hello"), json!(1), json!(2)]);
    let reloads = site.fake.state().reloads.len();
    for (method, target, body, status, hint) in [
        ("POST", ROUTES, "{", 400, "line 1 column"),
        ("POST", ROUTES, "", 400, "no JSON"),
        ("POST", ROUTES, r#"{"@id":"hello"}"#, 400, "/routes/0 and /config/apps/http/servers/srv0/routes/3"),
        ("POST", ROUTES, r#"{"@id":[]}"#, 400, "neither a text nor a number"),
        ("POST", ROUTES, "\"broken\"", 400, "broken"),
        ("POST", "/config/apps/http/servers/srv0/routes/...", "1", 400, "send one"),
        ("PUT", "/config/apps/http", "{}", 409, "`PATCH` replaces it"),
        ("PUT", "/config/", "{}", 409, "`PATCH` replaces it"),
        ("PATCH", "/config/apps/other", "{}", 404, "no /config/apps/other"),
        ("DELETE", "/config/apps/other", "", 404, "no /config/apps/other"),
        ("DELETE", "/id/gone", "", 404, "`@id` \"gone\""),
        ("PATCH", "/config/apps/http?x=1", "{}", 400, "is not known here"),
    ] {
        let answer = send(method, target, body);
        assert_eq!(answer.status, status, "{method} {target}: {answer:?}");
        assert!(answer.error().contains(hint), "{answer:?}");
    }
    let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
    assert!(send("POST", ROUTES, &deep).error().contains("within each other"));
    let deeper = "[".repeat(100_000);
    assert!(send("POST", ROUTES, &deeper).error().contains("recursion limit"));
    assert_eq!(send("POST", ROUTES, &"x".repeat((16 << 20) + 1)).status, 413);
    assert_eq!(site.send("POST", ROUTES, &[], "{}").status, 415);
    assert_eq!(site.send("POST", ROUTES, &[("Content-Type", "text/caddyfile")], ":80").status, 415);
    assert_eq!(site.fake.state().reloads.len(), reloads, "nothing was loaded");
}

#[test]
fn the_whole_configuration_is_replaced() {
    let site = Site::start();
    let caddyfile = [("Content-Type", "text/caddyfile")];
    for method in ["POST", "PATCH"] {
        assert_eq!(site.send(method, "/config/", &caddyfile, ":80").json()["changed"], true);
    }
    assert_eq!(site.send("POST", "/config/", &caddyfile, "broken").status, 400);
    assert_eq!(site.send("PUT", "/config/", &caddyfile, ":80").status, 409);
    // As it was sent, so that lines are those of the client.
    let document = "{\n\t\"apps\": {}\n}";
    let forced = [JSON[0], ("Cache-Control", "no-cache, must-revalidate")];
    for (target, fields) in [("/load", &forced[..]), ("/load", &[]), ("/config/", &JSON)] {
        assert_eq!(site.send("POST", target, fields, document).status, 200);
    }
    assert_eq!(site.call("DELETE", "/config/").status, 200);
    assert_eq!(site.get("/config/").body.trim(), "null");
    assert_eq!(site.send("PUT", "/config/apps/http", &JSON, "1").status, 200);
    let reloads: Vec<_> =
        site.fake.state().reloads.iter().map(|reload| (reload.source.clone(), reload.force)).collect();
    let text = |language, text: &str| Source::Text(language, text.into());
    assert_eq!(
        reloads,
        [
            (text(Language::Caddyfile, ":80"), Force::No),
            (text(Language::Caddyfile, ":80"), Force::No),
            (text(Language::Json, document), Force::Yes),
            (text(Language::Json, document), Force::No),
            (text(Language::Json, document), Force::No),
            (text(Language::Json, "null"), Force::No),
            (text(Language::Json, "{\n  \"apps\": {\n    \"http\": 1\n  }\n}"), Force::No),
        ]
    );
    let adapted = site.send("POST", "/adapt", &caddyfile, "a text").json();
    assert_eq!(adapted, json!({ "result": { "apps": {} }, "warnings": ["a text"] }));
    let as_it_is = site.send("POST", "/adapt", &JSON, document).json();
    assert_eq!(as_it_is, json!({ "result": { "apps": {} }, "warnings": [] }));
}

#[test]
fn a_change_can_be_bound_to_what_was_read() {
    let site = Site::start();
    let tag = |path: &str| site.get(path).header("etag").expect("a tag").to_owned();
    assert!(tag("/id/hello/").starts_with(&format!("\"{ROUTES}/0 ")), "by its place");
    for path in ["/config/", "/config/apps/http/servers/srv0/listen", "/config/apps/none"] {
        let read = tag(path);
        assert!(read.starts_with(&format!("\"{path} ")), "{read}");
        for (target, kind) in [("/config/", "text/caddyfile"), ("/config/apps/new", "application/json")] {
            let fields = [("Content-Type", kind), ("If-Match", read.as_str())];
            let before = Arc::clone(&site.fake.state().document);
            assert_eq!(site.send("POST", target, &fields, "80").status, 200);
            site.fake.state().document = before;
            assert!(site.fake.state().reloads.last().unwrap().replaces.is_some(), "to be looked at again");
            let other = read.replace(' ', " 0");
            let fields = [("Content-Type", kind), ("If-Match", &other)];
            assert_eq!(site.send("POST", target, &fields, "80").status, 412);
        }
        assert_eq!(site.send("DELETE", "/config/", &[("If-Match", "\"x\"")], "").status, 400);
    }
}

#[test]
fn no_change_is_lost_when_many_come_at_once() {
    let site = Site::start();
    std::thread::scope(|scope| {
        for client in 0..8 {
            let site = &site;
            scope.spawn(move || {
                for change in 0..10 {
                    let name = format!("\"{client} {change}\"");
                    let listen = "/config/apps/http/servers/srv0/listen";
                    assert_eq!(site.send("POST", listen, &JSON, &name).status, 200);
                }
            });
        }
        // Somebody else changes it besides, as a reload by a signal does.
        for other in 0..10 {
            let mut state = site.fake.state();
            let mut document = Value::clone(&state.document);
            document["others"] = json!(other);
            state.document = Arc::new(document);
        }
    });
    let listen = site.get("/config/apps/http/servers/srv0/listen").json();
    assert_eq!(listen.as_array().map(Vec::len), Some(81));
    assert_eq!(site.get("/config/others").json(), 9);
}

#[test]
fn secrets_are_hidden_and_survive_a_change_of_what_was_read() {
    let site = Site::start();
    let shown = site.get("/config/storage");
    assert!(!site.get("/config/").body.contains("kept to itself"));
    assert!(shown.json()["password"].as_str().unwrap().starts_with("(hidden "), "{shown:?}");
    let back = shown.body.replace("redis", "other");
    assert_eq!(site.send("PATCH", "/config/storage", &JSON, &back).status, 200);
    let storage = site.fake.state().document["storage"].clone();
    assert_eq!(storage, json!({ "module": "other", "password": "kept to itself" }));
    let all = site.get("/config/").body;
    assert_eq!(site.send("POST", "/load", &JSON, &all).status, 200);
    assert_eq!(site.fake.state().document["storage"]["password"], "kept to itself");
    let strange = r#"{"password":"(hidden 0123456789abcdef)"}"#;
    let answer = site.send("PATCH", "/config/storage", &JSON, strange);
    assert_eq!((answer.status, answer.error().contains("send the secret itself")), (400, true));
}

#[test]
fn readiness_is_that_of_php() {
    let site = Site::start();
    assert_eq!(site.get("/regent/ready").json(), json!({ "ready": true }));
    site.fake.state().readiness = Readiness::NotReady("no PHP thread has started yet".into());
    let answer = site.get("/frankenphp/ready");
    assert_eq!((answer.status, answer.error().as_str()), (503, "not ready: no PHP thread has started yet"));
    assert_eq!(site.get("/regent/live").json(), json!({ "live": true }));
}

#[test]
fn the_queue_is_summed_up() {
    let site = Site::start();
    let queue = site.get("/regent/queue").json();
    assert_eq!((&queue["queued"], &queue["oldest_wait_ms"]), (&json!(3), &json!(3.2)));
    assert_eq!(queue["pools"][1]["threads"]["stuck"], 1);
}

#[test]
fn metrics_are_prometheus_text() {
    let site = Site::start();
    let answer = site.get("/metrics");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(answer.body, "frankenphp_total_threads 6\n");
}

#[test]
fn an_unknown_path_is_told_what_there_is() {
    let site = Site::start();
    let answer = site.get("/regent/thread");
    assert_eq!(answer.status, 404);
    let endpoints = answer.json()["endpoints"].clone();
    assert!(endpoints.as_array().unwrap().contains(&json!("PUT /{prefix}/threads")), "{endpoints}");
}

#[test]
fn another_method_is_told_which_there_are() {
    let site = Site::start();
    for (method, target, allow) in [
        ("POST", "/regent/threads", "GET, PUT, DELETE, HEAD"),
        ("GET", "/frankenphp/workers/restart", "POST"),
        ("OPTIONS", "/stop", "POST"),
        ("BREW", "/metrics", "GET, HEAD"),
    ] {
        let answer = site.call(method, target);
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{method} {target}");
        assert!(answer.error().contains(allow));
    }
}

#[test]
fn head_has_no_body() {
    let site = Site::start();
    let answer = site.call("HEAD", "/regent/threads");
    assert_eq!(answer.status, 200);
    assert_ne!(answer.header("content-length"), Some("0"));
}

#[test]
fn a_web_page_cannot_drive_it() {
    let site = Site::with_origins(&["https://admin.example"]);
    let own = format!("http://{}", site.address);
    for (fields, status) in [
        (vec![("Host", "evil.example")], 403),
        (vec![("Origin", "http://evil.example")], 403),
        (vec![("Origin", "http://localhost:8080")], 403),
        (vec![("Origin", "null")], 403),
        (vec![("Sec-Fetch-Site", "cross-site")], 403),
        (vec![("Host", "a"), ("Host", "b")], 400),
        (vec![("Origin", own.as_str()), ("Sec-Fetch-Site", "same-origin")], 200),
        (vec![("Origin", "https://admin.example"), ("Sec-Fetch-Site", "cross-site")], 200),
    ] {
        let before = site.fake.state().threads;
        let answer = site.send("PUT", "/regent/threads", &fields, "");
        assert_eq!(answer.status, status, "{fields:?}: {answer:?}");
        assert_eq!(site.fake.state().threads != before, status == 200, "{fields:?}");
    }
}

#[test]
fn every_answer_is_closed_to_other_sites() {
    let site = Site::start();
    for target in ["/", "/regent/threads", "/nothing"] {
        let answer = site.get(target);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[test]
fn one_connection_takes_many_calls() {
    let site = Site::start();
    let client = site.connect();
    let mut reader = BufReader::new(client.try_clone().unwrap());
    for _ in 0..100 {
        let request = format!("GET /regent/live HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
        (&client).write_all(request.as_bytes()).unwrap();
        assert_eq!(Response::read(&mut reader, "GET").status, 200);
    }
}

#[test]
fn a_stop_answers_the_call_that_runs() {
    let mut site = Site::start();
    site.fake.hold();
    let mut client = site.connect();
    client.write_all(site.request("PUT", "/regent/threads", &[], "").as_bytes()).unwrap();
    wait_for(&site.fake.begun);
    site.begin_stop();
    // The listening socket closes first.
    while std::net::TcpStream::connect(site.address).is_ok() {}
    site.fake.release();
    assert_eq!(Response::read(&mut BufReader::new(client), "PUT").status, 200);
}

#[test]
fn a_unix_socket_takes_calls_with_any_host() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("admin.sock");
    let listeners = bind(&Address::Unix(path.clone()), &Inherited::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (end, ended) = tokio::sync::watch::channel(Phase::Serving);
    let served =
        runtime.spawn(regent_admin::serve(listeners, Access::default(), Arc::new(Fake::default()), ended));
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"GET /regent/live HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(Response::read(&mut BufReader::new(client), "GET").status, 200);
    drop(end);
    runtime.block_on(served).unwrap().unwrap();
    assert!(!path.exists());
}

#[test]
fn what_is_no_http_is_answered_and_closed() {
    let site = Site::start();
    for (bytes, status) in [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), "HTTP/1.1 400 "),
        (b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n".to_vec(), "HTTP/1.1 400 "),
        (format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(20_000)).into_bytes(), "HTTP/1.1 431 "),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "X: a\r\n".repeat(200)).into_bytes(), "HTTP/1.1 431 "),
    ] {
        let mut client = site.connect();
        // The listener may close before it has taken all.
        let _ = client.write_all(&bytes);
        let mut line = String::new();
        let read = BufReader::new(&client).read_line(&mut line);
        assert!(line.starts_with(status) || read.is_err(), "{line:?} is not {status}");
    }
    assert_eq!(site.get("/regent/live").status, 200);
}

#[test]
fn connections_beyond_the_limit_wait_for_one_to_end() {
    let site = Site::start();
    let ask = |client: &TcpStream| {
        let request = format!("GET /regent/live HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
        { client }.write_all(request.as_bytes()).unwrap();
        client.try_clone().unwrap()
    };
    let mut served: Vec<_> = (0..64).map(|_| site.connect()).collect();
    for client in &served {
        assert_eq!(Response::read(&mut BufReader::new(ask(client)), "GET").status, 200);
    }
    let further = site.connect();
    let mut answer = BufReader::new(ask(&further));
    // The others are answered once more, so that it would have been too.
    for client in &served {
        assert_eq!(Response::read(&mut BufReader::new(ask(client)), "GET").status, 200);
    }
    further.set_nonblocking(true).unwrap();
    assert!(answer.fill_buf().is_err(), "more connections than the limit are served");
    served.pop();
    further.set_nonblocking(false).unwrap();
    assert_eq!(Response::read(&mut answer, "GET").status, 200);
}

#[test]
fn a_crowd_is_served_in_turn() {
    let site = Site::start();
    // More than the listener has at once, fewer than wait for it in the kernel.
    let crowd: Vec<_> = (0..150).map(|_| site.connect()).collect();
    for mut client in crowd {
        client.write_all(site.request("GET", "/regent/live", &[], "").as_bytes()).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
    }
}

fn wait_for(event: &Notify) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE, event.notified()).await }).expect("it happens");
}
