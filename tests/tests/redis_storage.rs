//! Several instances with one storage in Redis: one order for all, and a start while Redis is away.
#![forbid(unsafe_code)]

use regent_tests::{Pebble, Redis, Server, Setup, TlsClient, TlsConn, free_address, regent_command, until};
use std::net::SocketAddr;

/// A server of `shop.test` on a port of its own, whose certificates are kept in Redis, with copies in its directory.
fn instance(pebble: &Pebble, redis: &Redis, http: u16, https: u16, name: &str) -> Server {
    let caddyfile = format!(
        "{{\n\tadmin ADMIN\n\thttp_port {http}\n\thttps_port {https}\n\tacme_ca {}\n\tacme_ca_root {}\n\
         \tfrankenphp {{\n\t\tnum_threads 2\n\t}}\n\
         \tstorage redis {{\n\t\taddress {}\n\t\tpassword \"{}\"\n\t\tkey_prefix fleet\n\
         \t\tencryption_key 0123456789abcdef0123456789abcdef\n\t\tcompression zlib\n\t}}\n}}\n\
         shop.test {{\n\trespond {name}\n}}\n\
         http://:PORT {{\n\trespond ready\n}}\n",
        pebble.url(),
        pebble.certificate().display(),
        redis.address(),
        Redis::PASSWORD,
    );
    Setup::new().caddyfile(&caddyfile).env("XDG_DATA_HOME", "DIRECTORY/data").start()
}

/// The site's certificate is there, and this instance answers with it.
fn answers(client: &TlsClient, address: SocketAddr, name: &str) {
    let mut conn: TlsConn =
        until("shop.test has a certificate", || client.try_connect(address, "shop.test").ok());
    conn.send("GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), name);
}

#[test]
fn instances_share_one_order_and_start_while_redis_is_away() {
    let setup = Setup::new();
    let (http, one, two) = (free_address().port(), free_address(), free_address());
    // The CA reaches the first instance only, whichever of them has ordered.
    let Some(pebble) = Pebble::start(setup.directory(), http, one.port()) else { return };
    let mut redis = Redis::start(setup.directory());
    let first = instance(&pebble, &redis, http, one.port(), "first");
    let second = instance(&pebble, &redis, free_address().port(), two.port(), "second");
    let client = pebble.client();
    answers(&client, one, "first");
    answers(&client, two, "second");
    assert_eq!(pebble.orders(), 1, "{}", pebble.log());
    let stored = redis.ask(&["--raw", "keys", "fleet/certificates/*.key"]);
    assert!(stored.trim().ends_with("/shop.test/shop.test.key"), "{stored}");
    assert!(!redis.ask(&["get", stored.trim()]).contains("PRIVATE"), "keys are encrypted");

    redis.kill();
    let second = second.restart(|directory| {
        let mut command = regent_command(directory);
        command.args(["run", "--config"]).arg(directory.join("Caddyfile"));
        command.env("XDG_DATA_HOME", directory.join("data"));
        command
    });
    answers(&client, two, "second");
    second.wait_for_log("the storage cannot be reached");
    assert_eq!(pebble.orders(), 1, "{}", pebble.log());
    second.stop();
    first.stop();
}
