//! Responses of upstreams that are looked at before anybody gets them: `forward_auth`, `handle_response`, `replace_status`.
#![forbid(unsafe_code)]

use regent_tests::upstream::ok;
use regent_tests::{Server, Setup, Upstream};
use std::process::Stdio;

const WHO: &str = "<?php echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['HTTP_REMOTE_USER'] ?? 'nobody', ' ', \
                   $_SERVER['HTTP_X_GROUPS'] ?? '-', ' ', file_get_contents('php://input');";

/// A server that knows who is who by a cookie.
fn gate() -> Upstream {
    Upstream::answering(|request| match request.field("cookie").as_str() {
        "session=ann" => ok("Remote-User: ann\r\nGroups: admins\r\n", "ignored"),
        "session=new" => ok("", ""),
        _ => b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 5\r\n\r\nlogin".to_vec(),
    })
}

fn guarded(gate: &Upstream) -> Server {
    let site = format!(
        "forward_auth /admin/* {} {{\nuri /verify?of={{path}}\ncopy_headers Remote-User Groups>X-Groups\n}}\nphp_server",
        gate.address()
    );
    Setup::new().site(&site).file("index.php", WHO).start()
}

#[test]
fn who_is_known_goes_on_with_what_is_known_of_them() {
    let gate = gate();
    let server = guarded(&gate);
    let request = server.request("POST", "/admin/x?a=b").header("Cookie", "session=ann");
    let request = request.header("Remote-User", "root").body("text/plain", "the body");
    assert_eq!(request.send().expect(200).text(), "POST ann admins the body");
    let asked = gate.last();
    assert_eq!(asked.line(), "GET /verify?of=%2Fadmin%2Fx HTTP/1.1");
    assert_eq!(asked.field("x-forwarded-method"), "POST");
    assert_eq!(asked.field("x-forwarded-uri"), "/admin/x?a=b");
    assert!(asked.body.is_empty());
    server.stop();
}

#[test]
fn what_a_client_says_of_itself_is_removed() {
    let gate = gate();
    let server = guarded(&gate);
    let request = server.request("GET", "/admin/").header("Cookie", "session=new");
    let response = request.header("Remote-User", "root").header("X-Groups", "admins").send();
    assert_eq!(response.expect(200).text(), "GET nobody - ");
    // Names that PHP, and php-fpm too, would take for those.
    for (user, groups) in
        [("Remote_User", "X_Groups"), ("Remote.User", "X.Groups"), ("Remote_User", "X.Groups")]
    {
        let request = server.request("GET", "/admin/").header("Cookie", "session=new");
        let response = request.header(user, "root").header(groups, "admins").send();
        assert_eq!(response.expect(200).text(), "GET nobody - ", "{user}");
    }
    server.stop();
}

#[test]
fn a_client_cannot_take_back_what_is_known_of_it() {
    let gate = gate();
    let upstream = Upstream::answering(|_| ok("", "seen"));
    let site = format!(
        "forward_auth {} {{\nuri /verify\ncopy_headers Remote-User\n}}\nrequest_header X-Own 1\nreverse_proxy {}",
        gate.address(),
        upstream.address()
    );
    let server = Setup::new().site(&site).start();
    let request = server.request("GET", "/").header("Cookie", "session=ann").header("X-Other", "1");
    request.header("Connection", "close, Remote-User, x-own, X-Other").send().expect(200);
    let seen = upstream.last();
    let fields = ["remote-user", "x-own", "x-other", "connection"].map(|name| seen.field(name));
    assert_eq!(fields, ["ann", "1", "", ""]);
    server.stop();
}

#[test]
fn no_trailer_says_otherwise() {
    let gate = gate();
    let upstream = Upstream::answering(|_| ok("", "seen"));
    let site = format!(
        "forward_auth {} {{\nuri /verify\ncopy_headers Remote-User\n}}\nreverse_proxy {}",
        gate.address(),
        upstream.address()
    );
    let server = Setup::new().site(&site).start();
    let mut conn = server.connect();
    conn.send(
        "POST / HTTP/1.1\r\nHost: x\r\nCookie: session=ann\r\nTrailer: Remote-User, X-Sum\r\n\
         Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nRemote-User: root\r\nX-Sum: 1\r\n\r\n",
    );
    conn.response().expect(200);
    let seen = upstream.last();
    assert_eq!((seen.field("remote-user").as_str(), seen.trailers.trim()), ("ann", "x-sum: 1"));
    server.stop();
}

#[test]
fn who_is_not_known_gets_the_others_response() {
    let gate = gate();
    let server = guarded(&gate);
    let response = server.get("/admin/").expect(302);
    assert_eq!((response.header("location"), response.text().as_str()), (Some("/login"), "login"));
    assert_eq!(server.get("/open").expect(200).text(), "GET nobody - ");
    assert_eq!(gate.requests().len(), 1);
    server.stop();
}

#[test]
fn nobody_gets_by_a_gate_that_is_not_there() {
    let site = format!("forward_auth {} {{\nuri /verify\n}}\nphp_server", regent_tests::own_address());
    let server = Setup::new().site(&site).file("index.php", WHO).start();
    server.get("/").expect(502);
    server.stop();
}

#[test]
fn a_body_in_chunks_is_left_for_who_comes_after() {
    let gate = gate();
    let server = guarded(&gate);
    let mut conn = server.connect();
    conn.send(
        "POST /admin/ HTTP/1.1\r\nHost: x\r\nCookie: session=ann\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nin \r\n5\r\nparts\r\n0\r\n\r\n",
    );
    assert_eq!(conn.response().expect(200).text(), "POST ann admins in parts");
    server.stop();
}

#[test]
fn responses_are_replaced_by_what_the_site_says() {
    let upstream = Upstream::answering(|request| match request.line().split(' ').nth(1) {
        Some("/file") => {
            ok("X-Accel-Redirect: /secret.txt\r\nX-App: 1\r\nContent-Type: text/x-app\r\n", "not this")
        }
        Some("/gone") => b"HTTP/1.1 410 Gone\r\nContent-Length: 3\r\n\r\nold".to_vec(),
        Some("/broken") => b"HTTP/1.1 500 Oops\r\nContent-Length: 5\r\n\r\ntrace".to_vec(),
        _ => ok("X-App: 1\r\n", "as it is"),
    });
    let site = format!(
        "handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\nreverse_proxy {} {{\n\
         @accel header X-Accel-Redirect *\n\
         handle_response @accel {{\nroot private\nrewrite {{rp.header.X-Accel-Redirect}}\n\
         copy_response_headers {{\ninclude X-App\n}}\nfile_server\n}}\n\
         replace_status @gone 404\n\
         @broken status 5xx\n\
         handle_response @broken {{\nerror 503\n}}\n\
         }}\n}}\nhandle_errors {{\nrespond \"sorry {{err.status_code}}\"\n}}",
        upstream.address()
    )
    .replace("root private", "root DIRECTORY/private")
    .replace("@accel header", "@gone status 410\n@accel header");
    let setup = Setup::new().site(&site);
    std::fs::create_dir(setup.directory().join("private")).expect("a directory");
    std::fs::write(setup.directory().join("private/secret.txt"), "the secret").expect("a file");
    let server = setup.start();
    let file = server.get("/file").expect(200);
    assert_eq!((file.text().as_str(), file.header("x-app")), ("the secret", Some("1")));
    assert_eq!(file.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(server.get("/gone").expect(404).text(), "old");
    assert_eq!(server.get("/broken").expect(503).text(), "sorry 503");
    let plain = server.get("/plain").expect(200);
    assert_eq!((plain.text().as_str(), plain.header("x-app")), ("as it is", Some("1")));
    server.stop();
}

#[test]
fn a_response_can_be_copied_after_all() {
    let upstream = Upstream::answering(|_| ok("X-App: 1\r\n", "the upstream's"));
    let site = format!(
        "handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\nreverse_proxy {} {{\n\
         handle_response {{\nheader X-Seen {{rp.status_code}}\ncopy_response 202\n}}\n}}\n}}",
        upstream.address()
    );
    let server = Setup::new().site(&site).start();
    let response = server.get("/").expect(202);
    assert_eq!(response.text(), "the upstream's");
    assert_eq!((response.header("x-seen"), response.header("x-app")), (Some("200"), Some("1")));
    server.stop();
}

#[test]
fn rules_for_responses_may_have_upstreams_with_rules() {
    let first = Upstream::answering(|request| match request.line().split(' ').nth(1) {
        Some("/plain") => ok("", "first"),
        _ => b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone".to_vec(),
    });
    let second = Upstream::answering(|request| match request.line().split(' ').nth(1) {
        Some("/teapot") => b"HTTP/1.1 418 I'm a teapot\r\nContent-Length: 3\r\n\r\npot".to_vec(),
        Some("/gone") => b"HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone".to_vec(),
        _ => ok("X-Second: 1\r\n", "second"),
    });
    let site = format!(
        "handle {{\nreverse_proxy {} {{\n@missing status 404\nhandle_response @missing {{\n\
         route {{\nheader X-Way first-to-second\nreverse_proxy {} {{\n\
         @pot status 418\nhandle_response @pot {{\nrespond \"no coffee of {{rp.upstream.port}}\" 200\n}}\n\
         @gone status 410\nhandle_response @gone {{\nrewrite /file.txt\nfile_server\n}}\n}}\n}}\n}}\n}}\n}}",
        first.address(),
        second.address()
    );
    let server = Setup::new().site(&site).file("file.txt", "a file").start();
    let text = |target: &str, status: u16| server.get(target).expect(status).text();
    assert_eq!(text("/plain", 200), "first");
    let response = server.get("/other").expect(200);
    assert_eq!((response.text().as_str(), response.header("x-second")), ("second", Some("1")));
    assert_eq!(response.header("x-way"), Some("first-to-second"));
    assert!(text("/teapot", 200).starts_with("no coffee of "));
    assert_eq!(text("/gone", 200), "a file");
    assert_eq!(first.last().line(), "GET /gone HTTP/1.1");
    assert_eq!(second.last().line(), "GET /gone HTTP/1.1");
    server.stop();
}

#[test]
fn a_password_may_be_asked_for_behind_it() {
    let hash = password_hash("secret");
    let gate = gate();
    let site = format!(
        "route {{\nforward_auth {} {{\nuri /verify\n}}\nbasic_auth {{\nann {hash}\n}}\nphp_server\n}}",
        gate.address()
    );
    let server = Setup::new().site(&site).file("index.php", WHO).start();
    let asked = || server.request("POST", "/").header("Cookie", "session=ann").body("text/plain", "the body");
    asked().send().expect(401);
    let right = asked().header("Authorization", "Basic YW5uOnNlY3JldA==").send().expect(200);
    assert_eq!(right.text(), "POST nobody - the body");
    server.stop();
}

#[test]
fn what_has_been_looked_at_may_be_intercepted() {
    let gate = gate();
    let site = format!(
        "route {{\nintercept {{\n@moved status 302\nhandle_response @moved {{\nrespond \"was {{resp.status_code}}\" 403\n}}\n}}
         forward_auth {} {{\nuri /verify\n}}\nphp_server\n}}",
        gate.address()
    );
    let server = Setup::new().site(&site).file("index.php", WHO).start();
    assert_eq!(server.get("/").expect(403).text(), "was 302");
    let known = server.request("GET", "/").header("Cookie", "session=ann").send();
    assert_eq!(known.expect(200).text(), "GET nobody - ");
    server.stop();
}

fn password_hash(password: &str) -> String {
    let setup = Setup::new();
    let mut command = regent_tests::regent_command(setup.directory());
    command.args(["hash-password", "--plaintext", password, "--bcrypt-cost", "5"]).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
