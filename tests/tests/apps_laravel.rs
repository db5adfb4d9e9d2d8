//! A Laravel application with Eloquent, sessions, forms and views, in classic mode and in worker mode.
#![forbid(unsafe_code)]

use regent_tests::apps::{copy_application, copy_tree, fixture, packages_of, replace_in_php_files, run_php};
use regent_tests::browser::{Browser, hidden_field};
use regent_tests::{Server, Setup, in_parallel};
use std::fs;

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
    setup.start()
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
