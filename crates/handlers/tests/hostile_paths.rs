//! Paths that were made to reach what they should not.

use crate::common::*;
use proptest::prelude::*;
use regent_config::*;
use regent_handlers::{Action, Sites, Target};
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

const SOURCE: &str = "<?php $secret = 'SOURCE';";
const OUTSIDE: &str = "OUTSIDE";

/// `www` is served; beside it lies what must never be.
fn tree() -> TempDir {
    directory(&[
        ("secret.txt", OUTSIDE),
        ("secret.php", SOURCE),
        ("www-old/x.txt", OUTSIDE),
        ("www/index.php", SOURCE),
        ("www/x.php", SOURCE),
        ("www/X.PHP", SOURCE),
        ("www/dot.php.", SOURCE),
        ("www/space.php ", SOURCE),
        ("www/a/b.php", SOURCE),
        ("www/a/index.php", SOURCE),
        ("www/dir.php/inner.txt", "a text in a directory with an odd name"),
        ("www/dir.php/inner.php", SOURCE),
        ("www/x.php.gz", SOURCE),
        ("www/x.php~", SOURCE),
        ("www/x.phtml", SOURCE),
        ("www/a/ok.txt", "fine"),
        ("www/.env", OUTSIDE),
        ("www/.git/config", OUTSIDE),
    ])
}

fn sites(root_dir: &Path) -> Vec<Sites> {
    let with_root = |handlers: Vec<Handler>| {
        site([root(root_dir)].into_iter().chain(handlers.into_iter().map(always)).collect())
    };
    let precompressed = vec!["gzip".to_owned()];
    let files = FileServer {
        precompressed: precompressed.clone(),
        hide: vec![Template::text("*.gz")],
        ..FileServer::default()
    };
    let no_index = PhpServer { index: None, try_files: Vec::new(), ..php_server() };
    vec![
        with_root(vec![Handler::PhpServer(PhpServer { file_server: Some(files.clone()), ..php_server() })]),
        with_root(vec![Handler::PhpServer(PhpServer { file_server: Some(files.clone()), ..no_index })]),
        site(vec![
            root(root_dir),
            when(path_is("*.php"), Handler::Php(Php::default())),
            always(Handler::FileServer(files)),
        ]),
        with_root(vec![Handler::Php(Php::default())]),
    ]
}

/// Neither source code nor a file from outside is ever sent, and what PHP is to run is a `.php` file in the root.
fn assert_harmless(sites: &Sites, root_dir: &Path, uri: &str) {
    let mut exchange = exchange("GET", uri, &[("accept-encoding", "gzip")]);
    match sites.route(&mut exchange) {
        Action::Forward(Target::Php(target)) => {
            let root_dir = root_dir.canonicalize().unwrap();
            let file = target.script_filename().canonicalize().unwrap();
            assert!(file.is_file() && file.starts_with(&root_dir), "{uri}: {}", file.display());
            assert!(
                file.to_str().unwrap().to_ascii_lowercase().ends_with(".php"),
                "{uri}: {}",
                file.display()
            );
            assert_eq!(target.document_root(), root_dir);
        }
        Action::Abort | Action::Verify(_) | Action::List(_) | Action::Render(_) => {
            panic!("{uri} was not answered")
        }
        Action::Forward(target) => panic!("{uri} went elsewhere than to PHP: {target:?}"),
        Action::Respond(response) => {
            let answer = finish(exchange, response);
            let body = String::from_utf8_lossy(&answer.body);
            assert!(!body.contains("SOURCE") && !body.contains(OUTSIDE), "{uri}: {} {body}", answer.status);
            let location = answer.header("location");
            assert!(!location.starts_with("//") && !location.starts_with("/\\"), "{uri}: {location}");
        }
    }
}

#[test]
fn known_tricks_do_not_work() {
    let dir = tree();
    let root_dir = dir.path().join("www");
    for sites in sites(&root_dir) {
        for uri in [
            "/../secret.txt",
            "/../../../../../../etc/passwd",
            "/%2e%2e/secret.txt",
            "/%2E%2E%2Fsecret.txt",
            "/..%2fsecret.txt",
            "/..%252fsecret.txt",
            "/..%5csecret.txt",
            "/..\\secret.txt",
            "/%c0%ae%c0%ae/secret.txt",
            "/%c0%ae%c0%ae%c0%afsecret.txt",
            "/a/../../secret.txt",
            "/a/..;/..;/secret.txt",
            "/./.././secret.txt",
            "/..",
            "/../www-old/x.txt",
            "/%2e%2e%2fwww-old%2fx.txt",
            "/../secret.php",
            "/..%2fsecret.php/x",
            "/x.php/../../secret.php",
            "/x.php",
            "/x.php/",
            "/x.php/.",
            "/x.php//",
            "/x.php%2f",
            "/x.php%00",
            "/x.php%00.txt",
            "/x.php%20",
            "/x.php.",
            "/x.php..",
            "/x.php%2e",
            "/x.php::$DATA",
            "/x.php%3f",
            "/x.php%23",
            "/x.php;.txt",
            "/x.php/.txt",
            "/x.php/a.txt",
            "/x.PHP",
            "/X.php",
            "/X.PHP",
            "/x.pHp/",
            "/%78.php",
            "/x%2ephp",
            "/x.ph%70",
            "/x.php.gz",
            "/dot.php.",
            "/dot.php.%20",
            "/space.php%20",
            "/space.php",
            "/dir.php/inner.txt",
            "/dir.php/inner.php",
            "/dir.php",
            "/dir.php/",
            "/a/b.php",
            "/a//b.php",
            "/a/./b.php",
            "//a/b.php",
            "/a%2fb.php",
            "/A/b.php",
            "/.env",
            "/%2eenv",
            "/./.env",
            "/a/../.env",
            "/.git/config",
            "/.git%2fconfig",
            "//evil.example/../a",
            "//evil.example/%2e%2e/a",
            "/%2fevil.example/..%2fa",
            "/\\evil.example/../a",
            "/%5cevil.example/../a",
            "///evil.example/../a",
        ] {
            assert_harmless(&sites, &root_dir, uri);
        }
    }
}

/// Pieces that paths to trouble are made of, and any bytes.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "/", "//", "..", ".", "%2e", "%2F", "%5c", "\\", "%00", "%20", ";", "a", "b", "x", "X", "www", "secret",
            "index", "dir", ".php", ".PHP", "%2ephp", ".ph%70", ".txt", ".gz", ".env", ".git", "-old", "dot", "inner",
        ])
        .prop_map(str::to_owned),
        1 => any::<u8>().prop_map(|byte| format!("%{byte:02x}")),
    ]
}

/// One tree for all cases: nothing writes to it.
static TREE: LazyLock<(TempDir, Vec<Sites>)> = LazyLock::new(|| {
    let dir = tree();
    let sites = sites(&dir.path().join("www"));
    (dir, sites)
});

fn assert_harmless_everywhere(uri: &str) {
    let (dir, sites) = &*TREE;
    for sites in sites {
        assert_harmless(sites, &dir.path().join("www"), uri);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_path_leaves_the_root_or_shows_sources(pieces in prop::collection::vec(piece(), 0..12)) {
        let uri = format!("/{}", pieces.concat());
        if uri.parse::<http::Uri>().is_ok() {
            assert_harmless_everywhere(&uri);
        }
    }

    #[test]
    fn no_bytes_make_the_routes_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let path: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
        assert_harmless_everywhere(&format!("/{path}"));
    }
}
