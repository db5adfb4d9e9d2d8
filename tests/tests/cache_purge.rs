//! `cache`: what is purged by the admin API, and what the figures say.
#![forbid(unsafe_code)]

use regent_tests::{Gate, Response, STOP_AT_GATE, Server, Setup, in_parallel, percent_encode};

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

// --- By scripts ------------------------------------------------------------------------------------------------------

/// Purges as the query says: how many responses there were, or why it could not.
const PURGE: &str = "<?php header('Cache-Control: no-store'); try {
    echo regent_cache_purge($_GET['tags'] ?? [], $_GET['url'] ?? null, $_GET['prefix'] ?? null);
} catch (Throwable $e) { http_response_code(500); echo get_class($e), ': ', $e->getMessage(); }";

#[test]
fn a_script_purges_and_the_next_request_has_a_new_page() {
    let setup = Setup::new().file("index.php", PAGE).file("purge.php", PURGE);
    let server = setup.site("cache\nphp_server").start();
    let pages = ["/a", "/a/b", "/c?tags=one+two", "/d?tags=two"];
    let own = |path: &str| percent_encode(&format!("https://{}{path}", server.address()));
    for (query, gone) in [
        ("url=/a".to_owned(), &[0][..]),
        (format!("url={}", own("/a/b")), &[1]),
        ("prefix=/a".into(), &[0, 1]),
        (format!("prefix={}", own("/")), &[0, 1, 2, 3]),
        ("tags=one".into(), &[2]),
        ("tags[]=one&tags[]=two&url=/a".into(), &[0, 2, 3]),
        ("tags=on".into(), &[]),
        ("tags[]=".into(), &[]),
    ] {
        let is_refused = query == "tags[]=";
        pages.iter().for_each(|page| drop(server.get(page).expect(200)));
        let answer = server.get(&format!("/purge.php?{query}"));
        match is_refused {
            true => assert!(answer.expect(500).text().starts_with("ValueError: regent_cache_purge()")),
            false => assert_eq!(answer.expect(200).text(), gone.len().to_string(), "{query}"),
        }
        let missed: Vec<_> = (0..pages.len()).filter(|page| !is_hit(&server.get(pages[*page]))).collect();
        assert_eq!(missed, gone, "{query}");
    }
    for (wrong, said) in [
        ("url=a", "ValueError: regent_cache_purge(): Argument #2 ($url) must be a URL"),
        ("prefix=ftp://x/", "ValueError: regent_cache_purge(): Argument #3 ($prefix) must be"),
        ("tags=a,b", "ValueError: regent_cache_purge(): Argument #1 ($tags) must be"),
    ] {
        let answer = server.get(&format!("/purge.php?{wrong}")).expect(500).text();
        assert!(answer.starts_with(said), "{wrong}: {answer}");
    }
    server.stop();
}

#[test]
fn a_worker_purges_within_its_requests_only() {
    let worker = "<?php try { regent_cache_purge('a'); } catch (Throwable $e) { $boot = get_class($e) . ': ' . $e->getMessage(); }
        while (frankenphp_handle_request(function () use ($boot) {
            if ($_SERVER['REQUEST_URI'] === '/purge') { header('Cache-Control: no-store'); echo regent_cache_purge('a'), ' ', $boot; return; }
            header('Cache-Control: max-age=60'); header('xkey: a'); echo 'x';
        }));";
    let server = Setup::new()
        .file("worker.php", worker)
        .site("cache\nphp_server {\nworker ROOT/worker.php 1\ntry_files {path} worker.php\n}")
        .start();
    for _ in 0..3 {
        server.get("/page").expect(200);
        assert!(is_hit(&server.get("/page")));
        let answer = server.get("/purge").expect(200).text();
        assert!(answer.starts_with("1 RuntimeException: There is no cache to purge"), "{answer}");
        assert!(!is_hit(&server.get("/page")));
    }
    server.stop();
}

#[test]
fn a_script_purges_no_page_of_another_site_unless_its_own_says_so() {
    let site = |host: &str, options: &str| {
        format!(
            "http://{host}:PORT {{\nbind LOOPBACK\nroot * ROOT\ncache {{\n{options}\n}}\nphp_server\n}}\n"
        )
    };
    let caddyfile = [
        "{\n\tadmin off\n}\n".to_owned(),
        site("a.test", ""),
        site("b.test", "script_purge server"),
        site("c.test", "script_purge off"),
    ]
    .concat()
        + "http://none.test:PORT {\nbind LOOPBACK\nroot * ROOT\nphp_server\n}\nhttp://:PORT {\nbind LOOPBACK\nroot * ROOT\ncache\nphp_server\n}\n";
    let server = Setup::new().file("index.php", PAGE).file("purge.php", PURGE).caddyfile(&caddyfile).start();
    let get = |host: &str, target: &str| {
        server
            .request("GET", target)
            .header("Host", format!("{host}.test:{}", server.address().port()))
            .send()
    };
    let stored = || ["a", "b", "c", "other"].map(|host| is_hit(&get(host, "/?tags=x")));
    for (host, query, left) in [
        ("a", "tags=x", [false, true, true, true]),
        ("a", "prefix=http://b.test", [true; 4]),
        ("a", "prefix=/", [false, true, true, true]),
        ("other", "tags=x", [true, true, true, false]),
        ("b", "tags=x", [false; 4]),
    ] {
        stored();
        assert_eq!(stored(), [true; 4]);
        get(host, &format!("/purge.php?{query}")).expect(200);
        assert_eq!(stored(), left, "{host} {query}");
    }
    for host in ["c", "none"] {
        let answer = get(host, "/purge.php?tags=x").expect(500).text();
        assert!(answer.starts_with("RuntimeException: There is no cache to purge"), "{answer}");
    }
    server.stop();
}

#[test]
fn a_page_that_purges_itself_while_it_is_made_is_not_stored() {
    let page =
        "<?php header('Cache-Control: max-age=60'); header('xkey: own'); echo regent_cache_purge('own');";
    let server = Setup::new().file("index.php", page).site("cache\nphp_server").start();
    for _ in 0..3 {
        let answer = server.get("/").expect(200);
        assert!(!is_hit(&answer) && answer.text() == "0");
    }
    server.stop();
}

#[test]
fn many_scripts_purge_at_once_and_each_has_its_answer() {
    let purge =
        "<?php for ($i = 0; $i < 20; $i++) { regent_cache_purge(\"$_GET[tag]-$i\"); } echo $_GET['tag'];";
    let server = Setup::new()
        .php_options("num_threads 8")
        .file("index.php", PAGE)
        .file("purge.php", purge)
        .site("cache {\npass_path /purge.php\n}\nphp_server")
        .start();
    in_parallel(40, |number| {
        assert_eq!(server.get(&format!("/purge.php?tag={number}")).expect(200).text(), number.to_string());
    });
    server.stop();
}
