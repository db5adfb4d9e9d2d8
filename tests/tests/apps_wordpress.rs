//! WordPress with MariaDB, as its users meet it: installed in the browser, then written, read, searched and commented on.
//!
//! The picture in docs/profiling.md, and what a profile costs (on a quiet machine):
//! ```sh
//! REGENT_PICTURE=$PWD/docs/wordpress-profile.svg tools/test apps -- --exact a_profile_shows_what_wordpress_does
//! tools/test apps -- --exact --ignored --nocapture what_a_profile_costs
//! ```
#![forbid(unsafe_code)]

use regent_tests::apps::{copy_application, packages_of};
use regent_tests::browser::Browser;
use regent_tests::process::cpu_time;
use regent_tests::{MariaDb, Server, Setup, in_parallel, keep_asking};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

struct Site {
    server: Server,
    _database: MariaDb,
}

fn start() -> Site {
    // Deprecations are of the application's age, not of the server.
    start_with(Setup::new().admin("ADMIN").php_options("num_threads 4\n\t\tphp_ini error_reporting 8191"))
}

fn start_with(setup: Setup) -> Site {
    let packages = packages_of("wordpress");
    copy_application(&packages, &packages.join("usr/share/wordpress"), &setup.root());
    let database = MariaDb::start(setup.directory(), "wordpress");
    let config = include_str!("../fixtures/wordpress/wp-config.php")
        .replace("SOCKET", &database.socket().display().to_string());
    let server = setup.file("wp-config.php", config).start();
    install(&server);
    Site { server, _database: database }
}

fn install(server: &Server) {
    let browser = Browser::new(server);
    let form = browser.get("/wp-admin/install.php").expect(200).text();
    assert!(form.contains("action=\"install.php?step=2\"") || form.contains("?step=1"), "{form}");
    let done = browser.submit(
        "/wp-admin/install.php?step=2",
        &[
            ("weblog_title", "The blog of the test"),
            ("user_name", "admin"),
            ("admin_password", "secret-1"),
            ("admin_password2", "secret-1"),
            ("pw_weak", "1"),
            ("admin_email", "admin@example.org"),
            ("blog_public", "0"),
        ],
    );
    let page = done.expect(200).text();
    assert!(page.contains("<h1>Success!</h1>") && page.ends_with("</html>\n"), "{page}");
}

/// A browser whose user is the administrator, and the token that the REST API asks of it.
fn log_in(server: &Server) -> (Browser<'_>, String) {
    let browser = Browser::new(server);
    browser.get("/wp-login.php").expect(200);
    let fields = [("log", "admin"), ("pwd", "secret-1"), ("testcookie", "1"), ("wp-submit", "Log In")];
    browser.submit("/wp-login.php", &fields).expect(302);
    assert!(browser.get("/wp-admin/").expect(200).text().contains("Dashboard"));
    let nonce = browser.get("/wp-admin/admin-ajax.php?action=rest-nonce").expect(200).text();
    (browser, nonce)
}

/// Publishes a post, and gives its number and its path.
fn publish(
    server: &Server,
    (browser, nonce): &(Browser<'_>, String),
    title: &str,
    content: &str,
) -> (u64, String) {
    let post = json!({"title": title, "content": content, "status": "publish"}).to_string();
    let request = server.request("POST", "/index.php?rest_route=/wp/v2/posts").header("X-WP-Nonce", nonce);
    let post: Value = browser.send(request.body("application/json", post)).expect(201).json();
    let link = post["link"].as_str().expect("a post has a link");
    let path = link.strip_prefix(&format!("http://{}", server.address())).expect("it is on this site");
    (post["id"].as_u64().expect("a post has a number"), path.to_owned())
}

#[test]
fn a_blog_is_installed_written_read_and_commented_on() {
    let site = start();
    check_blog(&site.server);
    site.server.stop();
}

/// As FrankenPHP's documentation starts WordPress: a command in its directory.
#[test]
fn a_blog_is_served_by_a_command_without_a_configuration() {
    let setup = Setup::new();
    let start = format!("cd '{}' && exec \"$@\"", setup.root().display());
    let setup = setup.launcher(&["sh", "-c", &start, "sh"]).arguments(&["php-server", "--listen", "ADDRESS"]);
    let site = start_with(quiet(setup));
    check_blog(&site.server);
    site.server.stop();
}

/// And the configurations that it gives for WordPress, both in one, without braces.
#[test]
fn a_blog_is_served_by_the_documented_configuration() {
    let setup = Setup::new();
    let start = format!("cd '{}' && exec \"$@\"", setup.root().display());
    let setup = setup.launcher(&["sh", "-c", &start, "sh"]).arguments(&["run"]).file(
        "Caddyfile",
        "http://{$SITE}\n\nmercure {\n    anonymous\n}\n\nphp_server {\n    hot_reload\n}\nencode zstd br gzip\nlog\n",
    );
    let setup = quiet(setup).env("SITE", "ADDRESS").env("MERCURE_PUBLISHER_JWT_KEY", "a-secret-of-the-test");
    let site = start_with(setup.file("reload.php", "<?php echo $_SERVER['FRANKENPHP_HOT_RELOAD'];"));
    check_blog(&site.server);
    assert!(site.server.get("/reload.php").expect(200).text().starts_with("/.well-known/mercure?topic="));
    site.server.wait_for_log("\"msg\":\"handled request\"");
    site.server.stop();
}

/// Deprecations are of the application's age, not of the server.
fn quiet(setup: Setup) -> Setup {
    let file = setup.directory().join("php.ini");
    std::fs::write(file, "error_reporting = 8191\n").expect("the directory is ours");
    setup.env("PHPRC", "DIRECTORY/php.ini")
}

fn check_blog(server: &Server) {
    let home = server.get("/").expect(200).text();
    assert!(home.contains("The blog of the test") && home.contains("Hello world!"), "{home}");

    let admin = log_in(server);
    let (number, path) = publish(server, &admin, "On fish", "It speaks of <strong>zebrafish</strong>.");
    // WordPress believes in rewriting where it knows the server by $_SERVER['SERVER_SOFTWARE'] (wp-includes/vars.php).
    assert!(path.ends_with("/on-fish/") && !path.contains("index.php"), "pretty permalinks are on: {path}");
    let post = server.get(&path).expect(200).text();
    assert!(post.contains("<strong>zebrafish</strong>") && post.trim_end().ends_with("</html>"), "{post}");
    assert!(server.get("/?s=zebrafish").expect(200).text().contains("On fish"));
    assert!(server.get("/feed/").expect(200).text().contains("<title>On fish</title>"));
    server.get("/no/such/page/").expect(404);

    let visitor = Browser::new(server);
    let comment = [
        ("comment_post_ID", number.to_string()),
        ("author", "Ada".to_owned()),
        ("email", "ada@example.org".to_owned()),
        ("comment", "I like axolotls better.".to_owned()),
    ];
    let comment: Vec<(&str, &str)> = comment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    visitor.submit("/wp-comments-post.php", &comment).expect(302);
    let comments = admin.0.get("/wp-admin/edit-comments.php").expect(200).text();
    assert!(comments.contains("I like axolotls better."), "{comments}");
}

#[test]
fn pages_are_whole_while_many_read_and_write() {
    let site = start();
    let server = &site.server;
    // One after the other: WordPress loses one of two sessions of a user that begin at the same time.
    let admins = [log_in(server), log_in(server)];
    in_parallel(8, |i| {
        for round in 0..5 {
            if let Some(admin) = admins.get(i) {
                publish(server, admin, &format!("Post {round} of {i}"), "A text.");
            }
            let page = server.get("/").expect(200).text();
            assert!(page.trim_end().ends_with("</html>"), "a page lost its end: {page}");
        }
    });
    let posts = server.get("/index.php?rest_route=/wp/v2/posts&per_page=50").expect(200).json();
    assert_eq!(posts.as_array().map(Vec::len), Some(11), "ten posts, and the one of the installation");
    site.server.stop();
}

#[test]
fn a_profile_shows_what_wordpress_does() {
    let site = start();
    let mut folded = String::new();
    keep_asking(&site.server, 2, "/", || folded = profile(&site.server, "folded", 3));
    for name in ["/www/index.php;", ";wp_head;", ";WP_Hook::apply_filters;"] {
        assert!(folded.contains(name), "{name}: {folded}");
    }
    let begins = ["{main} ", "shutdown_action_hook", "WP_Fatal_Error_Handler::handle"];
    let other = folded.lines().find(|line| !begins.iter().any(|begin| line.starts_with(begin)));
    assert_eq!(other, None, "neither the script nor what is called when it is over");
    if let Some(file) = std::env::var_os("REGENT_PICTURE") {
        let mut picture = String::new();
        keep_asking(&site.server, 2, "/", || picture = profile(&site.server, "svg", 30));
        std::fs::write(file, picture).expect("the picture can be written");
    }
    site.server.stop();
}

fn profile(server: &Server, format: &str, seconds: u64) -> String {
    server
        .admin()
        .get(&format!("/regent/profile?format={format}&seconds={seconds}&hertz=100"))
        .expect(200)
        .text()
}

/// Turns of a few seconds with a profile and without one.
#[test]
#[ignore = "a figure"]
fn what_a_profile_costs() {
    const SECONDS: u64 = 5;
    const ROUNDS: usize = 12;
    let site = start();
    let server = &site.server;
    // The caches are warm, and the clients are the same in both.
    let turn = |is_profiled: bool| {
        let (before, begun) = (cpu_time(server.pid()), Instant::now());
        let answers = keep_asking(server, 4, "/", || match is_profiled {
            true => drop(profile(server, "folded", SECONDS)),
            false => std::thread::sleep(Duration::from_secs(SECONDS)),
        });
        let requests = answers.len() as f64;
        let cpu = cpu_time(server.pid()) - before;
        (requests / begun.elapsed().as_secs_f64(), cpu.as_secs_f64() * 1000.0 / requests)
    };
    turn(true);
    let mut ratios = Vec::new();
    println!(
        "| round | requests/s without | with | CPU ms a request without | with |\n|--:|--:|--:|--:|--:|"
    );
    for round in 1..=ROUNDS {
        let is_first = round % 2 == 0;
        let (one, other) = (turn(is_first), turn(!is_first));
        let (with, without) = if is_first { (one, other) } else { (other, one) };
        println!("| {round} | {:.1} | {:.1} | {:.2} | {:.2} |", without.0, with.0, without.1, with.1);
        ratios.push((with.0 / without.0, with.1 / without.1));
    }
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = ratios.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        (all[ROUNDS / 2 - 1] + all[ROUNDS / 2]) / 2.0
    };
    println!(
        "with a profile: {:.3} of the requests/s, {:.3} of the CPU time",
        median(|r| r.0),
        median(|r| r.1)
    );
    site.server.stop();
}
