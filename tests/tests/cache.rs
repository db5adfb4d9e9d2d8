//! `cache`: what is stored and used again, by RFC 9111, and what is not.
#![forbid(unsafe_code)]

use regent_tests::{Gate, Response, STOP_AT_GATE, Server, Setup, in_parallel, until};
use std::fs;

/// A script that does what a file says, a line for each field behind one for the status, and counts its runs.
const ORIGIN: &str = r#"<?php
$directory = dirname($_SERVER['DOCUMENT_ROOT']);
file_put_contents("$directory/runs", '.', FILE_APPEND | LOCK_EX);
file_put_contents("$directory/last", json_encode($_SERVER), LOCK_EX);
$lines = explode("\n", trim(file_get_contents("$directory/origin")));
$status = (int) array_shift($lines);
$etag = null;
foreach ($lines as $line) {
    header($line, false);
    if (stripos($line, 'etag:') === 0) $etag = trim(substr($line, 5));
}
if ($etag !== null && ($_SERVER['HTTP_IF_NONE_MATCH'] ?? '') === $etag) $status = 304;
http_response_code($status);
if ($status !== 304) echo 'run ', filesize("$directory/runs"), ' ', str_repeat('x', (int) ($_GET['size'] ?? 0));
"#;

struct Site {
    server: Server,
}

impl Site {
    fn start(cache: &str) -> Self {
        Self::of(Setup::new(), cache)
    }

    fn of(setup: Setup, cache: &str) -> Self {
        let setup = setup.file("index.php", ORIGIN).site(&format!("{cache}\nphp_server"));
        let site = Self { server: setup.start() };
        site.says("200", &["Cache-Control: max-age=60"]);
        site
    }

    /// What the script answers from now on.
    fn says(&self, status: &str, fields: &[&str]) {
        let text = [&[status], fields].concat().join("\n");
        let (new, path) =
            (self.server.directory().join("origin.new"), self.server.directory().join("origin"));
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn runs(&self) -> usize {
        fs::read(self.server.directory().join("runs")).map_or(0, |runs| runs.len())
    }

    /// A field of the last request that PHP got, or another entry of `$_SERVER`.
    fn last(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.server.directory().join("last")).unwrap();
        let server: serde_json::Value = serde_json::from_str(&text).unwrap();
        server.get(name).and_then(|value| value.as_str()).map(Into::into)
    }

    fn get(&self, target: &str) -> Response {
        self.server.get(target)
    }

    fn with(&self, target: &str, fields: &[(&str, &str)]) -> Response {
        self.method("GET", target, fields)
    }

    fn method(&self, method: &str, target: &str, fields: &[(&str, &str)]) -> Response {
        let request = self.server.request(method, target);
        fields.iter().fold(request, |request, (name, value)| request.header(name, *value)).send()
    }

    fn stop(self) {
        self.server.stop();
    }
}

fn status_of(response: &Response) -> String {
    response.header_all("cache-status").join(", ")
}

#[track_caller]
fn assert_hit(response: &Response) {
    assert!(status_of(response).starts_with("Regent; hit"), "{} {response:?}", status_of(response));
}

#[track_caller]
fn assert_forwarded(response: &Response, why: &str) {
    let status = status_of(response);
    assert!(status.starts_with(&format!("Regent; fwd={why}")), "{status}, not {why}: {response:?}");
}

#[test]
fn what_may_be_stored_is_given_again_and_nothing_else() {
    let site = Site::start("cache");
    let year = "Expires: Fri, 01 Jan 2100 00:00:00 GMT";
    for (number, (status, fields, is_stored)) in [
        ("200", &["Cache-Control: max-age=60"][..], true),
        ("200", &["Cache-Control: s-maxage=60"], true),
        ("200", &["Cache-Control: s-maxage=60, max-age=0"], true),
        ("200", &["Cache-Control: max-age=60, s-maxage=0"], false),
        ("200", &["Cache-Control: public, max-age=60"], true),
        ("200", &["Cache-Control: max-age=\"60\""], true),
        ("200", &["Cache-Control: MAX-AGE=60"], true),
        ("200", &["Cache-Control: foo", "Cache-Control: max-age=60"], true),
        ("200", &["Cache-Control: foo=\"bar, no-store\", max-age=60"], true),
        ("200", &[year], true),
        ("200", &["Expires: 0"], false),
        ("200", &["Expires: Thu, 01 Jan 1970 00:00:00 GMT"], false),
        ("200", &["Cache-Control: max-age=0", year], false),
        ("200", &["Cache-Control: max-age=nothing", year], false),
        ("200", &["Cache-Control: max-age=-1"], false),
        ("200", &["Cache-Control: max-age=60", "Age: 59"], true),
        ("200", &["Cache-Control: max-age=60", "Age: 60"], false),
        ("200", &["Cache-Control: max-age=60", "Date: Thu, 01 Jan 1998 00:00:00 GMT"], false),
        ("200", &[], false),
        ("200", &["Last-Modified: Thu, 01 Jan 1998 00:00:00 GMT"], false),
        ("200", &["ETag: \"a\""], false),
        ("200", &["Cache-Control: no-store, max-age=60"], false),
        ("200", &["Cache-Control: no-store=\"x\", max-age=60"], false),
        ("200", &["Cache-Control: private, max-age=60"], false),
        ("200", &["Cache-Control: private=\"x-a\", max-age=60"], false),
        ("200", &["Cache-Control: no-cache, max-age=60"], false),
        ("200", &["Cache-Control: public, max-age=60", "Set-Cookie: a=b"], false),
        ("200", &["Cache-Control: max-age=60", "Vary: *"], false),
        ("200", &["Cache-Control: max-age=60", "Vary: Accept, *"], false),
        ("200", &["Cache-Control: no-store", "CDN-Cache-Control: max-age=60"], true),
        ("200", &["Cache-Control: max-age=60", "CDN-Cache-Control: no-store"], false),
        ("200", &["Cache-Control: max-age=60", "CDN-Cache-Control: max-age=\"60\", x=y z"], true),
        ("200", &["Cache-Control: max-age=60", "CDN-Cache-Control: max-age=0"], false),
        ("301", &["Cache-Control: max-age=60", "Location: /x"], true),
        ("302", &["Cache-Control: max-age=60", "Location: /x"], true),
        ("302", &["Location: /x"], false),
        ("404", &["Cache-Control: max-age=60"], true),
        ("404", &[], false),
        ("410", &["Cache-Control: max-age=60"], true),
        ("500", &["Cache-Control: max-age=60"], true),
        ("503", &[], false),
        ("206", &["Cache-Control: max-age=60", "Content-Range: bytes 0-1/9"], false),
        ("299", &["Cache-Control: max-age=60, must-understand"], false),
        ("200", &["Cache-Control: max-age=60, no-store, must-understand"], true),
        ("204", &["Cache-Control: max-age=60"], true),
    ]
    .into_iter()
    .enumerate()
    {
        site.says(status, fields);
        let target = format!("/?{number}");
        let before = site.runs();
        let first = site.get(&target);
        assert_forwarded(&first, "uri-miss");
        let second = site.get(&target);
        assert_eq!(site.runs() - before == 1, is_stored, "{status} {fields:?}: {}", status_of(&second));
        assert_eq!((first.status, second.status), (status.parse().unwrap(), first.status));
        if is_stored {
            assert_hit(&second);
            assert_eq!(second.text(), first.text());
            assert!(second.header("age").is_some() && second.header("date").is_some(), "{second:?}");
        }
    }
    site.stop();
}

#[test]
fn a_request_with_credentials_shares_its_response_only_if_that_says_so() {
    let site = Site::start("cache");
    for (number, (control, is_shared)) in [
        ("max-age=60", false),
        ("max-age=60, public", true),
        ("max-age=60, must-revalidate", true),
        ("s-maxage=60", true),
        ("max-age=60, proxy-revalidate", false),
    ]
    .into_iter()
    .enumerate()
    {
        site.says("200", &[&format!("Cache-Control: {control}")]);
        let target = format!("/?{number}");
        let before = site.runs();
        site.with(&target, &[("Authorization", "Bearer x")]).expect(200);
        site.get(&target).expect(200);
        assert_eq!(site.runs() - before == 1, is_shared, "{control}");
    }
    site.stop();
}

#[test]
fn responses_of_one_url_are_told_apart_by_what_they_vary_with() {
    let site = Site::start("cache {\nignore_cookie _ga*\n}");
    site.says("200", &["Cache-Control: max-age=60", "Vary: Accept-Language, X-A, Cookie"]);
    let german = [("Accept-Language", "de, en"), ("X-A", "1")];
    let first = site.with("/", &german).text();
    assert_eq!(site.with("/", &german).text(), first);
    assert_eq!(site.with("/", &[("Accept-Language", "de,en"), ("x-a", "1")]).text(), first);
    assert_eq!(site.with("/", &[german[0], german[1], ("Cookie", "_ga=1")]).text(), first);
    assert_eq!(site.runs(), 1);
    for other in [
        &[("Accept-Language", "en"), ("X-A", "1")][..],
        &[("Accept-Language", "de, en")],
        &[german[0], ("X-A", "2")],
        &[german[0], german[1], ("Cookie", "lang=de")],
    ] {
        let response = site.with("/", other);
        assert_forwarded(&response, "vary-miss");
        assert_ne!(response.text(), first, "{other:?}");
        assert_hit(&site.with("/", other));
    }
    assert_eq!(site.with("/", &german).text(), first, "all are there at once");
    assert_eq!(site.runs(), 5);
    site.stop();
}

#[test]
fn what_is_stored_is_not_compressed_and_encode_acts_on_what_comes_out() {
    let site = Site::start("encode gzip\ncache");
    site.says(
        "200",
        &["Cache-Control: max-age=60", "Vary: Accept-Encoding", "Content-Type: text/html", "ETag: \"a\""],
    );
    let first = site.with("/?size=3000", &[("Accept-Encoding", "gzip, br")]);
    assert_eq!(first.header("content-encoding"), Some("gzip"));
    assert_eq!(site.last("HTTP_ACCEPT_ENCODING"), None, "PHP must not compress it");
    let plain = site.get("/?size=3000");
    assert_hit(&plain);
    assert!(plain.text().starts_with("run 1 xxx") && plain.header("content-encoding").is_none());
    let again = site.with("/?size=3000", &[("Accept-Encoding", "gzip")]);
    assert_hit(&again);
    assert_eq!(again.header("content-encoding"), Some("gzip"));
    let tag = again.header("etag").unwrap().to_owned();
    let known = site.with("/?size=3000", &[("Accept-Encoding", "gzip"), ("If-None-Match", &tag)]);
    assert_eq!(known.status, 304);
    assert_eq!(site.runs(), 1);
    site.stop();
}

#[test]
fn conditions_and_ranges_are_answered_from_what_is_stored() {
    let site = Site::start("cache");
    let modified = "Wed, 01 Jan 2020 00:00:00 GMT";
    let last_modified = format!("Last-Modified: {modified}");
    site.says("200", &["Cache-Control: max-age=60", "ETag: \"a,b\"", &last_modified]);
    // Also the first, which PHP is asked for as a whole.
    assert_eq!(site.with("/", &[("If-None-Match", "\"a,b\"")]).status, 304);
    assert_eq!((site.last("HTTP_IF_NONE_MATCH"), site.last("HTTP_RANGE")), (None, None));
    for (fields, want) in [
        (&[("If-None-Match", "\"x\", W/\"a,b\"")][..], 304),
        (&[("If-None-Match", "*")], 304),
        (&[("If-None-Match", "\"x\"")], 200),
        (&[("If-None-Match", "\"x\""), ("If-Modified-Since", modified)], 200),
        (&[("If-Modified-Since", modified)], 304),
        (&[("If-Modified-Since", "Thu, 02 Jan 2020 00:00:00 GMT")], 304),
        (&[("If-Modified-Since", "Tue, 31 Dec 2019 00:00:00 GMT")], 200),
        (&[("If-Modified-Since", "nonsense")], 200),
        (&[("Range", "bytes=0-2")], 206),
        (&[("Range", "bytes=4-")], 206),
        (&[("Range", "bytes=-1")], 206),
        (&[("Range", "bytes=100-")], 416),
        (&[("Range", "lines=0-2")], 200),
        (&[("Range", "bytes=0-0,2-2")], 200),
        (&[("Range", "bytes=0-2"), ("If-Range", "\"a,b\"")], 206),
        (&[("Range", "bytes=0-2"), ("If-Range", "\"x\"")], 200),
        (&[("Range", "bytes=0-2"), ("If-Range", "W/\"a,b\"")], 200),
        (&[("Range", "bytes=0-2"), ("If-Range", modified)], 206),
        (&[("Range", "bytes=0-2"), ("If-None-Match", "\"a,b\"")], 304),
    ] {
        let response = site.with("/", fields);
        assert_eq!(response.status, want, "{fields:?}");
        assert_hit(&response);
        if want == 304 {
            assert_eq!(response.header("etag"), Some("\"a,b\""));
            assert_eq!((response.header("content-type"), response.text()), (None, String::new()));
        }
    }
    let part = site.with("/", &[("Range", "bytes=1-2")]);
    assert_eq!((part.text().as_str(), part.header("content-range")), ("un", Some("bytes 1-2/6")));
    assert_eq!(site.with("/", &[("Range", "bytes=6-")]).header("content-range"), Some("bytes */6"));
    let head = site.method("HEAD", "/", &[]);
    assert_hit(&head);
    assert_eq!((head.header("content-length"), head.text()), (Some("6"), String::new()));
    assert_eq!(site.runs(), 1);
    site.stop();
}

#[test]
fn large_bodies_come_whole_and_in_parts() {
    let site = Site::start("cache");
    let size = 300_000;
    let whole = site.get(&format!("/?size={size}")).expect(200).text();
    until("it is stored", || status_of(&site.get(&format!("/?size={size}"))).contains("hit").then_some(()));
    let again = site.get(&format!("/?size={size}"));
    assert_hit(&again);
    assert_eq!(again.text().len(), whole.len());
    assert_eq!(again.header("content-length"), Some(whole.len().to_string().as_str()));
    for (start, end) in [(0, 10), (65_530, 65_550), (1, 299_999), (131_072, 196_607)] {
        let part =
            site.with(&format!("/?size={size}"), &[("Range", &format!("bytes={start}-{end}"))]).expect(206);
        assert_eq!(part.text(), whole[start..=end], "{start} to {end}");
    }
    site.stop();
}

#[test]
fn what_is_over_is_asked_about_and_goes_on_if_it_is_good() {
    let site = Site::start("cache");
    // It is over when it comes.
    site.says(
        "200",
        &["Cache-Control: max-age=10", "Age: 10", "ETag: \"a\"", "X-Old: 1", "Content-Type: text/old"],
    );
    let first = site.get("/").text();
    site.says("200", &["Cache-Control: max-age=10", "ETag: \"a\"", "X-New: 1", "Content-Type: text/new"]);
    let second = site.get("/");
    assert_eq!(second.text(), first, "it was found to be good");
    assert!(status_of(&second).contains("fwd=stale; fwd-status=304; stored"), "{}", status_of(&second));
    assert_eq!(site.last("HTTP_IF_NONE_MATCH").as_deref(), Some("\"a\""));
    let third = site.get("/");
    assert_hit(&third);
    assert_eq!((third.header("x-old"), third.header("x-new")), (Some("1"), Some("1")));
    assert_eq!(site.runs(), 2);
    // A 304 makes it as young as itself, whatever it says of the time.
    site.says("200", &["Cache-Control: max-age=10", "Date: Thu, 01 Jan 1998 00:00:00 GMT", "ETag: \"a\""]);
    let old = site.get("/old").text();
    site.says("200", &["Cache-Control: max-age=10", "ETag: \"a\""]);
    assert!(status_of(&site.get("/old")).contains("fwd-status=304"));
    let young = site.get("/old");
    assert_hit(&young);
    assert_eq!((young.text(), site.runs()), (old, 4));
    site.says("200", &["Cache-Control: no-cache", "ETag: \"b\""]);
    let asked = site.get("/asked").text();
    assert_eq!(site.get("/asked").text(), asked);
    assert_eq!(site.runs(), 6, "it is asked about each time");
    site.says("200", &["Cache-Control: max-age=10", "ETag: \"c\""]);
    assert_ne!(site.get("/asked").text(), asked);
    assert_hit(&site.get("/asked"));
    site.stop();
}

#[test]
fn a_stale_response_is_given_while_one_request_fetches_another() {
    let site = Site::start("cache");
    site.says("200", &["Cache-Control: max-age=10, stale-while-revalidate=30", "Age: 10"]);
    let old = site.get("/").text();
    site.says("200", &["Cache-Control: max-age=60"]);
    let stale = site.get("/");
    assert_eq!(stale.text(), old);
    assert!(status_of(&stale).starts_with("Regent; hit; ttl="), "{}", status_of(&stale));
    until("the new one is there", || (site.get("/").text() != old).then_some(()));
    assert_eq!(site.runs(), 2);
    site.says(
        "200",
        &["Cache-Control: max-age=10, stale-while-revalidate=30, must-revalidate", "Age: 10", "ETag: \"a\""],
    );
    site.get("/strict").expect(200);
    assert_forwarded(&site.get("/strict"), "stale");
    site.stop();
}

#[test]
fn a_stale_response_stands_for_an_error() {
    let site = Site::start("cache");
    site.says("200", &["Cache-Control: max-age=10, stale-if-error=60", "Age: 10"]);
    let old = site.get("/").text();
    for status in ["500", "502", "503", "504"] {
        site.says(status, &[]);
        let response = site.get("/").expect(200);
        assert_eq!(response.text(), old);
        assert_hit(&response);
    }
    site.says("404", &[]);
    assert_eq!(site.get("/").status, 404, "that is no failure");
    site.says("500", &["Cache-Control: max-age=10, stale-if-error=60", "Age: 10"]);
    assert_eq!(site.get("/broken").status, 500);
    site.says("503", &[]);
    assert_eq!(site.get("/broken").status, 503, "an old error stands for no new one");
    site.says(
        "200",
        &["Cache-Control: max-age=10, stale-if-error=60, must-revalidate", "Age: 10", "ETag: \"a\""],
    );
    site.get("/strict").expect(200);
    site.says("503", &[]);
    assert_eq!(site.get("/strict").status, 503);
    site.stop();
}

#[test]
fn what_is_stored_is_served_while_the_engine_is_down() {
    let site = Site::start("cache {\nstale_if_error 1h\n}");
    site.server.write(
        "slow.php",
        "<?php header('Cache-Control: max-age=10'); header('Age: 10'); header('ETag: \"a\"'); \
         if (is_file(__DIR__ . '/crash')) posix_kill(getmypid(), 9); echo 'good';",
    );
    assert_eq!(site.get("/slow.php").text(), "good");
    site.server.write("crash", "");
    for _ in 0..3 {
        let response = site.get("/slow.php").expect(200);
        assert_eq!(response.text(), "good");
        assert_hit(&response);
    }
    assert_eq!(site.get("/slow.php?other").status, 502, "nothing is stored of this one");
    site.stop();
}

#[test]
fn a_method_that_changes_things_makes_what_is_stored_void() {
    let site = Site::start("cache");
    for (method, status, is_void) in [
        ("POST", "200", true),
        ("PUT", "204", true),
        ("DELETE", "303", true),
        ("M-SEARCH", "200", true),
        ("POST", "500", false),
        ("OPTIONS", "200", false),
    ] {
        site.says("200", &["Cache-Control: max-age=60"]);
        let target = format!("/?{method}{status}");
        site.get(&target).expect(200);
        site.says(status, &[]);
        assert_forwarded(&site.method(method, &target, &[]), "method");
        let is_hit = status_of(&site.get(&target)).contains("hit");
        assert_eq!(is_hit, !is_void, "{method} {status}");
    }
    site.says("200", &["Cache-Control: max-age=60"]);
    site.get("/made").expect(200);
    site.get("/other").expect(200);
    site.says("201", &["Location: /made", "Content-Location: http://example.com/other"]);
    assert_eq!(site.method("POST", "/", &[]).status, 201);
    assert!(!status_of(&site.get("/made")).contains("hit"), "it is named");
    assert_hit(&site.get("/other"));
    site.stop();
}

#[test]
fn requests_that_are_none_for_a_cache_pass_it() {
    let site =
        Site::start("cache {\npass_path /private/*\npass_query token\npass_cookie own\n}\ncache /off/* off");
    site.get("/").expect(200);
    for (target, fields, reason) in [
        ("/", &[("Cookie", "PHPSESSID=1")][..], "cookie"),
        ("/", &[("Cookie", "x=1; own=1")], "cookie"),
        ("/", &[("X-HTTP-Method-Override", "DELETE")], "field"),
        ("/", &[("If-Match", "\"a\"")], "field"),
        ("/private/x", &[], "path"),
        ("/%70rivate/x", &[], "path"),
        ("/private", &[], "path"),
        ("/?token=1", &[], "query"),
        ("/?%74oken%5Ba%5D=1", &[], "query"),
    ] {
        let response = site.with(target, fields);
        let want = format!("Regent; fwd=bypass; detail={reason}");
        assert_eq!((response.status, status_of(&response)), (200, want), "{target} {fields:?}");
    }
    let off = site.get("/off/x");
    assert_eq!(off.header("cache-status"), None);
    assert_hit(&site.with("/", &[("Cookie", "theme=dark")]));
    let long = format!("/?{}", "x".repeat(5000));
    assert_forwarded(&site.get(&long), "bypass");
    site.stop();
}

#[test]
fn a_forged_field_changes_nobody_elses_response() {
    let site = Site::start("cache");
    for (number, field) in [
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Forwarded-Prefix",
        "X-Original-URL",
        "X-Rewrite-URL",
        "Forwarded",
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("/?{number}");
        let forged = site.with(&target, &[(field, "host=evil.example")]).text();
        let own = site.get(&target);
        assert_ne!(own.text(), forged, "{field}");
        assert_hit(&site.get(&target));
        assert_eq!(site.with(&target, &[(field, "host=evil.example")]).text(), forged);
    }
    let other = site.server.raw("GET /?0 HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert!(other.contains("fwd=uri-miss"), "{other}");
    site.stop();
}

#[test]
fn clients_have_php_run_only_where_they_are_obeyed() {
    for (directive, obeys) in [("cache", false), ("cache {\nobey_clients\n}", true)] {
        let site = Site::start(directive);
        site.says("200", &["Cache-Control: max-age=60", "Age: 20"]);
        site.get("/").expect(200);
        for control in ["no-cache", "max-age=0", "max-age=10", "min-fresh=50"] {
            let is_hit = status_of(&site.with("/", &[("Cache-Control", control)])).contains("hit");
            assert_eq!(is_hit, !obeys, "{control}");
        }
        let only = site.with("/new", &[("Cache-Control", "only-if-cached")]);
        assert_eq!(only.status, if obeys { 504 } else { 200 });
        site.with("/kept", &[("Cache-Control", "no-store")]).expect(200);
        assert_forwarded(&site.get("/kept"), "uri-miss");
        site.stop();
    }
}

#[test]
fn a_streamed_page_reaches_its_first_client_as_it_is_made() {
    let setup = Setup::new().file(
        "page.php",
        format!(
            "<?php header('Cache-Control: max-age=60'); echo 'first '; ob_flush(); flush(); {STOP_AT_GATE} echo 'last';"
        ),
    );
    let gate = Gate::of(&setup);
    let site = Site::of(setup, "cache");
    let mut client = site.server.ask("/page.php");
    client.read_until("first ");
    drop(gate.next());
    client.read_until("last");
    let again = until("it is stored", || {
        let response = site.server.ask("/page.php").response();
        status_of(&response).contains("hit").then_some(response)
    });
    assert_eq!(again.text(), "first last");
    site.stop();
}

#[test]
fn what_is_too_large_or_breaks_off_is_not_stored_and_reaches_its_client() {
    let options = Setup::new().global_options("cache {\nmemory 1MiB\nlargest_object 100KB\n}");
    let site = Site::of(options, "cache");
    for (size, is_stored) in [(90_000, true), (110_000, false), (2_000_000, false)] {
        let target = format!("/?size={size}");
        let whole = site.get(&target).expect(200).text().len();
        assert!(whole > size);
        let again = site.get(&target);
        assert_eq!(again.text().len(), whole);
        assert_eq!(status_of(&again).contains("hit"), is_stored, "{size}");
    }
    site.server.write(
        "broken.php",
        "<?php header('Cache-Control: max-age=60'); echo 'part'; ob_flush(); flush(); posix_kill(getmypid(), SIGKILL);",
    );
    for _ in 0..2 {
        let reply =
            site.server.raw_cut_off("GET /broken.php HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert!(!reply.contains("; hit"), "{reply}");
    }
    site.stop();
}

#[test]
fn a_hundred_sessions_see_nothing_of_each_other() {
    let setup = Setup::new().file(
        "account.php",
        "<?php header('Cache-Control: public, max-age=60'); \
         if (isset($_COOKIE['PHPSESSID'])) { session_cache_limiter(''); session_start(); } \
         echo 'page of ', $_SESSION['name'] ??= $_GET['login'] ?? 'nobody';",
    );
    let site = Site::of(setup, "cache {\npreset symfony\n}");
    assert_eq!(site.get("/account.php").text(), "page of nobody");
    in_parallel(100, |user| {
        let own = format!("page of user{user}");
        let login =
            site.with(&format!("/account.php?login=user{user}"), &[("Cookie", "PHPSESSID=new")]).expect(200);
        assert_eq!(login.text(), own);
        let cookie = login.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        for _ in 0..5 {
            assert_eq!(site.with("/account.php", &[("Cookie", &cookie)]).text(), own);
            assert_eq!(site.get("/account.php").text(), "page of nobody");
        }
    });
    site.stop();
}

#[test]
fn purge_is_for_those_who_may() {
    let site = Site::start("cache {\npurge_from 127.0.0.1\n}");
    site.get("/a").expect(200);
    assert_hit(&site.get("/a"));
    let purged = site.method("PURGE", "/a", &[]).expect(200);
    assert_eq!(purged.text(), "1 purged\n");
    assert_forwarded(&site.get("/a"), "uri-miss");
    assert_eq!(site.method("PURGE", "/never", &[]).expect(200).text(), "0 purged\n");
    site.stop();
    let closed = Site::start("cache {\npurge_from 10.0.0.1\n}");
    closed.get("/a").expect(200);
    assert_eq!(closed.method("PURGE", "/a", &[]).status, 403);
    assert_hit(&closed.get("/a"));
    closed.stop();
}

#[test]
fn presets_store_what_says_nothing_and_pass_who_is_logged_in() {
    let site = Site::start("cache {\npreset wordpress\n}");
    site.says("200", &["Vary: Cookie", "xkey: a b"]);
    let first = site.get("/");
    assert_eq!(first.header("xkey"), None, "tags are for the cache");
    assert_hit(&site.with("/", &[("Cookie", "_ga=1; wordpress_test_cookie=1")]));
    for cookie in
        ["wordpress_logged_in_1=x", "wp-postpass_1=x", "comment_author_1=x", "woocommerce_items_in_cart=1"]
    {
        assert_forwarded(&site.with("/", &[("Cookie", cookie)]), "bypass");
    }
    for target in
        ["/wp-admin/x.php", "/wp-json/wp/v2/posts", "/blog/wp-login.php", "/?s=x", "/?preview=true", "/cart"]
    {
        let status = status_of(&site.get(target));
        assert!(status.contains("bypass"), "{target}: {status}");
    }
    site.stop();
}

#[test]
fn names_in_the_query_that_are_ignored_make_no_page_of_their_own_and_reach_no_other_client() {
    let site = Site::start("cache {\npreset wordpress\nignore_query ref\n}");
    let first = site.get("/?utm_source=evil&a=1&utm.medium=x&fbclid=y");
    assert_forwarded(&first, "uri-miss");
    assert_eq!(site.last("QUERY_STRING").as_deref(), Some("a=1"));
    assert_eq!(site.last("REQUEST_URI").as_deref(), Some("/?a=1"));
    for target in ["/?a=1", "/?a=1&gclid=1", "/?%75tm_source=z&a=1", "/?ref[]=1&a=1&ref", "/?a=1&UTM_ID=1"] {
        assert_hit(&site.get(target));
    }
    for target in ["/?a=2&gclid=1", "/?a=1&utm=1", "/?a=1&reference=1"] {
        assert_forwarded(&site.get(target), "uri-miss");
    }
    site.get("/?fbclid=1");
    assert_eq!(site.last("REQUEST_URI").as_deref(), Some("/"));
    assert_hit(&site.get("/"));
    site.method("POST", "/?utm_source=x", &[]).expect(200);
    assert_eq!(site.last("QUERY_STRING").as_deref(), Some("utm_source=x"), "what passes is as it was");
    assert_forwarded(&site.get("/"), "uri-miss");
    site.stop();
}

#[test]
fn a_password_is_asked_for_before_anything_is_given() {
    let hash = "$2a$04$v7L4lyzV1.vKf4WEM/b5wu8CXjlbaxYsZQvI1T7KxVyEZAQ1Vwmey";
    let site = Site::start(&format!("cache\nbasic_auth /secret/* {{\nbob {hash}\n}}"));
    site.says("200", &["Cache-Control: public, max-age=60"]);
    assert_eq!(site.get("/secret/x").status, 401);
    assert_eq!(site.runs(), 0);
    site.stop();
}
