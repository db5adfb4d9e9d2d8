//! Requests for native modules: which service gets them, and what it sees of them.

use crate::common::*;
use http::{Response, StatusCode};
use regent_config::*;
use regent_exchange::ResponseBody;
use regent_handlers::{Action, Delivery as Delivered, Failure, Target};
use std::sync::Arc;
use std::time::Duration;

fn service(id: u16) -> Handler {
    Handler::Native(Native { service: NativeId(id), delivery: Delivery::default() })
}

#[test]
fn a_matcher_chooses_the_service() {
    let sites = site(vec![
        when(path_is("/api/*"), service(1)),
        when(path_is("/data/*"), service(0)),
        always(respond("rest")),
    ]);
    assert_eq!(native(&sites, "/api/users").0.service, NativeId(1));
    assert_eq!(native(&sites, "/data/7").0.service, NativeId(0));
    assert_eq!(get(&sites, "/apis").text(), "rest");
}

#[test]
fn the_module_sees_the_path_as_the_site_rewrote_it() {
    let strip = Handler::Rewrite(Rewrite::StripPrefix(Template::text("/v2")));
    let stripped = Handler::Subroute(vec![always(strip), always(service(0))]);
    let sites = site(vec![when(path_is("/v2/*"), stripped), always(service(1))]);
    let path = |uri: &str| native(&sites, uri).1;
    assert_eq!(path("/v2/users/7?x=1"), "/users/7");
    assert_eq!(path("/v1/users/a%20b"), "/v1/users/a b");
    assert_eq!(path("/v1//x/../y"), "/v1/y");
}

#[test]
fn a_block_says_more_than_the_routes_before_it() {
    let host = Template(vec![Part::Placeholder("http.request.method".into())]);
    let block = Delivery {
        env: vec![("METHOD".into(), host)],
        request_body_timeout: Some(Duration::from_secs(3)),
        request_buffering: RequestBuffering::Streaming,
        deadline: Some(Duration::from_secs(1)),
        request_timeout: None,
        retry: None,
        lane: None,
        client_address: ClientAddress::Forwarded,
    };
    let before = |delivery: Delivery| {
        let handler = Handler::Native(Native { service: NativeId(0), delivery });
        let deadline = Handler::Deadline(Duration::from_secs(2));
        let lane = Handler::Lane(LaneChoice::Named("slow".into()));
        native(&site(vec![always(deadline), always(lane), always(handler)]), "/").0.delivery
    };
    let slow = Some(Arc::new(LaneChoice::Named("slow".into())));
    let expected = Delivered {
        env: vec![("METHOD".into(), "GET".into())],
        request_body_timeout: Some(Duration::from_secs(3)),
        request_buffering: RequestBuffering::Streaming,
        deadline: Some(Duration::from_secs(1)),
        request_timeout: None,
        retry: None,
        lane: slow.clone(),
        client_address: ClientAddress::Forwarded,
    };
    assert_eq!(before(block), expected);
    let silent = Delivered { deadline: Some(Duration::from_secs(2)), lane: slow, ..Delivered::default() };
    assert_eq!(before(Delivery::default()), silent);
}

#[test]
fn a_module_may_make_the_page_of_an_error_that_is_not_its_own() {
    let not_found = Handler::Error { status: Template::text("404"), message: Template::default() };
    let failing =
        Site { routes: vec![always(not_found)], error_routes: vec![always(service(0))], ..Site::default() };
    let sites = server(vec![failing], &[]);
    let mut exchange = exchange("GET", "/", &[]);
    assert!(matches!(sites.route(&mut exchange), Action::Forward(Target::Native(_))));
    let page = exchange.finish(Response::new(ResponseBody::empty()));
    assert_eq!(page.status(), 404, "a page keeps the status of the error");
}

#[test]
fn a_module_is_asked_once_for_the_page_of_an_outage() {
    let site =
        Site { routes: vec![always(service(0))], error_routes: vec![always(service(1))], ..Site::default() };
    let sites = server(vec![site], &[]);
    let mut exchange = exchange("GET", "/", &[]);
    assert!(matches!(sites.route(&mut exchange), Action::Forward(Target::Native(_))));
    let mut resumed = || sites.resume(&mut exchange, Failure::new(StatusCode::BAD_GATEWAY));
    let Action::Forward(Target::Native(page)) = resumed() else { panic!("no page") };
    assert_eq!(page.service, NativeId(1));
    let Action::Respond(plain) = resumed() else { panic!("a module was asked again") };
    assert_eq!(plain.status(), 502);
}
