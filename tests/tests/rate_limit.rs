//! `rate_limit`: who asks too often is refused.
#![forbid(unsafe_code)]

use regent_tests::{Response, Server, Setup, until};
use std::fs;

/// Counts its requests.
const COUNTER: &str = "<?php file_put_contents(__DIR__ . '/count', '.', FILE_APPEND); echo 'served';";
/// A window that no test outlives.
const LONG: &str = "window 1h";

fn ask(server: &Server, client: &str) -> Response {
    server.request("GET", "/").header("X-Client", client).send()
}

#[test]
fn who_asks_too_often_is_refused_before_php_and_nobody_else() {
    let server = Setup::new()
        .admin("ADMIN")
        .file("index.php", COUNTER)
        .site(&format!(
            "rate_limit {{\nzone clients {{\nmatch {{\nheader X-Client *\n}}\nkey {{header.X-Client}}\nevents 3\n{LONG}\n}}\nlog_key\n}}\nphp_server"
        ))
        .start();
    for _ in 0..3 {
        assert_eq!(ask(&server, "a").expect(200).text(), "served");
    }
    for _ in 0..5 {
        let refused = ask(&server, "a").expect(429);
        let wait: u64 = refused.header("Retry-After").unwrap().parse().unwrap();
        assert!((3500..=3600).contains(&wait), "{wait}");
    }
    assert_eq!(ask(&server, "b").expect(200).text(), "served");
    assert_eq!(fs::read_to_string(server.root().join("count")).unwrap(), "....");
    let figure = |name| server.admin().metric(name, &[("zone", "clients")]);
    assert_eq!(figure("caddy_rate_limit_requests_total"), 9.0);
    assert_eq!(figure("caddy_rate_limit_declined_requests_total"), 5.0);
    assert_eq!(figure("caddy_rate_limit_keys_total"), 2.0);
    server.wait_for_log("rate limit exceeded");
    let log = server.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("rate limit exceeded")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("\"zone\":\"clients\"") && lines[0].contains("\"key\":\"a\""), "{lines:?}");
    server.stop();
}

#[test]
fn it_is_served_again_when_the_window_has_passed() {
    let server = Setup::new()
        .file("index.php", COUNTER)
        .site("rate_limit {\nzone all {\nevents 1\nwindow 500ms\n}\n}\nphp_server")
        .start();
    let served = |_| (server.get("/").status == 200).then_some(());
    (0..3).for_each(|round| until("a request that is served", || served(round)));
    server.stop();
}

#[test]
fn only_requests_that_match_count_and_the_error_has_a_page() {
    let server = Setup::new()
        .file("index.php", COUNTER)
        .site(&format!(
            "rate_limit {{
                zone login {{
                    match {{
                        method POST
                        path /index.php*
                    }}
                    events 1
                    {LONG}
                }}
            }}
            handle_errors 429 {{
                respond \"{{err.status_code}} of {{http.rate_limit.exceeded.name}}\"
            }}
            php_server"
        ))
        .start();
    let post = |target| server.request("POST", target).body("text/plain", "x").send();
    for _ in 0..3 {
        server.get("/index.php").expect(200);
    }
    post("/index.php").expect(200);
    let refused = post("/index.php/the-same-script").expect(429);
    assert_eq!(refused.text(), "429 of login");
    assert!(refused.header("Retry-After").is_some());
    server.get("/index.php").expect(200);
    server.stop();
}

#[test]
fn networks_of_ipv6_count_together_where_they_are_asked_to() {
    let server = Setup::new()
        .site(&format!(
            "rate_limit {{\nzone networks {{\nkey {{header.X-Client}}\nevents 1\n{LONG}\nipv6_prefix 64\n}}\n}}\nrespond hello"
        ))
        .start();
    ask(&server, "2001:db8::1").expect(200);
    ask(&server, "2001:db8::ffff:1").expect(429);
    ask(&server, "2001:db8:0:1::1").expect(200);
    ask(&server, "192.0.2.1").expect(200);
    ask(&server, "192.0.2.2").expect(200);
    ask(&server, "::ffff:192.0.2.2").expect(429);
    server.stop();
}

#[test]
fn a_zone_counts_on_when_the_configuration_is_loaded_anew() {
    let caddyfile = |events, body| {
        format!(
            "{{\n\tadmin ADMIN\n}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\trate_limit {{\n\t\tzone all {{\n\t\t\tkey {{header.X-Client}}\n\t\t\tevents {events}\n\t\t\t\
             {LONG}\n\t\t}}\n\t}}\n\trespond {body}\n}}\n"
        )
    };
    let server = Setup::new().caddyfile(&caddyfile(2, "before")).start();
    assert_eq!(ask(&server, "a").expect(200).text(), "before");
    ask(&server, "a").expect(200);
    server.write_caddyfile(&caddyfile(3, "after"));
    server.admin().request("POST", "/regent/reload").send().expect(200);
    assert_eq!(ask(&server, "a").expect(200).text(), "after");
    ask(&server, "a").expect(429);
    server.stop();
}

#[test]
fn a_request_that_starts_over_for_its_password_counts_once() {
    // ada:secret
    let hash = "$2b$05$4u62EArrjTXMr62u.HHbw.bIq/GQjBO/KHZHeeXFR8EJKgts7zjIC";
    let server = Setup::new()
        .site(&format!(
            "rate_limit {{\nzone all {{\nkey {{header.X-Client}}\nevents 2\n{LONG}\n}}\n}}\nbasic_auth {{\nada {hash}\n}}\nrespond hello"
        ))
        .start();
    let wrong = || {
        let request = server.request("GET", "/").header("X-Client", "a");
        request.header("Authorization", "Basic YWRhOndyb25n").send()
    };
    wrong().expect(401);
    wrong().expect(401);
    wrong().expect(429);
    server.stop();
}
