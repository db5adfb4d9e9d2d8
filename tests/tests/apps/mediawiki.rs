//! MediaWiki with SQLite, as its users meet it: installed by its own program, then read, edited and compared.
#![forbid(unsafe_code)]

use regent_tests::apps::{copy_application, packages_of, replace_in_php_files, run_php};
use regent_tests::browser::Browser;
use regent_tests::{Server, Setup, give_to_php, in_parallel};

/// Where the package keeps the texts of the interface: a directory of all wikis of a machine, and so of all tests.
const MACHINE_CACHE: &str = "/var/cache/mediawiki";

fn start() -> Server {
    // Deprecations are of the application's age, not of the server.
    let setup = Setup::new().php_options("num_threads 4\n\t\tphp_ini error_reporting 8191");
    let packages = packages_of("mediawiki");
    copy_application(&packages, &packages.join("usr/share/mediawiki"), &setup.root());
    let server = setup.start();
    install(&server);
    server
}

fn install(server: &Server) {
    let (data, address) = (server.directory().join("data"), format!("http://{}", server.address()));
    std::fs::create_dir(&data).expect("the directory is the test's own");
    let path = data.display().to_string();
    replace_in_php_files(&server.root().join("includes"), MACHINE_CACHE, &path);
    let arguments = [
        "maintenance/run.php",
        "install",
        "--dbtype",
        "sqlite",
        "--dbpath",
        &path,
        "--dbname",
        "wiki",
        "--scriptpath",
        "",
        "--server",
        &address,
        "--pass",
        "secret-1-of-the-test",
        "--with-extensions=0",
        "The wiki of the test",
        "Admin",
    ];
    let text = run_php(&server.root(), &arguments);
    assert!(text.contains("has been successfully installed"), "{text}");
    give_to_php(&data);
}

fn token(browser: &Browser<'_>, kind: &str) -> String {
    let answer = browser.get(&format!("/api.php?action=query&meta=tokens&type={kind}&format=json"));
    let tokens = &answer.expect(200).json()["query"]["tokens"];
    tokens[format!("{kind}token")].as_str().unwrap_or_else(|| panic!("{tokens}")).to_owned()
}

fn log_in(server: &Server) -> Browser<'_> {
    let browser = Browser::new(server);
    let token = token(&browser, "login");
    let fields = [
        ("action", "clientlogin"),
        ("format", "json"),
        ("loginreturnurl", "http://localhost/"),
        ("username", "Admin"),
        ("password", "secret-1-of-the-test"),
        ("logintoken", &token),
    ];
    let answer = browser.submit("/api.php", &fields).expect(200).json();
    assert_eq!(answer["clientlogin"]["status"], "PASS", "{answer}");
    browser
}

fn edit(browser: &Browser<'_>, title: &str, text: &str) {
    let token = token(browser, "csrf");
    let fields =
        [("action", "edit"), ("format", "json"), ("title", title), ("text", text), ("token", &token)];
    let answer = browser.submit("/api.php", &fields).expect(200).json();
    assert_eq!(answer["edit"]["result"], "Success", "{answer}");
}

#[test]
fn a_wiki_is_installed_read_edited_and_compared() {
    let server = start();
    let home = server.get("/index.php/Main_Page").expect(200).text();
    assert!(home.contains("MediaWiki has been installed") && home.trim_end().ends_with("</html>"), "{home}");

    let admin = log_in(&server);
    edit(&admin, "Fish", "It speaks of '''zebrafish'''. See [[Main Page]].");
    edit(&admin, "Fish", "It speaks of '''zebrafish''' and axolotls. See [[Main Page]].");
    let page = server.get("/index.php/Fish").expect(200).text();
    assert!(page.contains("<b>zebrafish</b> and axolotls"), "{page}");
    assert!(server.get("/index.php?title=Fish&action=history").expect(200).text().contains("mw-history"));
    assert!(server.get("/index.php?title=Fish&diff=cur&oldid=prev").expect(200).text().contains("axolotls"));
    server.get("/index.php/No_such_page").expect(404);
    let styles = server.get("/load.php?modules=mediawiki.skinning.content.parsoid&only=styles").expect(200);
    assert_eq!(styles.header("content-type"), Some("text/css; charset=utf-8"));
    let raw = server.get("/index.php?title=Fish&action=raw").expect(200).text();
    assert_eq!(raw, "It speaks of '''zebrafish''' and axolotls. See [[Main Page]].");
    server.stop();
}

#[test]
fn pages_are_whole_while_many_read_and_one_writes() {
    let server = start();
    let admin = log_in(&server);
    in_parallel(8, |i| {
        for round in 0..5 {
            if i == 0 {
                edit(&admin, "Counter", &format!("Round {round} was written."));
            }
            let page = server.get("/index.php/Main_Page").expect(200).text();
            assert!(page.trim_end().ends_with("</html>"), "a page lost its end: {page}");
        }
    });
    assert!(server.get("/index.php/Counter").expect(200).text().contains("Round 4 was written."));
    server.stop();
}
