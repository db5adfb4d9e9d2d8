//! The page of metrics, whatever clients ask for.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, until};

/// Asks for so many paths that nobody has asked for before, all on a few connections.
fn invent(server: &Server, paths: usize) {
    let mut conn = server.connect();
    for path in 0..paths {
        // Digits would make all of them one route.
        let word: String = path.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
        conn.send(format!("GET /invented-{word} HTTP/1.1\r\nHost: x\r\n\r\n"));
        conn.response().expect(200);
    }
}

/// The names in the metrics.
fn routes(page: &str) -> Vec<String> {
    let counted = page.lines().filter(|line| line.starts_with("regent_lost_total{"));
    counted.filter_map(|line| Some(line.split("route=\"").nth(1)?.split('"').next()?.to_owned())).collect()
}

#[test]
fn invented_paths_have_no_series_and_a_route_that_returns_has() {
    let server = Setup::new().admin("ADMIN").file("index.php", "<?php echo 'ok';").start();
    invent(&server, 3_000);
    let page = server.admin().get("/metrics").expect(200).text();
    assert!(page.len() < 200_000, "{} bytes", page.len());
    let invented = routes(&page);
    assert!(invented.len() < 20 && invented.contains(&"other".to_owned()), "{invented:?}");
    let all: f64 = server.admin().metric("regent_requests_total", &[("route", "other"), ("class", "2xx")]);
    assert!(all > 2_900.0, "they are counted: {all}");
    let found = until("a route that returns has its name", || {
        server.get("/a/real/page").expect(200);
        let found = routes(&server.admin().get("/metrics").expect(200).text());
        found.contains(&"/a/real/page".to_owned()).then_some(found)
    });
    invent(&server, 100);
    let later = routes(&server.admin().get("/metrics").expect(200).text());
    assert_eq!(later, found, "what is there stays, and nothing new comes");
    server.stop();
}
