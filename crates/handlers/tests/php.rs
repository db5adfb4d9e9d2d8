//! `php` and `php_server`: which requests go to PHP, and as what.

use crate::common::*;
use regent_config::*;
use regent_handlers::{PhpTarget, Sites};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const SOURCE: &str = "<?php echo 'source';";

fn app() -> TempDir {
    directory(&[
        ("index.php", SOURCE),
        ("hello.php", SOURCE),
        ("style.css", "css"),
        ("plain", "no extension"),
        ("index.html", "html"),
        ("admin/index.php", SOURCE),
        ("docs/index.html", "docs"),
        ("odd.php/data.txt", SOURCE),
        (".env", "SECRET=1"),
        ("upper.PHP", SOURCE),
    ])
}

fn serving(dir: &Path, server: PhpServer) -> Sites {
    site(vec![root(dir), always(Handler::PhpServer(server))])
}

fn parts(target: &PhpTarget) -> (&str, &str) {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    (text(target.script_name()), text(target.path_info()))
}

#[test]
fn scripts_and_the_front_controller_go_to_php() {
    let dir = app();
    let sites = serving(dir.path(), php_server());
    for (uri, script, info) in [
        ("/hello.php", "/hello.php", ""),
        ("/hello.php?x=/../y", "/hello.php", ""),
        ("/hello.php/a%20b/c", "/hello.php", "/a b/c"),
        ("/hello.php/", "/hello.php", "/"),
        ("/hello%2Ephp", "/hello.php", ""),
        ("/hello.php%2Finfo", "/hello.php", "/info"),
        ("//hello.php", "/hello.php", ""),
        ("/x/../hello.php", "/hello.php", ""),
        ("/upper.PHP", "/upper.PHP", ""),
        ("/", "/index.php", ""),
        ("/no/such/page", "/index.php", ""),
        ("/none.php", "/index.php", ""),
        ("/none.php/x", "/index.php", ""),
        ("/admin/", "/admin/index.php", ""),
        ("/odd.php/data.txt", "/index.php", ""),
        ("/docs/", "/index.php", ""),
        ("/.git", "/index.php", ""),
    ] {
        let target = php(&sites, uri);
        assert_eq!(parts(&target), (script, info), "{uri}");
        let base = dir.path().canonicalize().unwrap();
        assert_eq!(target.script_filename(), base.join(&script[1..]), "{uri}");
        assert_eq!(target.document_root(), base);
        assert_eq!(target.worker, None);
    }
}

#[test]
fn names_that_are_not_utf_8_stay_exact() {
    let dir = directory(&[("index.php", SOURCE)]);
    std::fs::write(dir.path().join(OsStr::from_bytes(b"\xe9t\xe9.php")), SOURCE).unwrap();
    let sites = serving(dir.path(), php_server());
    let target = php(&sites, "/%E9t%E9.php/%FF");
    assert_eq!(target.script_name(), b"/\xe9t\xe9.php");
    assert_eq!(target.path_info(), b"/\xff");
    assert_eq!(target.url_path(), b"/\xe9t\xe9.php/\xff");
    assert!(target.path_translated().ends_with(b"/\xff"));
}

#[test]
fn everything_else_is_a_static_file() {
    let dir = app();
    let sites = serving(dir.path(), php_server());
    assert_eq!(get(&sites, "/style.css").text(), "css");
    assert_eq!(get(&sites, "/plain").text(), "no extension");
    assert_eq!(get(&sites, "/.env").status, 404);
}

#[test]
fn directories_with_an_index_get_their_slash() {
    let dir = app();
    let sites = serving(dir.path(), php_server());
    for (uri, location) in [
        ("/admin?a=1", "/admin/?a=1"),
        ("//evil.example/../admin", "/admin/"),
        ("/%2Fevil.example/..%2Fadmin", "/admin/"),
    ] {
        let answer = get(&sites, uri);
        assert_eq!((answer.status, answer.header("location")), (308, location), "{uri}");
    }
}

#[test]
fn without_a_front_controller_missing_scripts_are_404() {
    let dir = directory(&[("hello.php", SOURCE), ("docs/index.html", "docs"), ("evil.example/x", "")]);
    let sites = serving(dir.path(), php_server());
    for uri in ["/none.php", "/none.php/x", "/none", "/"] {
        assert_eq!(get(&sites, uri).status, 404, "{uri}");
    }
    assert_eq!(get(&sites, "/docs/").text(), "docs");
    let answer = get(&sites, "//evil.example/../docs");
    assert_eq!((answer.status, answer.header("location")), (308, "/docs/"));
}

#[test]
fn options_of_php_server() {
    let dir = app();
    let no_index = PhpServer { index: None, try_files: Vec::new(), ..php_server() };
    let sites = serving(dir.path(), no_index);
    assert_eq!(parts(&php(&sites, "/hello.php/x")), ("/hello.php", "/x"));
    assert_eq!(get(&sites, "/none.php").status, 404);
    assert_eq!(get(&sites, "/").text(), "html");

    let no_files = PhpServer { file_server: None, ..php_server() };
    let sites = serving(dir.path(), no_files);
    assert_eq!(parts(&php(&sites, "/style.css")), ("/index.php", ""));

    let dead_end =
        PhpServer { try_files: vec![Template(vec![request_path()]), Template::text("=410")], ..php_server() };
    let sites = serving(dir.path(), dead_end);
    assert_eq!(get(&sites, "/none").status, 410);
    assert_eq!(get(&sites, "/style.css").text(), "css");

    let directory = Template(vec![request_path(), Part::Text("/".into())]);
    let with_directories =
        PhpServer { try_files: vec![directory, Template::text("index.php")], ..php_server() };
    let sites = serving(dir.path(), with_directories);
    assert_eq!(get(&sites, "/docs/").text(), "docs");
    assert_eq!(get(&sites, "/docs").header("location"), "/docs/");
    assert_eq!(parts(&php(&sites, "/none/")), ("/index.php", ""));

    let path = |text: &str| Template(vec![Part::Text(text.into()), request_path()]);
    let computed = PhpServer { try_files: vec![path("/admin/..")], ..php_server() };
    assert_eq!(parts(&php(&serving(dir.path(), computed), "/hello.php")), ("/hello.php", ""));
}

#[test]
fn worker_scripts_go_to_their_worker() {
    let dir = app();
    let base = dir.path().canonicalize().unwrap();
    let workers = [worker(base.join("index.php")), worker("/outside/api.php".into())];
    let mut server = php_server();
    server.php.workers = vec![
        WorkerRef { id: WorkerId(0), matches: Vec::new(), scope: WorkerScope::Block },
        WorkerRef { id: WorkerId(1), matches: vec![Template::text("/api/*")], scope: WorkerScope::Block },
    ];
    server.php.delivery.env = vec![("APP".into(), Template(vec![placeholder("http.request.host")]))];
    let sites = site_with(vec![root(dir.path()), always(Handler::PhpServer(server))], &workers);

    let front = php(&sites, "/no/such/page");
    assert_eq!((front.worker, parts(&front)), (Some(WorkerId(0)), ("/index.php", "")));
    assert_eq!(front.script_filename(), base.join("index.php"));
    assert_eq!(front.delivery.env, [("APP".to_owned(), String::new())]);

    let direct = php(&sites, "/index.php/info");
    assert_eq!((direct.worker, parts(&direct)), (Some(WorkerId(0)), ("/index.php", "/info")));

    let api = php(&sites, "/API/users");
    assert_eq!((api.worker, parts(&api)), (Some(WorkerId(1)), ("", "")));
    assert_eq!(api.script_filename(), Path::new("/outside/api.php"));

    assert_eq!(php(&sites, "/hello.php").worker, None);
    assert_eq!(get(&sites, "/style.css").text(), "css");
}

#[test]
fn a_match_leaves_static_files_alone() {
    let dir = app();
    let mut server = php_server();
    server.php.workers =
        vec![WorkerRef { id: WorkerId(0), matches: vec![Template::text("*")], scope: WorkerScope::Block }];
    let workers = [worker(dir.path().canonicalize().unwrap().join("index.php"))];
    let sites = site_with(vec![root(dir.path()), always(Handler::PhpServer(server))], &workers);
    assert_eq!(get(&sites, "/style.css").text(), "css");
    for uri in ["/", "/page", "/none.css", "/.env", "/hello.php", "/odd.php/data.txt"] {
        let target = php(&sites, uri);
        assert_eq!((target.worker, parts(&target)), (Some(WorkerId(0)), ("/index.php", "")), "{uri}");
    }
}

#[test]
fn the_root_is_resolved_unless_told_otherwise() {
    let dir = directory(&[("release/index.php", SOURCE)]);
    let base = dir.path().canonicalize().unwrap();
    std::os::unix::fs::symlink(base.join("release"), base.join("current")).unwrap();
    let target = |resolve| {
        let mut server = php_server();
        server.php.resolve_root_symlink = resolve;
        php(&serving(&base.join("current"), server), "/x")
    };
    assert_eq!(target(true).script_filename(), base.join("release/index.php"));
    assert_eq!(target(true).document_root(), base.join("release"));
    assert_eq!(target(false).script_filename(), base.join("current/index.php"));
}

#[test]
fn files_of_a_linked_root_are_those_of_its_scripts_and_hidden_by_either_name() {
    let dir = directory(&[
        ("1/index.php", SOURCE),
        ("1/a.css", "old"),
        ("1/old.css", "old"),
        ("1/private/x.css", "private"),
        ("2/index.php", SOURCE),
        ("2/a.css", "new"),
    ]);
    let base = dir.path().canonicalize().unwrap();
    let link = base.join("current");
    std::os::unix::fs::symlink(base.join("1"), &link).unwrap();
    let mut server = php_server();
    let hidden = Template::text(link.join("private").display().to_string());
    server.file_server.as_mut().unwrap().hide.push(hidden);
    let sites = serving(&link, server);
    assert_eq!(get(&sites, "/a.css").text(), "old");
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(base.join("2"), &link).unwrap();
    assert_eq!(get(&sites, "/a.css").text(), "old", "the scripts that run are old, too");
    assert_eq!(get(&sites, "/old.css").text(), "old");
    assert_eq!(php(&sites, "/x").document_root(), base.join("1"));
    assert_eq!(get(&sites, "/private/x.css").status, 404);
}

#[test]
fn php_alone_runs_scripts_that_exist() {
    let dir = app();
    let sites = site(vec![root(dir.path()), always(Handler::Php(Php::default()))]);
    assert_eq!(parts(&php(&sites, "/hello.php/x")), ("/hello.php", "/x"));
    for uri in ["/none.php", "/style.css", "/", "/odd.php", "/.env"] {
        assert_eq!(get(&sites, uri).status, 404, "{uri}");
    }
}

#[test]
fn symfonys_caddyfile_works() {
    let dir = app();
    let base = dir.path().canonicalize().unwrap();
    let own_path = FileMatcher { try_files: vec![Template(vec![request_path()])], ..FileMatcher::default() };
    let not_mercure = Matcher::Not(vec![vec![path_is("/.well-known/mercure*")]]);
    let not_file = Matcher::Not(vec![vec![Matcher::File(own_path)]]);
    let php_handler = Php {
        workers: vec![WorkerRef { id: WorkerId(0), matches: Vec::new(), scope: WorkerScope::Block }],
        ..Php::default()
    };
    let routes = vec![
        root(dir.path()),
        Route {
            group: None,
            matchers: vec![vec![not_mercure, not_file]],
            handler: Handler::Rewrite(Rewrite::To(Template::text("index.php"))),
        },
        when(path_is("index.php"), Handler::Php(php_handler)),
        always(Handler::FileServer(FileServer {
            hide: vec![Template::text("*.php")],
            ..FileServer::default()
        })),
    ];
    let sites = site_with(routes, &[worker(base.join("index.php"))]);
    for uri in ["/", "/blog/1", "/index.php"] {
        let target = php(&sites, uri);
        assert_eq!((target.worker, parts(&target)), (Some(WorkerId(0)), ("/index.php", "")), "{uri}");
    }
    assert_eq!(get(&sites, "/style.css").text(), "css");
    assert_eq!(get(&sites, "/hello.php").status, 404);
}

#[test]
fn a_file_server_beside_php_never_shows_sources() {
    let dir = app();
    let php_route = when(path_is("/admin/*.php"), Handler::Php(Php::default()));
    let sites = site(vec![root(dir.path()), php_route, always(Handler::FileServer(FileServer::default()))]);
    assert_eq!(get(&sites, "/hello.php").status, 404);
    assert_eq!(get(&sites, "/upper.PHP").status, 404);
    let plain = site(vec![root(dir.path()), always(Handler::FileServer(FileServer::default()))]);
    assert_eq!(get(&plain, "/hello.php").text(), SOURCE);
}

#[test]
fn a_block_says_more_of_deadline_and_lane_than_the_routes_before_it() {
    let dir = app();
    let named = |name: &str| LaneChoice::Named(name.into());
    let before = |block: Php| {
        let routes = vec![
            root(dir.path()),
            always(Handler::Deadline(Duration::from_secs(2))),
            always(Handler::Lane(named("slow"))),
            always(Handler::Php(block)),
        ];
        let target = php(&site(routes), "/hello.php");
        (target.delivery.deadline, target.delivery.lane.as_deref().cloned())
    };
    assert_eq!(before(Php::default()), (Some(Duration::from_secs(2)), Some(named("slow"))));
    let delivery = Delivery {
        deadline: Some(Duration::from_secs(1)),
        lane: Some(LaneChoice::Off),
        ..Delivery::default()
    };
    let block = Php { delivery, ..Php::default() };
    assert_eq!(before(block), (Some(Duration::from_secs(1)), Some(LaneChoice::Off)));
    let nothing = php(&serving(dir.path(), php_server()), "/hello.php").delivery;
    assert_eq!((nothing.deadline, nothing.lane), (None, None));
}

#[test]
fn names_need_not_be_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let dir = app();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(dir.path().join(name), "latin1").unwrap();
    let sites = serving(dir.path(), php_server());
    assert_eq!(get(&sites, "/caf%E9.txt").text(), "latin1");
}
