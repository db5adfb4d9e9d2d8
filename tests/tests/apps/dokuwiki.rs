//! DokuWiki, as its users meet it: installed by its own installer, then read, edited and searched.
#![forbid(unsafe_code)]

use regent_tests::apps::{copy_tree, packages_of, replace_in_php_files};
use regent_tests::browser::{Browser, hidden_field};
use regent_tests::{Server, Setup, in_parallel, until};
use std::fs;
use std::path::Path;

/// Deprecations are of the application's age, not of the server.
const PHP_OPTIONS: &str = "num_threads 4\n\t\tphp_ini error_reporting 8191";

/// Puts the package's parts together as the project itself ships them: one directory with `conf` and `data` in it.
///
/// Debian spreads them over `/usr/share`, `/etc` and `/var/lib`, and names those paths in the sources.
fn unpack_wiki(root: &Path) {
    let packages = packages_of("dokuwiki");
    let (program, state) = (packages.join("usr/share/dokuwiki"), packages.join("var/lib/dokuwiki"));
    copy_tree(&program, root);
    for name in [".htaccess", "inc/preload.php", "lib/plugins", "lib/tpl"] {
        fs::remove_file(root.join(name)).unwrap_or_else(|error| panic!("the package has {name}: {error}"));
    }
    copy_tree(&state.join("lib"), &root.join("lib"));
    copy_tree(&state.join("data"), &root.join("data"));
    copy_tree(&packages.join("etc/dokuwiki"), &root.join("conf"));
    for name in ["acl.auth.php", "users.auth.php"] {
        fs::remove_file(root.join("conf").join(name)).expect("the package has this link");
    }
    replace_in_php_files(root, "'/usr/share/", &format!("'{}/usr/share/", packages.display()));
    replace_in_php_files(&root.join("conf"), "'/var/lib/dokuwiki/data'", "'./data'");
}

fn start() -> Server {
    // DokuWiki has its own front controllers; its .htaccess file denies these directories.
    let setup = Setup::new().php_options(PHP_OPTIONS).site(
        "@private path /conf/* /data/* /inc/* /vendor/* /bin/*\n\trespond @private 403\n\tphp_server {\n\t\tindex doku.php\n\t}",
    );
    unpack_wiki(&setup.root());
    setup.start()
}

fn log_in(visitor: &Browser<'_>) {
    let form = visitor.get("/doku.php?id=start&do=login").expect(200).text();
    let answer = visitor.submit(
        "/doku.php?id=start",
        &[
            ("sectok", &hidden_field(&form, "sectok")),
            ("id", "start"),
            ("do", "login"),
            ("u", "admin"),
            ("p", "secret-1"),
        ],
    );
    // PHP says 303 after a POST over HTTP/1.1, 302 otherwise (sapi_header_op() in main/SAPI.c).
    answer.expect(303);
    assert!(visitor.get("/doku.php?id=start").expect(200).text().contains("Logged in as"));
}

/// Opens a page's editor, replaces the text and saves.
fn edit(visitor: &Browser<'_>, page: &str, text: &str) {
    let editor = visitor.get(&format!("/doku.php?id={page}&do=edit")).expect(200).text();
    let answer = visitor.submit(
        "/doku.php",
        &[
            ("sectok", &hidden_field(&editor, "sectok")),
            ("id", page),
            ("rev", "0"),
            ("date", &hidden_field(&editor, "date")),
            ("prefix", "."),
            ("suffix", ""),
            ("changecheck", &hidden_field(&editor, "changecheck")),
            ("target", "section"),
            ("wikitext", text),
            ("summary", "by the test"),
            ("do[save]", "1"),
        ],
    );
    assert_eq!(answer.status, 303, "saving {page}: {}", answer.text());
}

fn install(visitor: &Browser<'_>) {
    let form = visitor.get("/install.php?l=en").expect(200).text();
    assert!(form.contains("d[superuser]"), "the installer sees no obstacle: {form}");
    let done = visitor.submit(
        "/install.php",
        &[
            ("l", "en"),
            ("d[title]", "The wiki of the test"),
            ("d[acl]", "on"),
            ("d[superuser]", "admin"),
            ("d[fullname]", "Ada Admin"),
            ("d[email]", "admin@example.org"),
            ("d[password]", "secret-1"),
            ("d[confirm]", "secret-1"),
            ("d[policy]", "1"),
            ("d[license]", "cc-by-sa"),
            ("submit", ""),
        ],
    );
    let done = done.expect(200).text();
    assert!(done.contains("The configuration was finished successfully"), "{done}");
}

#[test]
fn a_wiki_is_installed_edited_and_searched() {
    let server = start();
    let admin = Browser::new(&server);
    install(&admin);

    let guest = Browser::new(&server);
    assert!(guest.get("/").expect(200).text().contains("The wiki of the test"));
    let editor = guest.get("/doku.php?id=new:page&do=edit").text();
    assert!(!editor.contains("do[save]"), "guests may only read: {editor}");

    log_in(&admin);
    edit(
        &admin,
        "new:page",
        "====== A new page ======\n\nIt speaks of **zebrafish**.\n\n<code php>echo strlen('x');</code>\n",
    );
    let page = guest.get("/doku.php?id=new:page").expect(200).text();
    assert!(page.contains("<strong>zebrafish</strong>"), "{page}");
    assert!(page.contains("class=\"kw1\">echo"), "the highlighter of php-geshi ran: {page}");

    edit(&admin, "new:page", "====== A new page ======\n\nIt speaks of zebrafish and axolotls.\n");
    assert!(guest.get("/doku.php?id=new:page").expect(200).text().contains("axolotls"));
    assert!(guest.get("/doku.php?id=new:page&do=revisions").expect(200).text().contains("by the test"));

    // What a browser does after each page: it fetches a picture, and the script that sends it then updates the index.
    guest.get("/lib/exe/taskrunner.php?id=new%3Apage").expect(200);
    until("the search finds the page", || {
        let found = guest.get("/doku.php?id=start&do=search&q=axolotls").expect(200).text();
        (found.contains("search_fullpage_result") && found.contains("id=new:page")).then_some(())
    });

    for (path, kind) in [
        ("/lib/exe/css.php?t=dokuwiki", "text/css"),
        ("/lib/exe/js.php?t=dokuwiki", "application/javascript"),
        ("/lib/exe/jquery.php", "application/javascript"),
        ("/lib/tpl/dokuwiki/images/logo.png", "image/png"),
        ("/feed.php", "application/xml"),
    ] {
        let answer = guest.get(path).expect(200);
        assert!(
            answer.header("content-type").is_some_and(|value| value.starts_with(kind)),
            "{path}: {answer:?}"
        );
    }
    guest.get("/conf/local.php").expect(403);
    guest.get("/data/pages/new/page.txt").expect(403);
    server.stop();
}

#[test]
fn many_visitors_read_and_write_at_once() {
    let server = start();
    install(&Browser::new(&server));
    in_parallel(8, |i| {
        let visitor = Browser::new(&server);
        if i < 3 {
            log_in(&visitor);
        }
        for round in 0..10 {
            if i < 3 {
                edit(&visitor, &format!("page{i}"), &format!("Visitor {i} wrote round {round}.\n"));
            }
            visitor.get("/doku.php?id=page0").text();
            let page = visitor.get(&format!("/doku.php?id=page{}", i % 3));
            assert!([200, 404].contains(&page.status), "{}", page.text());
        }
    });
    for i in 0..3 {
        let page = server.get(&format!("/doku.php?id=page{i}")).expect(200).text();
        assert!(page.contains(&format!("Visitor {i} wrote round 9.")), "{page}");
    }
    server.stop();
}
