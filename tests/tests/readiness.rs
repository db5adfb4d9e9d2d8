//! `/regent/ready` that asks PHP, and `/regent/live` that does not.
#![forbid(unsafe_code)]

use regent_tests::{Response, Server, Setup, until};

/// Answers as the file `health` says, or waits as long as there is none.
const UP: &str = "<?php while (!file_exists(__DIR__ . '/health')) { usleep(1000); clearstatcache(); } \
                  file_put_contents(__DIR__ . '/asked', $_SERVER['HTTP_HOST'] . ' ' . $_SERVER['REQUEST_URI']); \
                  http_response_code((int) file_get_contents(__DIR__ . '/health'));";

fn started(health_uri: &str) -> Server {
    let options = format!("num_threads 2\n\t\thealth_uri {health_uri}");
    let setup = Setup::new().admin("ADMIN").php_options(&options).site("respond /text hello\n\tphp_server");
    setup.file("up.php", UP).file("health", "204").file("index.php", "<?php echo 'ok';").start()
}

fn ready(server: &Server) -> Response {
    server.admin().get("/regent/ready")
}

fn reason(server: &Server) -> String {
    ready(server).expect(503).json()["error"].as_str().expect("a text").to_owned()
}

#[test]
fn it_is_ready_as_long_as_php_answers_well_and_in_time() {
    let server = started("/up.php?deep=1 1s");
    until("it is ready", || (ready(&server).status == 200).then_some(()));
    assert_eq!(server.wait_for_file("asked"), "localhost /up.php?deep=1");
    server.write("health", "302");
    ready(&server).expect(200);
    server.write("health", "500");
    let why = reason(&server);
    assert!(why.contains("PHP answers 500") && why.contains("/up.php"), "{why}");

    std::fs::remove_file(server.root().join("health")).unwrap();
    let why = reason(&server);
    assert!(why.contains("did not answer") && why.contains("within 1000 ms"), "{why}");
    server.admin().get("/regent/live").expect(200);
    server.write("health", "200");
    until("it is ready again", || (ready(&server).status == 200).then_some(()));
    server.stop();
}

#[test]
fn a_request_that_leads_to_no_script_is_a_mistake_that_is_named() {
    let server = started("/text");
    server.get("/index.php").expect(200);
    let why = reason(&server);
    assert!(why.contains("no site hands localhost/text to PHP"), "{why}");
    server.admin().get("/regent/live").expect(200);
    server.stop();
}

#[test]
fn an_upgrade_waits_for_php_to_answer_well() {
    let mut server = started("/up.php");
    server.write("health", "500");
    let upgrade = || server.admin().request("POST", "/regent/upgrade").send();
    let refused = upgrade().expect(503).json();
    assert!(refused["error"].as_str().unwrap().contains("PHP answers 500"), "{refused}");
    server.get("/index.php").expect(200);
    server.write("health", "200");
    let successor = upgrade().expect(200).json()["process"].as_u64().expect("a number");
    server.follow(u32::try_from(successor).unwrap());
    server.get("/index.php").expect(200);
    server.stop();
}

#[test]
fn a_site_is_chosen_by_its_host_and_asked_as_https() {
    let script =
        "<?php file_put_contents(__DIR__ . '/asked', $_SERVER['HTTP_HOST'] . ' ' . $_SERVER['HTTPS']);";
    let caddyfile = "{\n\tadmin ADMIN\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\tlocal_certs\n\
                     \tregent {\n\t\tnum_threads 1\n\t\thealth_uri shop.test/up.php\n\t}\n}\n\
                     other.test {\n\trespond other\n}\nshop.test {\n\troot * ROOT\n\tphp_server\n}\n";
    let setup = Setup::new().caddyfile(caddyfile).file("up.php", script);
    let server = setup.env("XDG_DATA_HOME", "DIRECTORY/data").start();
    until("it is ready", || (ready(&server).status == 200).then_some(()));
    assert_eq!(server.wait_for_file("asked"), "shop.test on", "and not the redirect to HTTPS");
    server.stop();
}
