//! Conditions on requests, as real sites write them.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup};

/// As api-platform has it, and with the methods of texts.
const SITE: &str = "@pwa expression `(
            header({'Accept': '*text/html*'})
            && !path('/docs*', '/api*', '*.json')
        ) || path('/favicon.ico', '/_next*') || query({'_rsc': '*'})`
    @write expression {method} in [\"POST\", \"PUT\"] && {header.X-Kind}.lowerAscii().startsWith(\"admin\")
    @group `path_regexp('^/user/([0-9]+)$') && {re.group.1} > 99`
    @kind vars kind special
    vars /special/* kind special
    @sum `{query.a} == \"one-\" + {query.b} || int({query.n}) * 2 + 1 == 15`
    @choice `path('/choice/*') ? {method} == \"DELETE\" : false`
    route {
        respond @write write
        respond @group \"user {re.group.1}\"
        respond @pwa pwa
        respond @sum sum
        respond @choice choice
        respond @kind kind
        respond none
    }";

fn get(server: &Server, target: &str, fields: &[(&str, &str)]) -> String {
    let request = server.request("GET", target);
    fields
        .iter()
        .fold(request, |request, (name, value)| request.header(name, *value))
        .send()
        .expect(200)
        .text()
}

#[test]
fn expressions_choose_routes() {
    let server = Setup::new().site(SITE).start();
    let html = [("Accept", "text/html,*/*")];
    assert_eq!(get(&server, "/", &html), "pwa");
    assert_eq!(get(&server, "/api/books", &html), "none");
    assert_eq!(get(&server, "/", &[]), "none");
    assert_eq!(get(&server, "/_next/x", &[]), "pwa");
    assert_eq!(get(&server, "/x?_rsc=1", &[]), "pwa");
    assert_eq!(get(&server, "/user/100", &[]), "user 100");
    assert_eq!(get(&server, "/user/99", &[]), "none");
    assert_eq!(get(&server, "/special/x", &[]), "kind");
    assert_eq!(get(&server, "/x?a=one-two&b=two", &[]), "sum");
    assert_eq!(get(&server, "/x?n=7", &[]), "sum");
    assert_eq!(get(&server, "/x?n=7.5&a=one&b=two", &[]), "none");
    assert_eq!(server.request("DELETE", "/choice/x").send().expect(200).text(), "choice");
    assert_eq!(server.request("DELETE", "/other/x").send().expect(200).text(), "none");
    let post = |kind: &str| server.request("POST", "/").header("X-Kind", kind).send().expect(200).text();
    assert_eq!((post("ADMIN-1"), post("guest")), ("write".into(), "none".into()));
    server.stop();
}
