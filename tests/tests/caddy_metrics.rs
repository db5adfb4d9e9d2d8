//! Figures under Caddy's names: of requests of all kinds, for dashboards that are there already.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, TlsClient, Upstream, until};

fn scrape(server: &Server) -> String {
    server.admin().get("/metrics").expect(200).text()
}

/// The sum of all series with this name and these labels; 0 without any.
fn sum(server: &Server, name: &str, labels: &[&str]) -> f64 {
    let text = scrape(server);
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix('{')?;
        let (found, value) = rest.rsplit_once("} ")?;
        labels
            .iter()
            .all(|label| found.split(',').any(|own| own == *label))
            .then(|| value.parse::<f64>().unwrap())
    });
    values.sum()
}

/// Figures are complete when the last byte has been sent, which a client may read before.
fn wait_for(server: &Server, name: &str, labels: &[&str], expected: f64) {
    until(&format!("{name} of {labels:?} is {expected}"), || {
        (sum(server, name, labels) == expected).then_some(())
    });
}

fn setup(options: &str) -> Setup {
    Setup::new().admin("ADMIN").global_options(options)
}

#[test]
fn nothing_is_counted_unless_asked_for() {
    let server = setup("debug").site("respond ok").start();
    server.get("/").expect(200);
    let text = scrape(&server);
    assert!(!text.contains("caddy_http_"), "{text}");
    assert!(text.contains("caddy_config_last_reload_successful 1"), "{text}");
    server.stop();
}

#[test]
fn requests_that_no_engine_answers_are_counted() {
    let site = "redir /old /new
    error /broken 500
    respond /text hello 201
    file_server";
    let server = setup("metrics").file("a.txt", "0123456789").site(site).start();
    let before = sum(&server, "caddy_http_requests_total", &[]);
    for (target, status) in [("/text", 201), ("/old", 302), ("/none", 404), ("/broken", 500)] {
        server.get(target).expect(status);
    }
    server.request("PURGE", "/text").send().expect(201);
    server.request("HEAD", "/a.txt").send().expect(200);
    let place = ["handler=\"subroute\"", "server=\"srv0\""];
    wait_for(&server, "caddy_http_requests_total", &place, before + 6.0);
    wait_for(&server, "caddy_http_request_errors_total", &place, 2.0);
    wait_for(&server, "caddy_http_requests_in_flight", &place, 0.0);
    for (code, method, bytes) in [
        ("201", "GET", 5.0),
        ("201", "OTHER", 5.0),
        ("302", "GET", 0.0),
        ("404", "GET", 14.0),
        ("500", "GET", 26.0),
        ("200", "HEAD", 0.0),
    ] {
        let (code, method) = (format!("code=\"{code}\""), format!("method=\"{method}\""));
        let labels = [place[0], place[1], &code, &method];
        let found = |name: &str| sum(&server, &format!("caddy_http_{name}"), &labels);
        assert_eq!(found("response_size_bytes_sum"), bytes, "{labels:?}");
        assert!(found("request_size_bytes_sum") > 20.0, "{labels:?}");
        for histogram in ["request_duration", "response_duration"] {
            assert_eq!(found(&format!("{histogram}_seconds_count")), 1.0, "{labels:?}");
        }
        let within = |name: &str, bound: &str| {
            let bound = format!("le=\"{bound}\"");
            let labels: Vec<&str> = labels.into_iter().chain([bound.as_str()]).collect();
            sum(&server, &format!("caddy_http_{name}_bucket"), &labels)
        };
        assert_eq!(within("response_size_bytes", "256"), 1.0, "{labels:?}");
        assert_eq!(within("response_size_bytes", "+Inf"), 1.0, "{labels:?}");
    }
    server.stop();
}

#[test]
fn requests_to_php_and_to_other_servers_are_counted_until_they_end() {
    let upstream = Upstream::answering(|_| b"HTTP/1.1 203 OK\r\nContent-Length: 2\r\n\r\nok".to_vec());
    let site = format!("reverse_proxy /other {}\nphp_server", upstream.address());
    let script = "<?php http_response_code(202); echo str_repeat('x', 1000); flush();
        while (isset($_GET['gate']) && !file_exists(__DIR__ . '/go')) { usleep(1000); }";
    let server = setup("servers {\nname web\nmetrics\n}").file("index.php", script).site(&site).start();
    let before = sum(&server, "caddy_http_requests_total", &["server=\"web\""]);
    assert!(before > 0.0);
    let mut waiting = server.ask("/?gate");
    wait_for(&server, "caddy_http_requests_in_flight", &[], 1.0);
    server.write("go", "");
    waiting.response().expect(202);
    server.post("/", "text/plain", "x".repeat(5000)).expect(202);
    server.get("/other").expect(203);
    wait_for(&server, "caddy_http_requests_in_flight", &[], 0.0);
    assert_eq!(sum(&server, "caddy_http_requests_total", &["server=\"web\""]), before + 3.0);
    let size = |name: &str, code: &str, method: &str| {
        let labels = [format!("code=\"{code}\""), format!("method=\"{method}\"")];
        sum(&server, &format!("caddy_http_{name}_size_bytes_sum"), &[&labels[0], &labels[1]])
    };
    assert_eq!(size("response", "202", "GET"), 1000.0);
    assert!(size("request", "202", "POST") > 5000.0);
    assert_eq!(size("response", "203", "GET"), 2.0);
    server.stop();
}

#[test]
fn a_client_that_leaves_is_counted_as_such() {
    let script = "<?php file_put_contents(__DIR__ . '/started', 'x'); while (!file_exists(__DIR__ . '/go')) { usleep(1000); }";
    let server = setup("metrics").file("index.php", script).start();
    let waiting = server.ask("/");
    server.wait_for_file("started");
    drop(waiting);
    let left = ["code=\"499\"", "method=\"GET\""];
    wait_for(&server, "caddy_http_request_duration_seconds_count", &left, 1.0);
    assert_eq!(sum(&server, "caddy_http_response_duration_seconds_count", &left), 0.0);
    server.write("go", "");
    server.stop();
}

#[test]
fn hosts_that_no_site_names_are_counted_together_unless_they_are_observed() {
    let caddyfile = |options: &str| {
        format!(
            "{{\nadmin ADMIN\ndefault_bind LOOPBACK\nmetrics {{\nper_host\n{options}\n}}\n}}\nhttp://:PORT {{\nrespond any\n}}\n\
             http://a.test:PORT, http://*.b.test:PORT {{\nrespond named\n}}\n"
        )
    };
    let server = Setup::new().caddyfile(&caddyfile("")).start();
    let ask = || {
        for host in ["a.test", "A.test:8000", "x.b.test", "evil.test"] {
            server.request("GET", "/").header("Host", host).send().expect(200);
        }
    };
    let before = sum(&server, "caddy_http_requests_total", &["host=\"_other\""]);
    ask();
    wait_for(&server, "caddy_http_requests_total", &["host=\"a.test\""], 2.0);
    wait_for(&server, "caddy_http_requests_total", &["host=\"_other\""], before + 2.0);
    assert!(!scrape(&server).contains("evil.test"));

    server.write_caddyfile(&caddyfile("observe_catchall_hosts"));
    server.admin().request("POST", "/regent/reload").send().expect(200);
    ask();
    wait_for(&server, "caddy_http_requests_total", &["host=\"a.test\""], 4.0);
    wait_for(&server, "caddy_http_requests_total", &["host=\"x.b.test\""], 1.0);
    wait_for(&server, "caddy_http_requests_total", &["host=\"evil.test\""], 1.0);
    assert_eq!(sum(&server, "caddy_http_requests_in_flight", &["host=\"evil.test\""]), 0.0);

    server.write_caddyfile(&caddyfile("").replace("per_host", ""));
    server.admin().request("POST", "/regent/reload").send().expect(200);
    ask();
    wait_for(&server, "caddy_http_requests_total", &[], 4.0);
    assert!(!scrape(&server).contains("host=\""));
    server.stop();
}

#[test]
fn redirects_to_https_have_a_server_of_their_own() {
    let caddyfile = "{
        admin ADMIN
        skip_install_trust
        default_bind LOOPBACK
        http_port PORT
        https_port TLSPORT
        metrics
    }
    localhost {
        bind LOOPBACK
        respond ok
    }";
    let server = Setup::new().caddyfile(caddyfile).env("XDG_DATA_HOME", "DIRECTORY/data").start();
    let redirects = ["handler=\"static_response\"", "server=\"remaining_auto_https_redirects\""];
    let before = sum(&server, "caddy_http_requests_total", &redirects);
    server.request("GET", "/").header("Host", "localhost").send().expect(308);
    wait_for(&server, "caddy_http_requests_total", &redirects, before + 1.0);
    let mut secured = TlsClient::credulous().connect(server.tls_address(), "localhost");
    secured.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    secured.response().expect(200);
    wait_for(&server, "caddy_http_requests_total", &["handler=\"subroute\"", "server=\"srv0\""], 1.0);
    server.stop();
}

#[test]
fn what_became_of_reloads_and_calls_of_the_admin_api_is_told() {
    let server = setup("debug").site("respond ok").start();
    let loaded = |value: f64| wait_until_gauge(&server, value);
    loaded(1.0);
    let began = gauge(&server, "caddy_config_last_reload_success_timestamp_seconds");
    assert!(began > 1.7e9);
    server.admin().request("POST", "/load").body("text/caddyfile", "nonsense {").send().expect(400);
    loaded(0.0);
    assert_eq!(gauge(&server, "caddy_config_last_reload_success_timestamp_seconds"), began);
    server.admin().request("POST", "/regent/reload").send().expect(200);
    loaded(1.0);
    let calls = |name: &str, labels: &[&str]| sum(&server, &format!("caddy_admin_http_{name}_total"), labels);
    let refused = ["handler=\"admin\"", "method=\"POST\"", "path=\"/load\""];
    assert_eq!(calls("requests", &[&refused[..], &["code=\"400\""]].concat()), 1.0);
    assert_eq!(calls("request_errors", &refused), 1.0);
    server.admin().get("/config/none/none").expect(404);
    assert_eq!(calls("requests", &["path=\"/config/\"", "code=\"404\""]), 1.0);
    assert!(calls("requests", &["path=\"/metrics\"", "code=\"200\""]) > 3.0);
    server.stop();
}

#[test]
fn a_site_has_the_metrics_at_a_path_of_its_own() {
    let site = "metrics /metrics {
        disable_openmetrics
    }
    file_server";
    let server = setup("metrics").admin("off").site(site).start();
    let page = server.get("/metrics").expect(200);
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = page.text();
    assert!(text.contains("regent_build_info{") && text.contains("caddy_http_requests_total{"), "{text}");
    assert!(
        text.contains("caddy_http_requests_in_flight{handler=\"subroute\",server=\"srv0\"} 1\n"),
        "{text}"
    );
    let head = server.request("HEAD", "/metrics").send().expect(200);
    assert!(head.header("content-length").is_some() && head.text().is_empty());
    server.get("/x").expect(404);
    server.stop();
}

fn gauge(server: &Server, name: &str) -> f64 {
    let text = scrape(server);
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in:\n{text}"))
}

fn wait_until_gauge(server: &Server, value: f64) {
    let name = "caddy_config_last_reload_successful";
    until(&format!("{name} is {value}"), || (gauge(server, name) == value).then_some(()));
}
