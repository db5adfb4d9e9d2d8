//! The Mercure hub of `mercure`, as publishers and subscribers see it.
#![forbid(unsafe_code)]

use regent_tests::mercure::{HUB, PUBLISHER, SECRET, SUBSCRIBER, publish, publish_as, subscribe};
use regent_tests::{Conn, Server, Setup, regent_command, until};
use std::io::ErrorKind;

/// Signed with `SECRET`: `{"mercure":{"publish":["/books/{id}"]}}`.
const BOOK_PUBLISHER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjdXJlIjp7InB1Ymxpc2giOlsiL2Jvb2tzL3tpZH0iXX19.BPQqHZFbc8q2s7wVczr28aW83MQQU95J1MoBF51PB_o";

/// Options of the hub behind its keys.
fn site(options: &str) -> String {
    format!(
        "encode zstd br gzip\n\tmercure {{\n\tpublisher_jwt {{env.KEY}} {{env.ALGORITHM}}\n\tsubscriber_jwt {{$KEY}}\n\t\
         {options}\n\t}}\n\tphp_server"
    )
}

fn started(options: &str) -> Server {
    let setup = Setup::new().file("index.php", "<?php echo 'script';").env("KEY", SECRET);
    setup.site(&site(options)).start()
}

fn event(id: &str, data: &str) -> String {
    format!("id: {id}\ndata: {data}\n\n")
}

/// All that still comes.
fn rest(conn: &mut Conn) -> String {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match conn.read_some(&mut part) {
            Ok(0) => return String::from_utf8(all).unwrap(),
            Ok(length) => all.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}, after {} bytes", all.len()),
        }
    }
}

#[test]
fn an_update_reaches_its_subscribers_at_once_and_uncompressed() {
    let server = started("anonymous");
    let (mut books, head) =
        subscribe(&server, "topic=%2Fbooks%2F%7Bid%7D", "Accept-Encoding: zstd, br, gzip\r\n");
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(head.header("content-encoding"), None);
    let (mut all, _) = subscribe(&server, "topic=*", "");
    let fields =
        [("topic", "/books/1"), ("data", "{\"a\":\n1}"), ("id", "urn:x"), ("type", "book"), ("retry", "7")];
    assert_eq!(publish(&server, &fields).expect(200).text(), "urn:x");
    let expected = ":\nevent: book\nretry: 7\nid: urn:x\ndata: {\"a\":\ndata: 1}\n\n";
    assert_eq!(books.read_until("\n\n"), expected);
    assert_eq!(all.read_until("\n\n"), expected);
    let id = publish(&server, &[("topic", "/other")]).expect(200).text();
    assert!(id.starts_with("urn:uuid:"), "{id}");
    assert_eq!(all.read_until("\n\n"), event(&id, ""));
    assert_eq!(server.get("/").expect(200).text(), "script");
    server.stop();
}

#[test]
fn who_has_no_right_to_it_publishes_nothing() {
    let server = started("anonymous");
    let (mut all, _) = subscribe(&server, "topic=*", "");
    let unsigned = server.request("POST", HUB).form(&[("topic", "a")]).send().expect(401);
    assert_eq!(unsigned.header("www-authenticate"), Some("Bearer"));
    publish_as(SUBSCRIBER, &server, &[("topic", "a")]).expect(403);
    publish_as(BOOK_PUBLISHER, &server, &[("topic", "/books/1"), ("topic", "a")]).expect(403);
    publish_as(&PUBLISHER.replace("eyJ", "eyI"), &server, &[("topic", "a")]).expect(401);
    publish(&server, &[("data", "a")]).expect(400);
    publish(&server, &[("topic", "a"), ("id", "x\ndata: forged")]).expect(400);
    publish(&server, &[("topic", "a"), ("data", &"x".repeat(2 << 20))]).expect(413);
    publish_as(BOOK_PUBLISHER, &server, &[("topic", "/books/1"), ("id", "1")]).expect(200);
    assert_eq!(all.read_until("\n\n"), format!(":\n{}", event("1", "")));
    server.stop();
}

#[test]
fn private_updates_are_for_subscribers_with_a_token() {
    let server = started("anonymous");
    let (mut anyone, _) = subscribe(&server, "topic=a", "");
    let (mut named, _) =
        subscribe(&server, "topic=a", &format!("Cookie: mercureAuthorization={SUBSCRIBER}\r\n"));
    publish(&server, &[("topic", "a"), ("private", "on"), ("id", "1")]).expect(200);
    publish(&server, &[("topic", "a"), ("id", "2")]).expect(200);
    assert_eq!(anyone.read_until("\n\n"), format!(":\n{}", event("2", "")));
    assert_eq!(named.read_until("\n\n"), format!(":\n{}", event("1", "")));
    server.stop();
}

#[test]
fn who_comes_again_gets_what_was_missed() {
    let server = started("anonymous");
    let ids = ["1", "2", "3"];
    ids.iter().for_each(|id| _ = publish(&server, &[("topic", "a"), ("id", id)]).expect(200));
    let (mut conn, head) = subscribe(&server, "topic=a", "Last-Event-ID: 1\r\n");
    assert_eq!(head.header("last-event-id"), Some("1"));
    let expected = format!(":\n{}{}", event("2", ""), event("3", ""));
    assert_eq!(conn.read_until("id: 3\ndata: \n\n"), expected);
    let (mut conn, head) = subscribe(&server, "topic=a&lastEventID=unknown", "");
    assert_eq!(head.header("last-event-id"), Some("earliest"));
    assert_eq!(conn.read_until("\n\n"), format!(":\n{}", event("1", "")));
    server.stop();
}

#[test]
fn a_history_in_a_file_outlives_the_server_and_leaves_other_files_alone() {
    let transport = "anonymous\n\ttransport bolt {\n\tpath DIRECTORY/mercure.db\n\tsize 3\n\t}";
    let setup = Setup::new().file("index.php", "<?php echo 'script';").env("KEY", SECRET);
    std::fs::write(setup.directory().join("mercure.db"), "of another server").unwrap();
    let server = setup.site(&site(transport)).start();
    for id in ["1", "2", "3", "4"] {
        publish(&server, &[("topic", "a"), ("id", id), ("private", "on"), ("data", "x\ny")]).expect(200);
    }
    let server = server.restart(|directory| {
        let file = std::fs::read_to_string(directory.join(".mercure.db.jsonl")).unwrap();
        assert_eq!(file.lines().count(), 5, "{file}");
        let mut command = regent_command(directory);
        command.args(["run", "--config", "Caddyfile"]).env("KEY", SECRET);
        command
    });
    let cookie = format!("Cookie: mercureAuthorization={SUBSCRIBER}\r\n");
    let (mut conn, head) = subscribe(&server, "topic=a", &format!("Last-Event-ID: 2\r\n{cookie}"));
    assert_eq!(head.header("last-event-id"), Some("2"));
    publish(&server, &[("topic", "a"), ("id", "5")]).expect(200);
    let missed: String = ["3", "4"].map(|id| format!("id: {id}\ndata: x\ndata: y\n\n")).concat();
    assert_eq!(conn.read_until("id: 5\ndata: \n\n"), format!(":\n{missed}{}", event("5", "")));
    let (_, head) = subscribe(&server, "topic=a&lastEventID=1", "");
    assert_eq!(head.header("last-event-id"), Some("earliest"));
    assert_eq!(std::fs::read_to_string(server.directory().join("mercure.db")).unwrap(), "of another server");
    server.stop();
}

#[test]
fn a_silent_connection_gets_comments_and_ends_in_good_order() {
    let server = started("anonymous\n\theartbeat 50ms\n\twrite_timeout 1s");
    let mut conn = server.connect();
    conn.send(format!("GET {HUB}?topic=a HTTP/1.1\r\nHost: x\r\n\r\n"));
    // A whole response, with its last chunk, on a connection that is kept.
    let text = conn.response().expect(200).text();
    assert!(text.len() >= 4 && text.replace(":\n", "").is_empty(), "{text:?}");
    conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), "script");
    server.stop();
}

#[test]
fn a_stop_does_not_wait_for_subscribers() {
    let server = started("anonymous\n\twrite_timeout 0");
    // A server that is stopped while it starts does not drain.
    server.get("/").expect(200);
    let (mut conn, _) = subscribe(&server, "topic=a", "");
    publish(&server, &[("topic", "a"), ("id", "1")]).expect(200);
    let (mut idle, _) = subscribe(&server, "topic=b", "");
    server.stop();
    let text = rest(&mut conn);
    assert!(text.starts_with(&format!(":\n{}retry: ", event("1", ""))), "{text}");
    assert!(rest(&mut idle).starts_with(":\nretry: "));
}

#[test]
fn a_hub_survives_a_reload_that_does_not_change_it_and_tells_of_one_that_does() {
    let caddyfile = |root: &str, options: &str| {
        format!(
            "{{\n\tadmin ADMIN\n}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\troot {root}\n\t{}\n}}\n",
            site(options)
        )
    };
    let setup = Setup::new().file("index.php", "<?php echo 'script';").env("KEY", SECRET);
    let server = setup.caddyfile(&caddyfile("ROOT", "anonymous")).start();
    let reload = |root: &str, options: &str| {
        server.write_caddyfile(&caddyfile(root, options));
        server.admin().request("POST", "/regent/reload").send()
    };
    let (mut conn, _) = subscribe(&server, "topic=a", "");
    publish(&server, &[("topic", "a"), ("id", "1")]).expect(200);
    reload("DIRECTORY", "anonymous").expect(200);
    publish(&server, &[("topic", "a"), ("id", "2")]).expect(200);
    assert_eq!(conn.read_until("id: 2\ndata: \n\n"), format!(":\n{}{}", event("1", ""), event("2", "")));
    reload("DIRECTORY", "anonymous\n\tcookie_name a;b").expect(400);
    publish(&server, &[("topic", "a"), ("id", "3")]).expect(200);
    assert_eq!(conn.read_until("\n\n"), event("3", ""));
    reload("DIRECTORY", "anonymous\n\tsubscriptions").expect(200);
    assert!(rest(&mut conn).starts_with("retry: "));
    publish(&server, &[("topic", "a"), ("id", "4")]).expect(200);
    let (mut conn, head) = subscribe(&server, "topic=a", "Last-Event-ID: 2\r\n");
    assert_eq!(head.header("last-event-id"), Some("2"));
    assert_eq!(conn.read_until("id: 4\ndata: \n\n"), format!(":\n{}{}", event("3", ""), event("4", "")));
    server.stop();
}

#[test]
fn a_subscriber_that_does_not_read_holds_up_nobody() {
    let server = started("anonymous\n\tdispatch_timeout 1s");
    let (_stuck, _) = subscribe(&server, "topic=a", "");
    let (mut reading, _) = subscribe(&server, "topic=a", "");
    let data = "x".repeat(200_000);
    // More than the sockets hold, and than may wait for one subscriber.
    for number in 0..80 {
        let id = number.to_string();
        publish(&server, &[("topic", "a"), ("id", &id), ("data", &data)]).expect(200);
        assert!(reading.read_until("x\n\n").contains(&format!("id: {id}\n")));
    }
    server.stop();
}

#[test]
fn five_hundred_idle_subscribers_cost_little_and_get_their_update() {
    let server = started("anonymous");
    let (before, _) = server.memory();
    let mut conns: Vec<_> =
        (0..500).map(|_| subscribe(&server, "topic=a&topic=%2Fb%2F%7Bid%7D", "").0).collect();
    let (after, _) = server.memory();
    publish(&server, &[("topic", "/b/1"), ("topic", "a"), ("id", "1")]).expect(200);
    for conn in &mut conns {
        assert_eq!(conn.read_until("\n\n"), format!(":\n{}", event("1", "")));
    }
    let grown = after.rss.saturating_sub(before.rss);
    assert!(grown < 500 * 64 * 1024, "{grown} bytes");
    server.stop();
}

/// Templates with 16 variables each. One connection may have 25 of them.
fn hostile(number: usize, templates: usize) -> String {
    let names: Vec<_> = ('a'..='p').map(String::from).collect();
    let topic = |topic| format!("topic=%7B%2B{}%7D{number}_{topic}%7B%2Ba%7D&", names[1..].join(","));
    (0..templates).map(topic).collect()
}

#[test]
fn templates_that_are_made_to_be_costly_hold_up_nobody() {
    let server = started("anonymous\n\tsubscriptions");
    let (mut honest, _) = subscribe(&server, "topic=news&topic=%2Fbooks%2F%7Bid%7D", "");
    let (before, _) = server.memory();
    let refused = server.get(&format!("{HUB}?{}", hostile(0, 100))).expect(400).text();
    assert!(refused.starts_with("Too many variables"), "{refused}");
    let conns: Vec<_> = (0..40).map(|number| subscribe(&server, &hostile(number, 25), "").0).collect();
    publish(&server, &[("topic", "news"), ("id", "1")]).expect(200);
    publish(&server, &[("topic", "/books/1"), ("id", "2")]).expect(200);
    let expected = format!(":\n{}{}", event("1", ""), event("2", ""));
    assert_eq!(honest.read_until("id: 2\ndata: \n\n"), expected);
    let (after, _) = server.memory();
    let grown = after.rss.saturating_sub(before.rss);
    assert!(grown < 40 << 20, "{grown} bytes");
    drop(conns);
    let (mut again, _) = subscribe(&server, "topic=news", "");
    publish(&server, &[("topic", "news"), ("id", "3")]).expect(200);
    assert_eq!(again.read_until("\n\n"), format!(":\n{}", event("3", "")));
    server.stop();
}

#[test]
fn pages_of_other_origins_are_let_in_as_configured() {
    let server = started("anonymous\n\tcors_origins https://app.test\n\tpublish_origins https://app.test");
    let preflight = server.request("OPTIONS", HUB).header("Origin", "https://app.test").send().expect(204);
    assert_eq!(preflight.header("access-control-allow-origin"), Some("https://app.test"));
    assert_eq!(preflight.header("access-control-allow-credentials"), Some("true"));
    let (_, head) = subscribe(&server, "topic=a", "Origin: https://other.test\r\n");
    assert_eq!(head.header("access-control-allow-origin"), None);
    let from = |origin: &str| {
        let request =
            server.request("POST", HUB).header("Cookie", format!("mercureAuthorization={PUBLISHER}"));
        request.header("Origin", origin).form(&[("topic", "a")]).send()
    };
    from("https://app.test").expect(200);
    from("https://other.test").expect(403);
    server.stop();
}

/// Publishes what it is asked for, and says what became of it.
const PUBLISHES: &str = "try { echo mercure_publish($_GET['topics'], $_GET['data'] ?? '', isset($_GET['private']), $_GET['id'] ?? null); } \
                         catch (Throwable $e) { echo get_class($e), ': ', $e->getMessage(); }";

#[test]
fn scripts_and_workers_publish_without_a_token() {
    let worker = format!("<?php while (frankenphp_handle_request(function () {{ {PUBLISHES} }})) {{}}");
    let setup = Setup::new()
        .file("index.php", format!("<?php {PUBLISHES}"))
        .file("worker.php", worker)
        .env("KEY", SECRET);
    let php = "num_threads 2\n\t\tmax_wait_time off\n\t\tworker ROOT/worker.php 1";
    let server = setup.php_options(php).site(&site("anonymous")).start();
    let (mut conn, _) = subscribe(&server, "topic=a&topic=b", "");
    let mut before = ":\n";
    for script in ["index.php", "worker.php"] {
        let id = server.get(&format!("/{script}?topics[]=x&topics[]=a&data=one")).expect(200).text();
        assert!(id.starts_with("urn:uuid:"), "{id}");
        assert_eq!(conn.read_until("\n\n"), format!("{before}{}", event(&id, "one")));
        let own = server.get(&format!("/{script}?topics=b&id=urn:{script}&private")).expect(200).text();
        assert_eq!(own, format!("urn:{script}"));
        server.get(&format!("/{script}?topics=b&id=last")).expect(200);
        assert_eq!(conn.read_until("\n\n"), event("last", ""), "the private one is for nobody here");
        let refused = server.get(&format!("/{script}?topics=a%0Ab")).expect(200).text();
        assert!(refused.starts_with("ValueError: mercure_publish()"), "{refused}");
        before = "";
    }
    server.stop();
}

#[test]
fn a_script_without_a_hub_is_told_so() {
    let server = Setup::new().file("index.php", format!("<?php {PUBLISHES}")).start();
    let text = server.get("/?topics=a").expect(200).text();
    assert!(text.starts_with("RuntimeException: No Mercure hub configured"), "{text}");
    server.stop();
}

#[test]
fn a_script_that_publishes_in_a_loop_loses_nothing() {
    let script = "<?php foreach (range(1, 500) as $n) { mercure_publish('a', str_repeat('x', 1000), id: \"$n\"); } echo 'done';";
    let setup = Setup::new().file("index.php", script).env("KEY", SECRET);
    let server = setup.site(&site("anonymous")).start();
    let (mut conn, _) = subscribe(&server, "topic=a", "");
    assert_eq!(server.get("/").expect(200).text(), "done");
    for number in 1..=500 {
        assert!(conn.read_until("x\n\n").contains(&format!("id: {number}\n")), "{number}");
    }
    server.stop();
}

#[test]
fn subscriptions_are_listed_and_told() {
    let server = started("anonymous\n\tsubscriptions");
    let bearer = format!("Authorization: Bearer {SUBSCRIBER}\r\n");
    let (mut watcher, _) = subscribe(
        &server,
        "topic=%2F.well-known%2Fmercure%2Fsubscriptions%7B%2Ftopic%7D%7B%2Fsubscriber%7D",
        &bearer,
    );
    let (visitor, _) = subscribe(&server, "topic=%2Fbooks%2F%7Bid%7D", "");
    let begun = watcher.read_until("\n\n");
    assert!(begun.contains("\"topic\":\"/books/{id}\"") && begun.contains("\"active\":true"), "{begun}");
    let path = format!("{HUB}/subscriptions/%2Fbooks%2F%7Bid%7D");
    let listed = server.request("GET", &path).header("Authorization", format!("Bearer {SUBSCRIBER}")).send();
    let listed = listed.expect(200);
    assert_eq!(listed.header("content-type"), Some("application/ld+json"));
    let json = listed.json();
    assert_eq!((json["id"].as_str(), json["subscriptions"].as_array().unwrap().len()), (Some(&*path), 1));
    server.get(&path).expect(401);
    drop(visitor);
    assert!(watcher.read_until("\n\n").contains("\"active\":false"));
    until("the subscription is gone", || {
        let one = json["subscriptions"][0]["id"].as_str().unwrap();
        let request = server.request("GET", one).header("Authorization", format!("Bearer {SUBSCRIBER}"));
        (request.send().status == 404).then_some(())
    });
    server.stop();
}
