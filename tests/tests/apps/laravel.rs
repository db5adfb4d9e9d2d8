//! A Laravel application with Eloquent, sessions, forms and views, in classic mode and in worker mode.
#![forbid(unsafe_code)]

use regent_tests::apps::{
    check_unparsable_requests, copy_application, copy_tree, fixture, packages_of, replace_in_php_files,
    run_php,
};
use regent_tests::browser::{Browser, hidden_field};
use regent_tests::docs::blocks;
use regent_tests::{Admin, Server, Setup, in_parallel, regent_command, until};
use serde_json::Value;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::symlink;

const CREATE_TABLE: &str = "$db = new PDO('sqlite:'.$argv[1]); $db->exec('create table notes (id integer primary key, title text, created_at text, updated_at text)');";

#[derive(Clone, Copy, Debug)]
enum Mode {
    Classic,
    Worker,
}

fn start(mode: Mode) -> Server {
    // Deprecations are of the application's age, not of the server.
    let php = "php_ini error_reporting 8191\n\t\tphp_ini zend.assertions -1";
    let (php_options, site) = match mode {
        Mode::Classic => (
            format!("num_threads 2\n\t\t{php}"),
            "php_server {\n\t\troot ROOT/public\n\t\tenv LARAVEL_STORAGE DIRECTORY/storage\n\t}",
        ),
        Mode::Worker => (
            format!(
                "num_threads 3\n\t\t{php}\n\t\tworker {{\n\t\t\tfile ROOT/public/worker.php\n\t\t\tnum 2\n\t\t\tenv LARAVEL_STORAGE DIRECTORY/storage\n\t\t}}"
            ),
            "php_server {\n\t\troot ROOT/public\n\t\tindex worker.php\n\t}",
        ),
    };
    let setup = Setup::new().php_options(&php_options).site(site);
    with_application(setup).start()
}

/// With the application as the site, and a database that it can write to.
fn with_application(setup: Setup) -> Setup {
    copy_tree(&fixture("laravel"), &setup.root());
    let (packages, vendor) = (packages_of("laravel"), setup.root().join("vendor"));
    copy_application(&packages, &packages.join("usr/share/php"), &vendor);
    replace_in_php_files(&vendor, "'/usr/share/php/", &format!("'{}/", vendor.display()));
    let storage = setup.directory().join("storage");
    for name in ["framework/sessions", "framework/views", "app"] {
        fs::create_dir_all(storage.join(name)).expect("the directory is the test's own");
    }
    fs::create_dir(setup.root().join("bootstrap/cache")).expect("the directory is the test's own");
    let database = storage.join("database.sqlite").display().to_string();
    run_php(setup.directory(), &["-r", CREATE_TABLE, "--", &database]);
    setup
}

/// Requests that a worker of Octane answers.
const MAX_REQUESTS: &str = "25";

/// As `php artisan octane:start --server=frankenphp` of Octane 2 does it (`StartFrankenPhpCommand`): the program is the first
/// `frankenphp` that is found, its directory the application's, and the configuration full of variables.
fn start_as_octane() -> Server {
    let setup = with_application(Setup::new());
    let root = setup.root();
    symlink(regent_command(&root).get_program(), root.join("frankenphp")).expect("the directory is ours");
    // Of this Laravel's age, not of the server.
    fs::write(setup.directory().join("php.ini"), "error_reporting = 8191\n").expect("the directory is ours");
    let exec = format!("cd '{}' && shift && exec ./frankenphp \"$@\"", root.display());
    let setup = setup.launcher(&["sh", "-c", &exec, "sh"]).arguments(&["run", "-c", "ROOT/octane.caddyfile"]);
    let environment = [
        ("APP_ENV", "local"),
        ("APP_BASE_PATH", "ROOT"),
        ("APP_PUBLIC_PATH", "ROOT/public"),
        ("LARAVEL_OCTANE", "1"),
        ("MAX_REQUESTS", MAX_REQUESTS),
        ("REQUEST_MAX_EXECUTION_TIME", "30"),
        ("CADDY_GLOBAL_OPTIONS", "default_bind LOOPBACK\n\tauto_https disable_redirects"),
        ("CADDY_SERVER_ADMIN_PORT", "TLSPORT"),
        ("CADDY_SERVER_LOG_LEVEL", "INFO"),
        ("CADDY_SERVER_LOGGER", "json"),
        ("CADDY_SERVER_SERVER_NAME", "http://:PORT"),
        ("CADDY_SERVER_WORKER_COUNT", ""),
        (
            "CADDY_SERVER_EXTRA_DIRECTIVES",
            "mercure {\n\t\t\tanonymous\n\t\t\tpublisher_jwt a-secret-of-the-test\n\t\t}",
        ),
        ("LARAVEL_STORAGE", "DIRECTORY/storage"),
        ("PHPRC", "DIRECTORY/php.ini"),
    ];
    environment.iter().fold(setup, |setup, (name, value)| setup.env(name, value)).start()
}

/// Submits the form of the first page.
fn save(browser: &Browser<'_>, title: &str) -> String {
    let form = browser.get("/").expect(200).text();
    let answer = browser.submit("/notes", &[("_token", &hidden_field(&form, "_token")), ("title", title)]);
    // PHP says 302 where the application names the status.
    answer.expect(302);
    browser.get("/").expect(200).text()
}

/// Goes through the whole application.
fn check_application(server: &Server, title: &str) {
    let browser = Browser::new(server);
    assert!(browser.get("/?name=%3CAda%3E").expect(200).text().contains("<h1>Hello, &lt;Ada&gt;</h1>"));
    let page = save(&browser, title);
    assert!(page.contains("The note was saved.") && page.contains(&format!("<li>{title}</li>")), "{page}");
    assert!(
        !browser.get("/").expect(200).text().contains("The note was saved."),
        "a flash message is shown once"
    );
    let page = save(&browser, "a title that is far too long");
    assert!(page.contains("class=\"error\"") && !page.contains("far too long"), "{page}");
    browser.submit("/notes", &[("_token", "forged"), ("title", "x")]).expect(419);
    assert_eq!(server.get("/notes/1").expect(200).json()["id"], 1);
    server.get("/notes/999").expect(404);
    server.get("/failure").expect(500);
    assert_eq!(server.get("/stream").expect(200).text(), "one\ntwo\nthree\n");
    assert_eq!(server.get("/transaction").expect(200).json(), serde_json::json!({"level": 1, "after": 0}));
}

/// Counts the visits of visitors who come at the same time.
fn check_sessions(server: &Server) {
    in_parallel(6, |_| {
        let browser = Browser::new(server);
        for expected in 1..6 {
            assert_eq!(browser.get("/visits").expect(200).json()["visits"], expected);
        }
    });
}

#[test]
fn it_runs_in_classic_mode() {
    let server = start(Mode::Classic);
    check_application(&server, "first");
    check_sessions(&server);
    server.stop();
}

#[test]
fn it_runs_in_worker_mode() {
    let server = start(Mode::Worker);
    check_application(&server, "first");
    check_sessions(&server);
    check_application(&server, "second");
    server.stop();
}

#[test]
fn it_runs_by_the_configurations_of_its_page() {
    let [classic, octane, _tasks] = blocks("docs/laravel.md", "caddyfile").try_into().expect("three");
    let classic = format!("{{\n\tfrankenphp {{\n\t}}\n}}\n{classic}");
    for page in [classic, octane] {
        let own = "{\n\tadmin off\n\tfrankenphp {\n\t\tmax_wait_time off\n\t\tphp_ini error_reporting 8191\n";
        let page = page.replacen("{\n\tfrankenphp {\n", own, 1);
        let page = page.replace("shop.example.com", "http://ADDRESS").replace("/srv/shop", "ROOT");
        let setup = Setup::new().caddyfile(&page).env("LARAVEL_STORAGE", "DIRECTORY/storage");
        let server = with_application(setup).start();
        check_application(&server, "first");
        check_sessions(&server);
        server.stop();
    }
}

/// Its handler of errors throws, as that of each Laravel application.
#[test]
fn requests_that_php_cannot_fully_parse_end_no_worker() {
    let server = start(Mode::Worker);
    check_unparsable_requests(&server, "/");
    server.stop();
}

#[test]
fn octane_starts_follows_reloads_and_stops_it() {
    let mut server = start_as_octane();
    for title in ["first", "second"] {
        check_application(&server, title);
        check_sessions(&server);
    }
    assert_eq!(server.get("/.well-known/mercure").status, 400, "the hub is there, and wants topics");

    // Octane shows each request by its line in the log.
    server.get("/?name=x&authorization=secret").expect(200);
    server.wait_for_log("authorization=REDACTED");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("authorization=REDACTED")).expect("it was waited for");
    let line: Value = serde_json::from_str(line).expect("a line is JSON");
    assert_eq!((&line["msg"], &line["level"]), (&"handled request".into(), &"info".into()), "{line}");
    assert_eq!(line["request"]["method"], "GET");
    assert!(line["duration"].is_f64() && line["status"] == 200, "{line}");
    assert!(!log.contains("authorization=secret"));

    // Its other commands, and what it does when a file has changed (`ServerProcessInspector`).
    let admin = Admin::new((Ipv4Addr::LOCALHOST, server.tls_address().port()).into());
    let before = server.engine();
    let application = admin.get("/config/apps/frankenphp").expect(200).body;
    let reload = admin.request("PATCH", "/config/apps/frankenphp").header("Cache-Control", "must-revalidate");
    reload.body("application/json", application).send().expect(200);
    until("the workers are new", || (server.engines() != [before]).then_some(()));
    check_application(&server, "third");
    admin.request("POST", "/stop").send().expect(200);
    assert!(server.wait().success());
}
