//! `handle_errors`: what becomes of an error before it is sent.

use crate::common::*;
use http::{HeaderValue, Response, StatusCode, header};
use regent_config::*;
use regent_exchange::ResponseBody;
use regent_handlers::{Action, Exchange, Failure, Sites, Target};
use tempfile::TempDir;

const OUTAGE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

fn app() -> TempDir {
    directory(&[
        ("index.html", "home"),
        ("errors/404.html", "<h1>nothing here</h1>"),
        ("errors/503.html", "<h1>come back later</h1>"),
        ("oops.php", "<?php"),
    ])
}

/// A site of static files, with these routes for errors.
fn serving(dir: &TempDir, error_routes: Vec<Route>) -> Sites {
    let routes = vec![
        root(dir.path()),
        when(path_is("/private/*"), error("403", "not for you")),
        always(Handler::FileServer(FileServer::default())),
    ];
    server(vec![Site { routes, error_routes, ..Site::default() }], &[])
}

fn error(status: &str, message: &str) -> Handler {
    Handler::Error { status: Template::text(status), message: Template::text(message) }
}

fn err(field: &str) -> Part {
    placeholder(&format!("http.error.{field}"))
}

fn text(part: &str) -> Part {
    Part::Text(part.into())
}

/// `rewrite * /errors/{err.status_code}.html` and `file_server`.
fn static_pages() -> Vec<Route> {
    let page = Template(vec![text("/errors/"), err("status_code"), text(".html")]);
    vec![always(Handler::Rewrite(Rewrite::To(page))), always(Handler::FileServer(FileServer::default()))]
}

fn for_status(range: (u16, u16), handler: Handler) -> Route {
    when(Matcher::ErrorStatus(vec![range]), handler)
}

fn add_header(name: &str, value: Template) -> Route {
    let op = HeaderOp { kind: HeaderOpKind::Set, name: Template::text(name), value, deferred: false };
    always(Handler::Header(vec![op]))
}

/// What becomes of a request whose engine could not answer it.
fn resumed(sites: &Sites, exchange: &mut Exchange) -> Action {
    sites
        .resume(exchange, Failure::new(OUTAGE).with_field(header::RETRY_AFTER, HeaderValue::from_static("7")))
}

/// The page for an outage of PHP.
fn outage(sites: &Sites, method: &str, uri: &str) -> Answer {
    let mut exchange = exchange(method, uri, &[]);
    sites.route(&mut exchange);
    match resumed(sites, &mut exchange) {
        Action::Respond(page) => finish(exchange, page),
        Action::Forward(target) => panic!("{method} {uri} was handed on: {target:?}"),
        Action::Abort | Action::Verify(_) | Action::List(_) | Action::Render(_) => {
            panic!("{method} {uri} was not answered")
        }
    }
}

#[test]
fn a_static_page_keeps_the_status() {
    let dir = app();
    let sites = serving(&dir, static_pages());
    for method in ["GET", "POST", "HEAD"] {
        let answer = send(&sites, method, "/none", &[("range", "bytes=0-3"), ("if-none-match", "*")]);
        assert_eq!((answer.status, answer.header("content-type")), (404, "text/html; charset=utf-8"));
        assert_eq!(answer.header("content-length"), "21");
        assert_eq!(answer.text(), if method == "HEAD" { "" } else { "<h1>nothing here</h1>" });
    }
    assert_eq!(get(&sites, "/").text(), "home");
}

#[test]
fn a_page_that_is_missing_leaves_the_error_as_it_was() {
    let dir = app();
    let mut routes = vec![add_header("Content-Type", Template::text("text/html"))];
    routes.extend(static_pages());
    let answer = get(&serving(&dir, routes), "/private/x");
    assert_eq!((answer.status, answer.text()), (403, "403 Forbidden\n"));
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
}

#[test]
fn texts_say_what_went_wrong_and_keep_the_status() {
    let dir = app();
    let body = Template(vec![err("status_code"), text("|"), err("status_text"), text("|"), err("message")]);
    let page = |status: &str| {
        vec![always(Handler::Respond { status: Template::text(status), body: body.clone(), close: false })]
    };
    let answer = get(&serving(&dir, page("")), "/private/x");
    assert_eq!((answer.status, answer.text()), (403, "403|Forbidden|not for you"));
    let answer = get(&serving(&dir, page("")), "/none");
    assert_eq!((answer.status, answer.text()), (404, "404|Not Found|Not Found"));
    let answer = get(&serving(&dir, page("200")), "/none");
    assert_eq!((answer.status, answer.text()), (200, "404|Not Found|Not Found"));
}

#[test]
fn each_error_finds_its_block() {
    let dir = app();
    let routes = vec![
        for_status((404, 404), respond("missing")),
        for_status((500, 599), respond("ours")),
        always(respond("other")),
    ];
    let sites = serving(&dir, routes);
    assert_eq!(get(&sites, "/none").text(), "missing");
    assert_eq!(get(&sites, "/private/x").text(), "other");
    assert_eq!(outage(&sites, "GET", "/none-of-ours").status, 404, "one error to a request");
    assert_eq!(outage(&sites, "GET", "/").text(), "ours");
}

#[test]
fn an_error_in_the_block_is_not_handled_again() {
    let dir = app();
    let answer = get(&serving(&dir, vec![always(error("500", "again"))]), "/none");
    assert_eq!((answer.status, answer.text()), (404, "404 Not Found\n"));
}

#[test]
fn a_block_that_answers_nothing_may_still_set_a_header() {
    let dir = app();
    let answer =
        get(&serving(&dir, vec![add_header("X-Error", Template(vec![err("status_code")]))]), "/none");
    assert_eq!((answer.status, answer.header("x-error"), answer.text()), (404, "404", "404 Not Found\n"));
}

#[test]
fn the_fields_of_an_error_stand_on_its_page() {
    let dir = app();
    let page = vec![always(respond("page"))];
    let answer = send(&serving(&dir, page.clone()), "PUT", "/index.html", &[]);
    assert_eq!((answer.status, answer.header("allow"), answer.text()), (405, "GET, HEAD", "page"));
    let answer = outage(&serving(&dir, page), "HEAD", "/");
    assert_eq!((answer.status, answer.header("retry-after"), answer.text()), (503, "7", ""));
    let answer = send(&serving(&dir, Vec::new()), "PUT", "/index.html", &[]);
    assert_eq!(
        (answer.status, answer.header("allow"), answer.text()),
        (405, "GET, HEAD", "405 Method Not Allowed\n")
    );
}

#[test]
fn the_block_sees_the_request_as_the_client_sent_it() {
    let routes = vec![
        always(Handler::Rewrite(Rewrite::To(Template::text("/elsewhere?y=2")))),
        always(Handler::Rewrite(Rewrite::Method(Template::text("PUT")))),
        always(error("500", "")),
    ];
    let seen = Template(vec![placeholder("http.request.method"), text(" "), placeholder("http.request.uri")]);
    let page = always(Handler::Respond { status: Template::default(), body: seen, close: false });
    let sites = server(vec![Site { routes, error_routes: vec![page], ..Site::default() }], &[]);
    assert_eq!(get(&sites, "/a%20b?x=1").text(), "GET /a%20b?x=1");
}

#[test]
fn a_script_may_be_the_page_of_an_error_that_is_not_php_s() {
    let dir = app();
    let script = vec![
        always(Handler::Rewrite(Rewrite::To(Template::text("/oops.php")))),
        always(Handler::Php(Php {
            delivery: Delivery {
                env: vec![("ERROR".into(), Template(vec![err("status_code")]))],
                ..Delivery::default()
            },
            ..Php::default()
        })),
    ];
    let sites = serving(&dir, script);
    for (answered, want) in [(200, 404), (410, 410), (302, 302)] {
        let mut exchange = exchange("GET", "/none", &[]);
        let Action::Forward(Target::Php(target)) = sites.route(&mut exchange) else {
            panic!("no script was chosen")
        };
        assert_eq!(target.script_name(), b"/oops.php");
        assert_eq!(target.delivery.env, [("ERROR".to_owned(), "404".to_owned())]);
        let mut response = Response::new(ResponseBody::empty());
        *response.status_mut() = StatusCode::from_u16(answered).unwrap();
        assert_eq!(exchange.finish(response).status(), want);
    }
    // The source of the page is no file to be served, although only the error's routes know PHP.
    let Action::Forward(Target::Php(_)) = sites.route(&mut exchange("GET", "/oops.php", &[])) else {
        panic!("the source was sent")
    };
}

#[test]
fn an_outage_without_a_page_is_the_servers_to_answer() {
    let dir = app();
    let answer = outage(&serving(&dir, Vec::new()), "GET", "/");
    assert_eq!((answer.text(), answer.header("retry-after")), ("503 Service Unavailable\n", "7"));
    let answer = outage(&serving(&dir, static_pages()), "GET", "/");
    assert_eq!((answer.status, answer.text()), (503, "<h1>come back later</h1>"));
}

#[test]
fn a_script_makes_the_page_of_an_outage_once_and_then_a_page_without_scripts_does() {
    let dir = app();
    let mut pages = vec![
        add_header("X-Page", Template::text("mine")),
        when(
            path_is("/*.html"),
            Handler::Subroute(vec![
                always(Handler::Rewrite(Rewrite::To(Template::text("/oops.php")))),
                always(Handler::Php(Php::default())),
            ]),
        ),
    ];
    pages.extend(static_pages());
    let sites = serving(&dir, pages);
    let page_of = |exchange: &mut Exchange, action: Action| {
        let Action::Forward(Target::Php(target)) = action else { panic!("not by PHP") };
        assert_eq!(target.script_name(), b"/oops.php");
        let Action::Respond(page) = resumed(&sites, exchange) else { panic!("PHP was asked again") };
        page
    };

    let mut served = exchange("GET", "/index.html", &[]);
    sites.route(&mut served);
    let action = resumed(&sites, &mut served);
    let page = page_of(&mut served, action);
    let answer = finish(served, page);
    assert_eq!((answer.status, answer.text()), (503, "<h1>come back later</h1>"));
    assert_eq!(answer.headers.get_all("x-page").iter().count(), 1);

    let mut missing = exchange("GET", "/none.html", &[]);
    let action = sites.route(&mut missing);
    let page = page_of(&mut missing, action);
    let answer = finish(missing, page);
    assert_eq!((answer.status, answer.text()), (404, "<h1>nothing here</h1>"), "the error is the first one");
}
