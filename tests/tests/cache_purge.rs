//! `cache`: what is purged by the admin API, and what the figures say.
#![forbid(unsafe_code)]

use regent_tests::{Gate, Response, STOP_AT_GATE, Server, Setup, percent_encode};

/// A page that says its tags, and when it ran.
const PAGE: &str = "<?php header('Cache-Control: max-age=600'); header('Surrogate-Key: ' . ($_GET['tags'] ?? 'none')); \
                    echo hrtime(true);";

fn start() -> Server {
    Setup::new().admin("ADMIN").file("index.php", PAGE).site("cache\nphp_server").start()
}

fn is_hit(response: &Response) -> bool {
    response.header("cache-status").is_some_and(|status| status.starts_with("Regent; hit"))
}

fn purge(server: &Server, query: &str) -> u64 {
    let answer = server.admin().request("POST", &format!("/regent/cache/purge?{query}")).send().expect(200);
    answer.json()["purged"].as_u64().unwrap()
}

#[test]
fn what_is_named_by_url_prefix_tag_or_all_of_it_is_made_anew() {
    let server = start();
    let pages = ["/a", "/a/b", "/c?tags=one+two", "/d?tags=two"];
    let own = |path: &str| percent_encode(&format!("http://{}{path}", server.address()));
    for (query, gone) in [
        (format!("url={}", own("/a")), &[0][..]),
        (format!("url={}", own("/a").replace("http%3A", "https%3A")), &[0]),
        (format!("prefix={}", own("/a")), &[0, 1]),
        (format!("prefix={}", own("/")), &[0, 1, 2, 3]),
        ("tag=one".into(), &[2]),
        ("tag=one&tag=two".into(), &[2, 3]),
        ("tag=on".into(), &[]),
        ("all=true".into(), &[0, 1, 2, 3]),
    ] {
        pages.iter().for_each(|page| drop(server.get(page).expect(200)));
        assert!(pages.iter().all(|page| is_hit(&server.get(page))), "before {query}");
        assert_eq!(purge(&server, &query), gone.len() as u64, "{query}");
        let missed: Vec<_> = (0..pages.len()).filter(|page| !is_hit(&server.get(pages[*page]))).collect();
        assert_eq!(missed, gone, "{query}");
    }
    for wrong in ["", "?url=/a", "?tag=", "?all=1"] {
        let answer = server.admin().request("POST", &format!("/regent/cache/purge{wrong}")).send();
        assert_eq!(answer.status, 400, "{wrong}");
    }
    server.stop();
}

#[test]
fn what_was_asked_for_before_a_purge_is_not_stored_after_it() {
    let setup = Setup::new()
        .admin("ADMIN")
        .file(
            "page.php",
            format!("<?php {STOP_AT_GATE} header('Cache-Control: max-age=60'); header('xkey: a'); echo 'x';"),
        )
        .site("cache\nphp_server");
    let gate = Gate::of(&setup);
    let server = setup.start();
    let mut client = server.ask("/page.php");
    let running = gate.next();
    assert_eq!(purge(&server, "tag=a"), 0);
    drop(running);
    assert_eq!(client.response().expect(200).text(), "x", "its client gets it");
    let mut again = server.ask("/page.php");
    drop(gate.next());
    assert!(!is_hit(&again.response().expect(200)));
    server.stop();
}

#[test]
fn figures_tell_what_the_cache_does() {
    let server = start();
    server.get("/a").expect(200);
    (0..3).for_each(|_| drop(server.get("/a").expect(200)));
    server.request("GET", "/a").header("Cookie", "PHPSESSID=1").send().expect(200);
    let figures = server.admin().get("/regent/cache").expect(200).json();
    for (name, want) in [("hits", 3), ("misses", 1), ("passes", 1), ("stores", 1), ("urls", 1), ("purged", 0)]
    {
        assert_eq!(figures[name], want, "{name} of {figures}");
    }
    assert_eq!(figures["limit"], 128 << 20);
    assert!(figures["bytes"].as_u64().unwrap() > 0);
    for (result, want) in [("hit", 3.0), ("miss", 1.0), ("pass", 1.0), ("stale", 0.0)] {
        assert_eq!(
            server.admin().metric("regent_cache_requests_total", &[("result", result)]),
            want,
            "{result}"
        );
    }
    assert_eq!(server.admin().metric("regent_cache_urls", &[]), 1.0);
    server.stop();
}

#[test]
fn a_reload_keeps_what_is_stored_and_a_cache_that_is_gone_has_no_figures() {
    let server = start();
    server.get("/a").expect(200);
    let text = std::fs::read_to_string(server.directory().join("Caddyfile")).unwrap();
    let reload = |text: &str| {
        server.write_caddyfile(text);
        server.admin().request("POST", "/regent/reload").send().expect(200);
    };
    reload(&text.replace("cache\n", "header X-New 1\ncache\n"));
    let kept = server.get("/a");
    assert!(is_hit(&kept) && kept.header("x-new") == Some("1"), "{kept:?}");
    reload(&text.replace("cache\n", ""));
    assert_eq!(server.get("/a").header("cache-status"), None);
    assert!(!server.admin().get("/metrics").text().contains("regent_cache"));
    server.stop();
}

#[test]
fn access_logs_say_what_the_cache_did() {
    let setup = Setup::new()
        .file("index.php", PAGE)
        .site("log {\noutput file DIRECTORY/access.log\n}\ncache\nphp_server");
    let server = setup.start();
    server.get("/a").expect(200);
    server.get("/a").expect(200);
    let (directory, mut words) = (server.directory().to_owned(), Vec::new());
    regent_tests::until("both are logged", || {
        let log = std::fs::read_to_string(directory.join("access.log")).unwrap_or_default();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        words = lines.filter_map(|line| Some(line["cache"].as_str()?.to_owned())).collect();
        (words.len() == 2).then_some(())
    });
    assert_eq!(words, ["miss", "hit"]);
    server.stop();
}
