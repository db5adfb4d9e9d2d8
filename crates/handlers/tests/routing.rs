//! Sites, routes and the handlers that make answers of their own.

use crate::common::*;
use regent_config::*;
use regent_handlers::{AccessRecord, Action, LogOutputs, RateZones, Sites};
use std::time::Duration;

fn named_site(hosts: &[&str], text: &str) -> Site {
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    Site { hosts, routes: vec![always(respond(text))], ..Site::default() }
}

#[test]
fn hosts_choose_the_site() {
    let sites = vec![
        named_site(&["a.example"], "a"),
        named_site(&["*.example"], "wild"),
        named_site(&["::1"], "six"),
    ];
    let sites = server(sites, &[]);
    for (host, want) in
        [("A.example:8080", "a"), ("b.example", "wild"), ("[::1]:80", "six"), ("c.test", ""), ("", "")]
    {
        let answer = send(&sites, "GET", "/", &[("host", host)]);
        assert_eq!((answer.status, answer.text()), (200, want), "{host}");
    }
}

#[test]
fn the_first_site_that_fits_is_taken() {
    let sites = server(vec![named_site(&[], "every"), named_site(&["a.example"], "a")], &[]);
    assert_eq!(send(&sites, "GET", "/", &[("host", "a.example")]).text(), "every");
}

#[test]
fn a_request_that_nobody_answers_is_an_empty_200() {
    let answer = get(&site(vec![when(path_is("/x"), respond("x"))]), "/y");
    assert_eq!((answer.status, answer.text(), answer.header("content-length")), (200, "", "0"));
    assert_eq!(answer.header("server"), "Regent");
}

#[test]
fn of_a_group_only_the_first_that_matches_is_taken() {
    let grouped = |group, pattern: &str, text: &str| {
        let add = HeaderOp {
            kind: HeaderOpKind::Add,
            name: Template::text("X-Taken"),
            value: Template::text(text),
            deferred: false,
        };
        Route {
            group: Some(group),
            ..when(path_is(pattern), Handler::Subroute(vec![always(Handler::Header(vec![add]))]))
        }
    };
    let sites =
        site(vec![grouped(1, "/a*", "a"), grouped(1, "/ab*", "ab"), grouped(2, "/ab*", "other group")]);
    let taken = |uri| {
        let answer = get(&sites, uri);
        let values = answer.headers.get_all("x-taken").iter();
        values.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(taken("/abc"), ["a", "other group"]);
    assert_eq!(taken("/x"), [""; 0]);
}

#[test]
fn handle_path_strips_for_its_own_routes() {
    let strip = always(Handler::Rewrite(Rewrite::StripPrefix(Template::text("/api"))));
    let echo =
        Handler::Respond { status: Template::default(), body: Template(vec![request_path()]), close: false };
    let sites = site(vec![when(path_is("/api/*"), Handler::Subroute(vec![strip, always(echo)]))]);
    assert_eq!(get(&sites, "/api/users").text(), "/users");
}

#[test]
fn errors_are_small_pages() {
    let error = Handler::Error { status: Template::text("403"), message: Template::text("secret reason") };
    let answer = get(&site(vec![always(error)]), "/");
    assert_eq!((answer.status, answer.text()), (403, "403 Forbidden\n"));
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
}

#[test]
fn requests_without_a_proper_path_are_refused() {
    let sites = site(vec![always(respond("x"))]);
    for uri in ["/%00", "/%", "/%g0"] {
        assert_eq!(get(&sites, uri).status, 400, "{uri}");
    }
    assert_eq!(send(&sites, "GET", "*", &[]).status, 400);
    assert_eq!(send(&sites, "OPTIONS", "*", &[]).text(), "");
    assert_eq!(send(&sites, "GET", "/", &[("host", "a/b")]).status, 400);
}

#[test]
fn head_has_the_length_of_get_and_no_body() {
    let answer = send(&site(vec![always(respond("hello"))]), "HEAD", "/", &[]);
    assert_eq!(answer.header("content-length"), "5");
}

#[test]
fn request_body_sets_the_limit() {
    let sites = site(vec![when(
        path_is("/up"),
        Handler::RequestBody(RequestBody { max_size: Some(7), ..RequestBody::default() }),
    )]);
    for (uri, want) in [("/up", Some(7)), ("/", None)] {
        let mut exchange = exchange("POST", uri, &[]);
        sites.route(&mut exchange);
        assert_eq!(exchange.body.max_size, want);
    }
}

#[test]
fn vars_are_seen_by_what_follows() {
    let set = Handler::Vars(vec![("greeting".into(), Template::text("hi"))]);
    let body = Template(vec![placeholder("vars.greeting"), Part::Text(" ".into()), placeholder("vars.root")]);
    let echo = Handler::Respond { status: Template::default(), body, close: false };
    let sites = site(vec![root(std::path::Path::new("/srv")), always(set), always(echo)]);
    assert_eq!(get(&sites, "/").text(), "hi /srv");
}

#[test]
fn a_root_from_the_request_does_not_climb() {
    let dir = directory(&[("a.example/x.txt", "inside"), ("secret.txt", "outside")]);
    let base = dir.path().join("a.example/none").display().to_string();
    let root = Template(vec![
        Part::Text(base.replace("a.example/none", "")),
        placeholder("http.request.header.X-Dir"),
    ]);
    let sites = site(vec![always(Handler::Root(root)), always(Handler::FileServer(FileServer::default()))]);
    assert_eq!(send(&sites, "GET", "/x.txt", &[("x-dir", "a.example")]).text(), "inside");
    assert_eq!(send(&sites, "GET", "/secret.txt", &[("x-dir", "a.example/..")]).status, 400);
}

#[test]
fn every_configured_log_gets_the_request_unless_it_is_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let log = LogConfig {
        output: LogOutput::File(LogFile {
            path: path.clone(),
            mode: None,
            directory_mode: None,
            rolling: None,
        }),
        format: LogFormat::Json,
        ..LogConfig::default()
    };
    let logged = Site {
        hosts: vec!["a.example".into()],
        routes: vec![always(respond("x"))],
        access_logs: vec![log.clone()],
        ..Site::default()
    };
    let skipped = Site {
        hosts: vec!["skipped.example".into()],
        routes: vec![always(Handler::LogSkip), always(respond("x"))],
        access_logs: vec![log],
        ..Site::default()
    };
    let sites = server(vec![logged, skipped, named_site(&["b.example"], "b")], &[]);
    for host in ["a.example", "skipped.example", "b.example", "c.example"] {
        log_one(&sites, host);
    }
    drop(sites);
    let lines = std::fs::read_to_string(path).unwrap();
    assert_eq!(lines.lines().count(), 1);
    assert!(lines.contains("\"host\":\"a.example\""));
}

fn log_one(sites: &Sites, host: &str) {
    let mut exchange = exchange("GET", "/", &[("host", host)]);
    let Action::Respond(response) = sites.route(&mut exchange) else { panic!("went to PHP") };
    for log in sites.access_logs(&exchange) {
        log.write(&AccessRecord {
            exchange: &exchange,
            status: response.status(),
            response_headers: response.headers(),
            bytes_read: 0,
            size: response.body().len().unwrap(),
            duration: Duration::from_millis(1),
            is_retried: false,
        });
    }
}

#[test]
fn a_site_that_cannot_be_built_says_why() {
    let unknown = WorkerRef { id: WorkerId(3), matches: Vec::new(), scope: WorkerScope::Block };
    let php = Php { workers: vec![unknown], ..Php::default() };
    let site = Site { routes: vec![always(Handler::Php(php))], ..Site::default() };
    let listen = Listen::Unix(UnixSocket { path: "/x".into(), mode: 0o200 });
    let server = Server {
        listen,
        tls: None,
        options: ServerOptions::default(),
        sites: vec![site],
        purpose: Purpose::default(),
    };
    let error =
        Sites::build(&server, &[], &[], &LogOutputs::default(), &store(), &RateZones::default(), None)
            .err()
            .unwrap();
    assert!(error.to_string().contains("worker 3"), "{error}");
}
