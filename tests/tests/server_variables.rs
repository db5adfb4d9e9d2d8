//! `$_SERVER` and the environment, as applications of other servers expect them.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup};
use serde_json::Value;

const VARIABLES: &str = "<?php echo json_encode($_SERVER);";
/// "ada:open sesame"
const CREDENTIALS: &str = "Basic YWRhOm9wZW4gc2VzYW1l";

fn variables(server: &Server) -> Value {
    server.request("GET", "/").header("Authorization", CREDENTIALS).send().expect(200).json()
}

#[test]
fn wordpress_did_not_know_the_server_and_put_index_php_into_permalinks() {
    // As wp-includes/vars.php asks.
    let script = "<?php $s = $_SERVER['SERVER_SOFTWARE'];
        echo str_contains($s, 'Caddy') || str_contains($s, 'FrankenPHP') ? 'known' : 'unknown', ' ', $s;";
    let server = Setup::new().file("index.php", script).start();
    let answer = server.get("/").expect(200);
    assert!(answer.text().starts_with("known FrankenPHP (Regent/"), "{}", answer.text());
    assert_eq!(answer.header("Server"), Some("Regent"), "clients are not told another name");
    server.stop();
}

#[test]
fn an_empty_remote_user_passed_for_a_user() {
    let server = Setup::new().file("index.php", VARIABLES).start();
    let vars = variables(&server);
    assert_eq!(vars["PHP_AUTH_USER"], "ada");
    assert!(vars.get("REMOTE_USER").is_none(), "nobody has proved the name: {vars:#}");
    server.stop();
}

#[test]
fn what_a_proxy_knows_of_users_and_tls_comes_through_env() {
    let site = "php_server {
        env REMOTE_USER {header.X-User}
        env AUTH_TYPE Negotiate
        env SSL_PROTOCOL TLSv1.3
        env REMOTE_ADDR spoofed
    }";
    let server = Setup::new().site(site).file("index.php", VARIABLES).start();
    let vars: Value = server.request("GET", "/").header("X-User", "grace").send().expect(200).json();
    assert_eq!(
        [&vars["REMOTE_USER"], &vars["AUTH_TYPE"], &vars["SSL_PROTOCOL"]],
        ["grace", "Negotiate", "TLSv1.3"]
    );
    assert_eq!([&vars["SSL_CIPHER"], &vars["REMOTE_ADDR"]], ["", "127.0.0.1"]);
    server.stop();
}

#[test]
fn variables_of_tls_were_missing_without_tls() {
    let server = Setup::new().file("index.php", VARIABLES).start();
    let vars = variables(&server);
    for name in ["SSL_PROTOCOL", "SSL_CIPHER", "AUTH_TYPE", "REMOTE_IDENT"] {
        assert_eq!(vars[name], "", "{name}");
    }
    assert!(vars.get("HTTPS").is_none(), "`isset` alone must not make a site take itself for encrypted");
    server.stop();
}

/// At boot and in a request: `$_SERVER`, `getenv()` and `$_ENV` of TIER, and of what only the block has.
const WORKER: &str = "<?php
    $look = fn () => [$_SERVER['TIER'] ?? null, getenv('TIER'), $_ENV['TIER'] ?? null, $_SERVER['SITE'] ?? null, getenv('SITE')];
    $boot = $look();
    while (frankenphp_handle_request(function () use ($boot, $look) { echo json_encode([$boot, $look()]); })) {}";

#[test]
fn the_env_of_a_worker_was_gone_in_its_requests() {
    let server = Setup::new()
        .site("php_server {\nenv TIER block\nenv SITE here\nworker {\nfile ROOT/index.php\nnum 1\nenv TIER worker\n}\n}")
        .php_options("num_threads 2")
        .file("index.php", WORKER)
        .file("classic.php", "<?php echo json_encode([$_SERVER['TIER'], getenv('TIER'), $_SERVER['SITE']]);")
        .start();
    let as_written = serde_json::json!(["worker", "worker", "worker", "here", "here"]);
    for _ in 0..2 {
        assert_eq!(server.get("/").expect(200).json(), serde_json::json!([as_written, as_written]));
        let classic = server.get("/classic.php").expect(200).json();
        assert_eq!(classic, serde_json::json!(["block", "block", "here"]), "it is the worker's own");
    }
    server.stop();
}

#[test]
fn the_env_of_a_worker_of_all_sites_was_gone_in_its_requests() {
    let server = Setup::new()
        .php_options("num_threads 2\nworker {\nfile ROOT/index.php\nnum 1\nenv TIER worker\n}")
        .site("php_server {\nenv SITE here\n}")
        .file("index.php", WORKER)
        .start();
    let answer = server.get("/").expect(200).json();
    assert_eq!(answer[0], serde_json::json!(["worker", "worker", "worker", null, false]));
    assert_eq!(answer[1], serde_json::json!(["worker", "worker", "worker", "here", "here"]));
    server.stop();
}

#[test]
fn the_env_of_a_site_lost_against_that_of_a_worker_of_all_sites() {
    let server = Setup::new()
        .caddyfile(
            "{\n\tadmin off\n\tfrankenphp {\n\t\tnum_threads 2\n\t\tworker {\n\t\t\tfile ROOT/index.php\n\t\t\tnum 1\n\t\t\tenv TIER worker\n\t\t}\n\t}\n}\n\
             http://one.example:PORT {\n\tbind LOOPBACK\n\troot ROOT\n\tphp_server {\n\t\tenv TIER one\n\t}\n}\n\
             http://two.example:PORT {\n\tbind LOOPBACK\n\troot ROOT\n\tphp_server {\n\t\tenv TIER {host}\n\t\tenv SITE two\n\t}\n}\n\
             http://:PORT {\n\tbind LOOPBACK\n\troot ROOT\n\tphp_server\n}\n",
        )
        .file("index.php", WORKER)
        .start();
    let boot = serde_json::json!(["worker", "worker", "worker", null, false]);
    for (host, tier, site) in [
        ("one.example", "one", None),
        ("two.example", "two.example", Some("two")),
        ("three.example", "worker", None),
    ] {
        let answer = server.request("GET", "/").header("Host", host).send().expect(200).json();
        let unset = serde_json::Value::from(false);
        // `$_ENV` of a worker is that of its boot.
        let expected = serde_json::json!([tier, tier, "worker", site, site.map_or(unset, Into::into)]);
        assert_eq!(answer, serde_json::json!([boot, expected]), "{host}");
    }
    server.stop();
}
