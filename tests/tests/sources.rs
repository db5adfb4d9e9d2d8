//! PHP's source code is never sent as text by `php_server`, by whatever name it lies there.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup};

const SOURCE: &str = "<?php $password = 'secret';";

/// Names that editors, people and other servers give to scripts, and what is not for the world in most projects.
const HIDDEN: &[&str] = &[
    "x.php~",
    "x.php.bak",
    "x.php.swp",
    "x.php.save",
    "x.php.orig",
    "x.php.dist",
    "x.php.old",
    "x.php.txt",
    "x.php_old",
    "x.php.1",
    "x.PHP.BAK",
    "x.phtml",
    "x.phar",
    "x.phps",
    "x.inc",
    "x.php5",
    "a/b/x.php~",
    ".env",
    ".git/config",
    ".htpasswd",
    ".htaccess",
    "a/.svn/entries",
    ".x.php.swp",
];
const SHOWN: &[&str] =
    &["style.css", "x.js", "php.js", "jquery.inc.js", "a/b/photo.jpg", ".well-known/security.txt"];

fn setup() -> Setup {
    let hidden = HIDDEN.iter().fold(Setup::new(), |setup, name| setup.file(name, SOURCE));
    SHOWN.iter().fold(hidden, |setup, name| setup.file(name, "public"))
}

fn assert_hidden(server: &Server) {
    for name in HIDDEN {
        let answer = server.get(&format!("/{name}"));
        assert_eq!(answer.status, 404, "{name}: {}", answer.text());
        assert!(!answer.text().contains("secret"), "{name}");
    }
    for name in SHOWN {
        assert_eq!(server.get(&format!("/{name}")).expect(200).text(), "public", "{name}");
    }
}

#[test]
fn copies_of_scripts_were_sent_as_text() {
    let server = setup().start();
    assert_hidden(&server);
    server.stop();
}

#[test]
fn copies_of_scripts_were_sent_as_text_beside_a_front_controller() {
    let server = setup().file("index.php", "<?php echo 'front';").start();
    assert_hidden(&server);
    assert_eq!(server.get("/no/such/page.php.bak").expect(200).text(), "front", "there is nothing to hide");
    server.stop();
}

#[test]
fn copies_of_scripts_are_no_assets_of_a_worker() {
    let server = setup()
        .file("index.php", "<?php while (frankenphp_handle_request(function () { echo 'worker'; })) {}")
        .site("php_server {\nworker {\nfile ROOT/index.php\nnum 1\nmatch *\n}\n}")
        .start();
    for name in HIDDEN {
        assert_eq!(server.get(&format!("/{name}")).expect(200).text(), "worker", "{name}");
    }
    assert_eq!(server.get("/style.css").expect(200).text(), "public");
    server.stop();
}

#[test]
fn a_file_server_of_ones_own_publishes_what_it_is_told_to() {
    let server =
        setup().site("route {\n@downloads path *.phar *.inc\nfile_server @downloads\nphp_server\n}").start();
    for name in ["x.phar", "x.inc"] {
        assert_eq!(server.get(&format!("/{name}")).expect(200).text(), SOURCE, "{name}");
    }
    for name in ["x.php~", ".env"] {
        server.get(&format!("/{name}")).expect(404);
    }
    server.stop();
}
