//! WordPress with MariaDB, as its users meet it: installed in the browser, then written, read, searched and commented on.
//!
//! The picture in docs/profiling.md, and what a profile costs (on a quiet machine):
//! ```sh
//! REGENT_PICTURE=$PWD/docs/wordpress-profile.svg tools/test apps -- --exact a_profile_shows_what_wordpress_does
//! tools/test apps -- --exact --ignored --nocapture what_a_profile_costs
//! ```
#![forbid(unsafe_code)]

use regent_tests::browser::Browser;
use regent_tests::docs::blocks;
use regent_tests::process::cpu_time;
use regent_tests::wordpress::WordPress;
use regent_tests::{Server, Setup, in_parallel, keep_asking};
use std::time::{Duration, Instant};

fn start() -> WordPress {
    // Deprecations are of the application's age, not of the server.
    WordPress::start(
        Setup::new().admin("ADMIN").php_options("num_threads 4\n\t\tphp_ini error_reporting 8191"),
    )
}

#[test]
fn a_blog_is_installed_written_read_and_commented_on() {
    let site = start();
    check_blog(&site);
    site.server.stop();
}

/// As FrankenPHP's documentation starts WordPress: a command in its directory.
#[test]
fn a_blog_is_served_by_a_command_without_a_configuration() {
    let setup = Setup::new();
    let start = format!("cd '{}' && exec \"$@\"", setup.root().display());
    let setup = setup.launcher(&["sh", "-c", &start, "sh"]).arguments(&["php-server", "--listen", "ADDRESS"]);
    let site = WordPress::start(quiet(setup));
    check_blog(&site);
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
    let site = WordPress::start(setup.file("reload.php", "<?php echo $_SERVER['FRANKENPHP_HOT_RELOAD'];"));
    check_blog(&site);
    assert!(site.server.get("/reload.php").expect(200).text().starts_with("/.well-known/mercure?topic="));
    site.server.wait_for_log("\"msg\":\"handled request\"");
    site.server.stop();
}

#[test]
fn a_blog_is_served_by_the_configuration_of_its_page() {
    let example = blocks("docs/wordpress.md", "caddyfile").swap_remove(0);
    let example = example.replace("blog.example.com", "http://ADDRESS").replace("/srv/blog", "ROOT");
    let options = "{\nadmin off\nfrankenphp {\nnum_threads 4\nmax_wait_time off\n}\n}\n";
    let setup = Setup::new().caddyfile(&format!("{options}{example}"));
    let setup = ["shell.php", "2026/index.php"]
        .iter()
        .fold(setup, |setup, name| setup.file(&format!("wp-content/uploads/{name}"), "<?php echo 'ran';"));
    let site = WordPress::start(quiet(setup));
    check_blog(&site);
    let server = &site.server;
    server.get("/?p=1&any=new");
    let again = server.get("/?p=1&any=new");
    assert!(
        again.header("cache-status").is_some_and(|status| status.starts_with("Regent; hit")),
        "{again:?}"
    );
    for path in ["/wp-content/uploads/shell.php", "/wp-content/uploads/2026/"] {
        server.get(path).expect(404);
    }
    let guess = [("log", "admin"), ("pwd", "wrong"), ("testcookie", "1")];
    let refused = (0..20).any(|_| Browser::new(server).submit("/wp-login.php", &guess).status == 429);
    assert!(refused, "passwords can be tried twenty times a minute");
    site.server.stop();
}

/// Deprecations are of the application's age, not of the server.
fn quiet(setup: Setup) -> Setup {
    let file = setup.directory().join("php.ini");
    std::fs::write(file, "error_reporting = 8191\n").expect("the directory is ours");
    setup.env("PHPRC", "DIRECTORY/php.ini")
}

fn check_blog(site: &WordPress) {
    let server = &site.server;
    let home = server.get("/").expect(200).text();
    assert!(home.contains("The blog of the test") && home.contains("Hello world!"), "{home}");

    let admin = site.admin();
    let (number, path) = site.publish(&admin, "On fish", "It speaks of <strong>zebrafish</strong>.");
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
    let comments = admin.browser.get("/wp-admin/edit-comments.php").expect(200).text();
    assert!(comments.contains("I like axolotls better."), "{comments}");
}

#[test]
fn pages_are_whole_while_many_read_and_write() {
    let site = start();
    let server = &site.server;
    // One after the other: WordPress loses one of two sessions of a user that begin at the same time.
    let admins = [site.admin(), site.admin()];
    in_parallel(8, |i| {
        for round in 0..5 {
            if let Some(admin) = admins.get(i) {
                site.publish(admin, &format!("Post {round} of {i}"), "A text.");
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
#[expect(clippy::disallowed_methods, reason = "a figure: the time is what is measured")]
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
