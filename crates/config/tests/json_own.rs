//! Caddy's JSON where Caddy itself makes none: the modules of FrankenPHP, Regent's own directives, and mistakes.

use proptest::prelude::*;
use regent_config::{Environment, Errors, Loaded, parse, parse_json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn environment(directory: &Path) -> Environment {
    Environment { variables: BTreeMap::new(), current_dir: directory.to_owned() }
}

fn json(text: &str) -> Result<Loaded, Errors> {
    parse_json("caddy.json", text, Path::new("/srv"), &environment(Path::new("/srv")))
}

/// What is wrong with a document, without the lines of its text.
fn errors(text: &str) -> Vec<String> {
    let errors = json(text).err().map_or(Vec::new(), |errors| errors.0);
    errors.into_iter().map(|error| error.message).collect()
}

/// A server at port 8080 with this list of routes.
fn server(routes: &str) -> String {
    format!(
        "{{\"apps\": {{\"http\": {{\"servers\": {{\"srv0\": {{\"listen\": [\":8080\"], \"routes\": {routes}}}}}}}}}}}"
    )
}

/// A route of one handler.
fn handler(handler: &str) -> String {
    server(&format!("[{{\"handle\": [{handler}]}}]"))
}

#[track_caller]
fn same(json_text: &str, caddyfile: &str, directory: &Path) {
    let environment = environment(directory);
    let one =
        parse("Caddyfile", caddyfile, directory, &environment).unwrap_or_else(|errors| panic!("{errors}"));
    let other = parse_json("caddy.json", json_text, directory, &environment)
        .unwrap_or_else(|errors| panic!("{errors}"));
    let (one, other) = (crate::even::config(&one.config), crate::even::config(&other.config));
    assert!(one == other, "{}", crate::even::differences(&one, &other));
}

/// As FrankenPHP's own adapter writes them (caddy/app.go, module.go, workerconfig.go).
/// FrankenPHP's `php_ini` and `env` take texts alone; a value that somebody writes as what it is means the same.
#[test]
fn settings_of_php_may_be_numbers_and_truth_values() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("w.php"), "").unwrap();
    let php = |values: &str| {
        format!(
            r#"{{"apps": {{"frankenphp": {{"php_ini": {{{values}}}, "workers": [{{"file_name": "w.php", "env": {{{values}}}}}]}}, "http": {{"servers": {{}}}}}}}}"#
        )
    };
    let (other, text) =
        (php(r#""a": 12, "b": true, "c": 1.5"#), php(r#""a": "12", "b": "true", "c": "1.5""#));
    let environment = environment(directory.path());
    let config = |text: &str| parse_json("caddy.json", text, directory.path(), &environment).unwrap().config;
    assert_eq!(config(&other), config(&text));
    let nothing = parse_json("caddy.json", &php(r#""a": null"#), directory.path(), &environment).unwrap_err();
    assert!(nothing.to_string().contains("a string or a number is needed here"), "{nothing}");
}

#[test]
fn frankenphp() {
    let app = tempfile::tempdir().unwrap();
    fs::create_dir(app.path().join("public")).unwrap();
    for file in ["index.php", "worker.php", "other.php"] {
        fs::write(app.path().join("public").join(file), "").unwrap();
    }
    let document = r#"{"apps": {
        "frankenphp": {
            "num_threads": 8, "max_threads": 12, "max_wait_time": 10000000000, "max_idle_time": 2000000000, "max_requests": 500,
            "php_ini": {"memory_limit": "256M"},
            "workers": [{"name": "main", "file_name": "public/worker.php", "num": 2, "max_threads": 4,
                "env": {"A": "1"}, "watch": ["./**/*.php"], "max_consecutive_failures": -1}]
        },
        "http": {"servers": {"srv0": {"listen": [":8080"], "routes": [{
            "match": [{"path": ["*.php"]}],
            "handle": [{"handler": "php", "root": "public", "split_path": [".php"], "resolve_root_symlink": false,
                "env": {"B": "{http.request.host}"}, "server_idx": 1,
                "workers": [{"file_name": "other.php", "num": 1, "match_path": ["/api/*"]}],
                "regent": [{"line": ["lane", "slow"]}]}]
        }]}}}
    }}"#;
    let caddyfile = "{\nfrankenphp {\nnum_threads 8\nmax_threads 12\nmax_wait_time 10s\nmax_idle_time 2s\nmax_requests 500\n\
                     php_ini memory_limit 256M\nworker {\nname main\nfile public/worker.php\nnum 2\nmax_threads 4\nenv A 1\n\
                     watch ./**/*.php\nmax_consecutive_failures -1\n}\n}\n}\n:8080 {\n@php path *.php\nphp @php {\nroot public\n\
                     split_path .php\nresolve_root_symlink false\nenv B {host}\nworker {\nfile other.php\nnum 1\nmatch /api/*\n}\n\
                     lane slow\n}\n}";
    same(document, caddyfile, app.path());
    let auto =
        r#"{"apps": {"frankenphp": {"max_threads": -1}, "http": {"servers": {"a": {"listen": [":80"]}}}}}"#;
    assert!(json(auto).is_ok(), "{:?}", errors(auto));
}

#[test]
fn mercure() {
    let document = handler(
        r#"{"handler": "mercure", "anonymous": true, "subscriptions": true, "publisher_jwt": {"key": "secret", "alg": "HS256"},
            "subscriber_jwt": {}, "cors_origins": ["https://a.example"], "heartbeat": "20s",
            "transport": {"name": "bolt", "path": "/srv/m.db", "size": 100}}"#,
    );
    let caddyfile = ":8080 {\nmercure {\nanonymous\nsubscriptions\npublisher_jwt secret HS256\ncors_origins https://a.example\n\
                     heartbeat 20s\ntransport bolt {\npath /srv/m.db\nsize 100\n}\n}\n}";
    same(&document, caddyfile, Path::new("/srv"));
}

#[test]
fn what_caddy_has_no_json_for_has_the_words_of_a_caddyfile() {
    let document = r#"{"apps": {
        "regent": {"options": [{"line": ["frankenphp"], "block": [{"line": ["num_threads", "4"]}]}]},
        "http": {"servers": {"srv0": {"listen": [":8080"], "regent": [{"line": ["min_body_rate", "100"]}], "routes": [
            {"match": [{"regent": [{"line": ["path", "/slow/*"]}]}], "handle": [
                {"handler": "regent", "directive": ["deadline", "3s"]},
                {"handler": "regent", "directive": ["lane", "slow"]}]},
            {"handle": [{"handler": "regent", "directive": ["php_server"], "block": [{"line": ["root", "/srv"]}]}]}
        ]}}}}}"#;
    let caddyfile = "{\nfrankenphp {\nnum_threads 4\n}\nservers :8080 {\nmin_body_rate 100\n}\n}\n:8080 {\n@slow path /slow/*\n\
                     deadline @slow 3s\nlane @slow slow\nphp_server {\nroot /srv\n}\n}";
    same(document, caddyfile, Path::new("/srv"));
}

#[test]
fn routes_that_are_no_sites_stay_in_their_order() {
    let document = server(
        r#"[{"match": [{"host": ["a.example"]}], "handle": [{"handler": "headers", "response": {"set": {"X-A": ["1"]}}}]},
            {"match": [{"path": ["/x"]}, {"method": ["PUT"]}], "handle": [{"handler": "static_response", "body": "x"}], "terminal": true},
            {"handle": [{"handler": "static_response", "body": "any"}]}]"#,
    );
    let document = document.replace("\":8080\"]", "\":8080\"], \"automatic_https\": {\"disable\": true}");
    let loaded = json(&document).unwrap_or_else(|errors| panic!("{errors}"));
    let sites = &loaded.config.servers[0].sites;
    assert_eq!(sites.iter().map(|site| site.hosts.clone()).collect::<Vec<_>>(), [Vec::<String>::new()]);
    let routes = &sites[0].routes;
    assert_eq!(routes.len(), 3);
    assert_eq!(routes[1].matchers.len(), 2, "either is enough");
    assert!(loaded.config.servers[0].tls.is_none());
}

#[test]
fn a_host_has_https_unless_it_is_disabled() {
    let routes = r#"[{"match": [{"host": ["localhost"]}], "handle": [], "terminal": true}]"#;
    let loaded = json(&server(routes)).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(loaded.config.servers[0].tls.is_some(), "as Caddy has it at any port but that of HTTP");
    let document =
        server(routes).replace("\":8080\"]", "\":8080\"], \"automatic_https\": {\"skip\": [\"localhost\"]}");
    let loaded = json(&document).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(loaded.config.servers[0].tls.is_none());
}

#[test]
fn the_port_of_http_has_no_tls() {
    let document = server(r#"[{"match": [{"host": ["localhost"]}], "terminal": true}]"#);
    let loaded =
        json(&document.replace("\":8080\"", "\":80\", \":443\"")).unwrap_or_else(|errors| panic!("{errors}"));
    let has_tls =
        loaded.config.servers.iter().map(|server| (format!("{:?}", server.listen), server.tls.is_some()));
    assert_eq!(has_tls.collect::<Vec<_>>(), [("Tcp([::]:80)".into(), false), ("Tcp([::]:443)".into(), true)]);
}

#[test]
fn hidden_words_are_no_caddyfile() {
    for text in [
        ":80 {\n\"json route\" {\n}\n}",
        ":80 {\n\"json errors\" {\n}\n}",
        ":80 {\n@m \"error status\" 404\n}",
        ":80 {\nheader {\n\"json at once\"\n}\n}",
    ] {
        let found = parse("Caddyfile", text, Path::new("/srv"), &environment(Path::new("/srv")));
        assert!(found.is_err(), "{text}");
    }
}

#[test]
fn mistakes_name_the_place_in_the_document() {
    let cases = [
        (handler(r#"{"handler": "waf"}"#), "`waf` is no handler that Regent has", "routes[0].handle[0]"),
        (
            handler(r#"{"handler": "file_server", "rot": "/srv"}"#),
            "unknown key `rot`",
            "routes[0].handle[0].rot",
        ),
        (
            handler(r#"{"handler": "file_server", "root": 5}"#),
            "a string is needed here, not a number",
            "routes[0].handle[0].root",
        ),
        (handler(r#"{"handler": "push"} {}"#), "this is no JSON", ""),
        (
            server(r#"[{"match": [{"maxmind_geolocation": {}}]}]"#),
            "`maxmind_geolocation` is no condition",
            "routes[0].match[0].maxmind_geolocation",
        ),
        (
            server(r#"[{"match": [{"path_regexp": {"pattern": "("}}], "handle": []}]"#),
            "is no regular expression",
            "path_regexp",
        ),
        (
            server(r#"[{"handle": [{"handler": "reverse_proxy"}]}]"#),
            "`reverse_proxy` needs an upstream",
            "routes[0].handle[0]",
        ),
        (r#"{"apps": {"layer4": {}}}"#.to_owned(), "third party's module", "apps.layer4"),
        (r#"{"app": {}}"#.to_owned(), "unknown key `app` of the document", "app"),
        (r#"{"apps": {}, "apps": {}}"#.to_owned(), "`apps` is written twice", ""),
        (server(r#"[{"handle": [], "handle ": []}]"#), "unknown key `handle `", "routes[0]"),
    ];
    for (document, message, place) in cases {
        let found = errors(&document);
        assert!(
            found.iter().any(|error| error.contains(message) && error.contains(place)),
            "{document}: {found:?}"
        );
    }
    let shown = json("{\n  \"apps\": {\n    \"http\": {\"serverz\": {}}\n  }\n}").unwrap_err().to_string();
    assert!(
        shown.starts_with("caddy.json:3:14: unknown key `serverz` of the app `http` (its keys: "),
        "{shown}"
    );
    assert!(shown.contains("(at apps.http.serverz)"), "{shown}");
}

#[test]
fn warnings_are_those_of_the_caddyfile() {
    let found = json(&handler(r#"{"handler": "vulcain", "early_hints": true}"#)).unwrap().warnings;
    assert!(found[0].to_string().contains("`vulcain` has no effect"), "{found:?}");
    let found = json(&handler(r#"{"handler": "static_response", "body": "{path}"}"#)).unwrap().warnings;
    assert!(found[0].to_string().contains("write {http.request.uri.path} (at apps.http"), "{found:?}");
}

#[test]
fn ids_are_for_the_admin_api() {
    let document = handler(r#"{"@id": "files", "handler": "file_server", "browse": {"@id": "b"}}"#).replacen(
        '{',
        "{\"@id\": \"root\", ",
        1,
    );
    assert!(json(&document).is_ok(), "{:?}", errors(&document));
}

#[test]
fn hostile_nesting_is_an_error_and_not_a_crash() {
    let nested = |depth: usize, (before, inner, after): (&str, &str, &str)| {
        [before.repeat(depth), inner.to_owned(), after.repeat(depth)].concat()
    };
    let subroutes =
        (r#"{"handler": "subroute", "routes": [{"handle": ["#, r#"{"handler": "static_response"}"#, "]}]}");
    let nots = (r#"{"not": ["#, "{}", "]}");
    let lines = (r#"{"line": ["route"], "block": ["#, r#"{"line": ["abort"]}"#, "]}");
    let policies = (r#"{"policy": "query", "key": "a", "fallback": "#, r#"{"policy": "first"}"#, "}");
    let proxy = r#"{"handler": "reverse_proxy", "upstreams": [{"dial": ":1"}], "load_balancing": {"selection_policy": "#;
    let documents = |depth: usize| {
        [
            handler(&nested(depth, subroutes)),
            server(&format!("[{{\"match\": [{}]}}]", nested(depth, nots))),
            handler(&format!(
                r#"{{"handler": "regent", "directive": ["route"], "block": [{}]}}"#,
                nested(depth, lines)
            )),
            handler(&format!("{proxy}{}}}}}", nested(depth, policies))),
            nested(depth, ("[", "", "]")),
        ]
    };
    for document in documents(100_000).iter().chain(&documents(300)) {
        assert!(!errors(document).is_empty(), "{}", &document[..100]);
    }
    // As deep as a document may be, on a thread with as little stack as those of the admin API.
    for depth in [30, 48, 100, 120, 240] {
        for document in documents(depth) {
            let small = std::thread::Builder::new().stack_size(2 << 20);
            small.spawn(move || drop(json(&document))).unwrap().join().unwrap();
        }
    }
}

#[test]
fn the_examples_of_the_page_are_right() {
    let page = fs::read_to_string("../../docs/json.md").unwrap();
    let examples: Vec<_> =
        page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() > 2, "{examples:?}");
    for example in examples {
        let loaded = json(example).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }
}

/// Documents to be cut and changed.
fn documents() -> Vec<String> {
    let files = fs::read_dir("tests/json").unwrap().map(|entry| entry.unwrap().path());
    let mut documents: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|ending| ending == "json")).collect();
    documents.sort();
    documents.into_iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn no_part_of_a_document_is_a_crash() {
    for text in documents() {
        let step = (text.len() / 60).max(1);
        for cut in (0..text.len()).step_by(step).filter(|cut| text.is_char_boundary(*cut)) {
            let is_whole = text[cut..].trim().is_empty();
            assert!(is_whole || !errors(&text[..cut]).is_empty(), "{}", &text[..cut]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// A word or a value in the place of another: a configuration, or errors that say something.
    #[test]
    fn no_change_of_a_document_is_a_crash(which in 0_usize..1000, at in 0_usize..10_000, by in 0_usize..12) {
        let documents = documents();
        let text = &documents[which % documents.len()];
        let changed = changed(text, at, by);
        if let Err(errors) = json(&changed) {
            prop_assert!(!errors.0.is_empty());
            prop_assert!(errors.0.iter().all(|error| !error.message.is_empty() && !error.to_string().is_empty()));
        }
    }

    #[test]
    fn any_text_is_a_document_or_an_error(text in "[\\[\\]{}\":,0-9a-zé\\\\ -]{0,60}") {
        if let Err(errors) = json(&text) {
            prop_assert!(!errors.to_string().is_empty());
        }
    }
}

/// The document with one of its values, or one of its names, being something else.
fn changed(text: &str, at: usize, by: usize) -> String {
    const OTHERS: &[&str] = &[
        "null",
        "true",
        "-1",
        "99999999999999999999",
        "1e400",
        "\"\"",
        "\"{\"",
        "\"é\\u0000\"",
        "[]",
        "{}",
        "[null]",
        "[[]]",
    ];
    let mut document: serde_json::Value = serde_json::from_str(text).unwrap();
    let other = serde_json::from_str(OTHERS[by]).unwrap_or(serde_json::Value::Null);
    let count = count(&document);
    let mut left = at % count;
    replace(&mut document, &mut left, &other);
    document.to_string()
}

fn count(value: &serde_json::Value) -> usize {
    1 + match value {
        serde_json::Value::Array(items) => items.iter().map(count).sum(),
        serde_json::Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

fn replace(value: &mut serde_json::Value, left: &mut usize, other: &serde_json::Value) -> bool {
    if *left == 0 {
        *value = other.clone();
        return true;
    }
    *left -= 1;
    match value {
        serde_json::Value::Array(items) => items.iter_mut().any(|item| replace(item, left, other)),
        serde_json::Value::Object(members) => members.values_mut().any(|member| replace(member, left, other)),
        _ => false,
    }
}

#[test]
fn the_program_that_sets_records_is_called_with_its_arguments() {
    let document = |provider: &str| {
        let route = r#"{"match": [{"host": ["*.example.com"]}], "handle": [], "terminal": true}"#;
        let issuer = format!(r#"{{"module": "acme", "challenges": {{"dns": {{"provider": {provider}}}}}}}"#);
        format!(
            r#"{{"apps": {{"http": {{"servers": {{"srv0": {{"listen": [":443"], "routes": [{route}]}}}}}},
            "tls": {{"automation": {{"policies": [{{"issuers": [{issuer}]}}]}}}}}}}}"#
        )
    };
    let directory = tempfile::tempdir().unwrap();
    let caddyfile = "*.example.com {\n\ttls {\n\t\tdns exec set-record zone token\n\t}\n}\n";
    let provider = r#"{"name": "exec", "program": "set-record", "arguments": ["zone", "token"]}"#;
    same(&document(provider), caddyfile, directory.path());
    let wrong = errors(&document(r#"{"name": "exec", "program": "set-record", "zone": "x"}"#));
    assert!(wrong.iter().any(|error| error.contains("`zone`")), "{wrong:?}");
}
