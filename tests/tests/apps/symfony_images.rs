//! Symfony as its images start it: through their entry points, with their variables and command lines.
#![forbid(unsafe_code)]

use regent_tests::apps::{copy_tree, fixture, packages_of};
use regent_tests::mercure::{HUB, SECRET, publish, subscribe};
use regent_tests::{Admin, Conn, Server, Setup, TlsClient, Upstream, until};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

/// The application in the site's root, which is the working directory; its front controller is a worker's. `command`: what
/// stands behind `frankenphp`.
fn image(command: &[&str], environment: &[(&str, &str)]) -> Setup {
    let library = packages_of("symfony").join("usr/share/php").display().to_string();
    let setup = Setup::new();
    let root = setup.root();
    copy_tree(&fixture("symfony"), &root);
    fs::rename(root.join("public/worker.php"), root.join("public/index.php")).expect("the directory is ours");
    fs::write(root.join("public/style.css"), "a { color: red }").expect("the directory is ours");
    fs::write(root.join("public/large.css"), "a { color: red }".repeat(1000)).expect("the directory is ours");
    // Deprecations are of this Symfony's age, not of the server.
    fs::write(setup.directory().join("php.ini"), "error_reporting = 8191\n").expect("the directory is ours");
    let start = format!("cd '{0}' && exec sh '{0}/frankenphp/entrypoint' \"$@\"", root.display());
    let setup = setup
        .launcher(&["sh", "-c", &start, "sh"])
        .arguments(command)
        .env("SYMFONY_LIBRARY", &library)
        .env("PHPRC", "DIRECTORY/php.ini")
        .env("APP_DIRECTORY", "ROOT")
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .env("XDG_CONFIG_HOME", "DIRECTORY/config")
        .env("MERCURE_PUBLISHER_JWT_KEY", SECRET)
        .env("MERCURE_SUBSCRIBER_JWT_KEY", SECRET);
    environment.iter().fold(setup, |setup, (name, value)| setup.env(name, value))
}

/// Goes through the application.
fn check_application(server: &Server) {
    assert!(server.get("/?name=%3CAda%3E").expect(200).text().contains("<h1>Hello, &lt;Ada&gt;</h1>"));
    let created = server.post("/notes", "application/json", r#"{"title":"New"}"#).expect(201);
    assert_eq!(created.header("location"), Some("/notes/7"));
    server.get("/notes/none").expect(404);
    server.get("/failure").expect(500);
    let probe = server.get("/probe?x=1").expect(200).json();
    assert_eq!((&probe["uri"], &probe["base_url"]), (&"/probe?x=1".into(), &"".into()), "{probe}");
}

/// Publishes what a subscriber gets.
fn check_hub(server: &Server) {
    let (mut subscriber, _) = subscribe(server, "topic=a-topic", "");
    publish(server, &[("topic", "a-topic"), ("data", "some news")]).expect(200);
    subscriber.read_until("data: some news");
}

#[test]
fn an_image_serves_behind_a_proxy() {
    // `SERVER_NAME` as the documentation has it for servers behind a proxy.
    let environment = [
        ("SERVER_NAME", ":PORT"),
        ("CADDY_GLOBAL_OPTIONS", "default_bind LOOPBACK\n\tauto_https off\n\tadmin localhost:TLSPORT"),
    ];
    let command = ["frankenphp", "run", "--config", "frankenphp/Caddyfile"];
    let server = image(&command, &environment).start();
    // The entry point asks the application.
    server.wait_for_log("ready: App\\Kernel");
    check_application(&server);
    check_hub(&server);
    let page = server.get("/").expect(200);
    assert_eq!(page.header("permissions-policy"), Some("browsing-topics=()"));
    assert_eq!(server.get("/style.css").expect(200).text(), "a { color: red }");
    let coded = server.request("GET", "/large.css").header("Accept-Encoding", "zstd, br, gzip").send();
    assert_eq!(coded.expect(200).header("content-encoding"), Some("zstd"));
    server.get("/?authorization=secret").expect(200);
    server.wait_for_log("authorization=REDACTED");
    // The image's check of its health.
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, server.tls_address().port()));
    Admin::new(admin).get("/metrics").expect(200);
    server.stop();
}

#[test]
fn options_alone_are_those_of_run() {
    let environment = [
        ("SERVER_NAME", ":PORT"),
        ("CADDY_GLOBAL_OPTIONS", "default_bind LOOPBACK\n\tauto_https off\n\tadmin off"),
    ];
    let server = image(&["--config", "frankenphp/Caddyfile"], &environment).start();
    check_application(&server);
    server.stop();
}

#[test]
fn an_image_for_development_serves_https_and_follows_files() {
    let environment = [
        ("SERVER_NAME", "localhost, php:PORT"),
        (
            "CADDY_GLOBAL_OPTIONS",
            "admin ADMIN\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT",
        ),
        ("FRANKENPHP_WORKER_CONFIG", "watch"),
        ("FRANKENPHP_SITE_CONFIG", "hot_reload"),
        ("MERCURE_EXTRA_DIRECTIVES", "demo"),
    ];
    let command = ["frankenphp", "run", "--config", "frankenphp/Caddyfile", "--watch"];
    let server = image(&command, &environment).start();
    // Whoever writes `localhost` is led to HTTPS; other containers ask for `php`, without it.
    let ask = |host: &str, target: &str| server.request("GET", target).header("Host", host).send();
    // A container's `https_port` is 443 for others, as in Caddy.
    assert_eq!(ask("localhost", "/").expect(308).header("location"), Some("https://localhost/"));
    let php = format!("php:{}", server.address().port());
    let probe = ask(&php, "/probe").expect(200).json();
    assert_eq!(probe["scheme_and_host"], format!("http://{php}"));

    let root = server.directory().join("data/caddy/pki/authorities/local/root.crt");
    let mut browser = TlsClient::trusting(&root).connect(server.tls_address(), "localhost");
    let host = format!("localhost:{}", server.tls_address().port());
    browser.send(format!("GET /probe HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let probe = browser.response().expect(200).json();
    assert_eq!(probe["scheme_and_host"], format!("https://{host}"));

    let url = probe["hot_reload"].as_str().expect("pages are told where to listen").to_owned();
    assert!(url.starts_with(HUB), "{url}");
    let mut page = Conn::open(server.address());
    page.send(format!("GET {url} HTTP/1.1\r\nHost: {php}\r\nAccept: text/event-stream\r\n\r\n"));
    assert_eq!(page.response_to_head().status, 200);
    let controller = server.root().join("src/Controller/ProbeController.php");
    let text = fs::read_to_string(&controller).expect("it is there");
    fs::write(&controller, text.replace("'one', 'two', 'three'", "'four'")).expect("the directory is ours");
    page.read_until("ProbeController.php");
    until("the workers have the new code", || (ask(&php, "/stream").text() == "four\n").then_some(()));
    server.stop();
}

#[test]
fn an_api_has_its_pages_from_another_server() {
    let pages = Upstream::answering(|request| {
        let line = request.head.lines().next().unwrap_or_default().to_owned();
        let body = format!("page: {line}");
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .into()
    });
    let upstream = pages.address().to_string();
    let environment = [
        ("SERVER_NAME", ":PORT"),
        ("CADDY_GLOBAL_OPTIONS", "default_bind LOOPBACK\n\tauto_https off\n\tadmin off"),
        ("FRANKENPHP_CONFIG", "import worker.caddyfile"),
        ("MERCURE_TRANSPORT_URL", "bolt://DIRECTORY/mercure.db"),
        ("PWA_UPSTREAM", upstream.as_str()),
    ];
    let command = ["frankenphp", "run", "--config", "frankenphp/api-platform.caddyfile"];
    let server = image(&command, &environment).start();
    let as_browser = |target: &str| {
        server
            .request("GET", target)
            .header("Accept", "text/html,application/xhtml+xml")
            .send()
            .expect(200)
            .text()
    };
    assert_eq!(as_browser("/books?page=2"), "page: GET /books?page=2 HTTP/1.1");
    assert_eq!(server.get("/_next/static/a.js").expect(200).text(), "page: GET /_next/static/a.js HTTP/1.1");
    let own = server.request("GET", "/none.html").header("Accept", "text/html").send().expect(404);
    assert!(!own.text().starts_with("page:"), "what ends so is the application's");
    check_application(&server);
    let api = server.request("GET", "/probe").header("Accept", "application/ld+json").send().expect(200);
    assert!(api.header("link").is_some_and(|links| links.contains("rel=\"mercure\"")));
    assert_eq!(api.json()["uri"], "/probe");
    check_hub(&server);
    assert!(server.directory().join(".mercure.db.jsonl").exists(), "the history is where the variable says");
    server.stop();
}
