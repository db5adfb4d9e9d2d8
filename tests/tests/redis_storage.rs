//! Several instances with one storage in Redis: one order for all, and a start while Redis is away.
#![forbid(unsafe_code)]

use regent_tests::{
    Pebble, Redis, RedisCluster, RedisSentinels, Server, Setup, TlsClient, TlsConn, own_addresses,
    regent_command, until,
};
use std::net::SocketAddr;

/// A server of `shop.test` at addresses of its own, whose certificates are kept in Redis, with copies in its directory.
fn instance(pebble: &Pebble, redis: &Redis, places: [SocketAddr; 2], name: &str) -> Server {
    instance_of(pebble, &format!("address {}", redis.address()), "shop.test", places, name)
}

/// The same of any name, with whatever says where Redis is.
fn instance_of(
    pebble: &Pebble,
    place: &str,
    site: &str,
    [http, https]: [SocketAddr; 2],
    name: &str,
) -> Server {
    let caddyfile = format!(
        "{{\n\tadmin ADMIN\n\tdefault_bind {}\n\thttp_port {}\n\thttps_port {}\n\tacme_ca {}\n\tacme_ca_root {}\n\
         \tfrankenphp {{\n\t\tnum_threads 2\n\t}}\n\
         \tstorage redis {{\n\t\t{place}\n\t\tpassword \"{}\"\n\t\tkey_prefix fleet\n\
         \t\tencryption_key 0123456789abcdef0123456789abcdef\n\t\tcompression zlib\n\t}}\n}}\n\
         {site} {{\n\trespond {name}\n}}\n\
         http://:PORT {{\n\tbind LOOPBACK\n\trespond ready\n}}\n",
        http.ip(),
        http.port(),
        https.port(),
        pebble.url(),
        pebble.certificate().display(),
        Redis::PASSWORD,
    );
    Setup::new().caddyfile(&caddyfile).env("XDG_DATA_HOME", "DIRECTORY/data").start()
}

/// The site's certificate is there, and this instance answers with it.
fn answers(client: &TlsClient, address: SocketAddr, name: &str) {
    answers_for("shop.test", client, address, name);
}

fn answers_for(site: &str, client: &TlsClient, address: SocketAddr, name: &str) {
    let has_certificate = format!("{site} has a certificate");
    let mut conn: TlsConn = until(&has_certificate, || client.try_connect(address, site).ok());
    conn.send(format!("GET / HTTP/1.1\r\nHost: {site}\r\n\r\n"));
    assert_eq!(conn.response().expect(200).text(), name);
}

#[test]
fn instances_share_one_order_and_start_while_redis_is_away() {
    let setup = Setup::new();
    let ([http, one], [other_http, two]) = (own_addresses(), own_addresses());
    // The CA reaches the first instance only, whichever of them has ordered.
    let Some(pebble) = Pebble::start(setup.directory(), [http, one]) else { return };
    let mut redis = Redis::start(setup.directory());
    let first = instance(&pebble, &redis, [http, one], "first");
    let second = instance(&pebble, &redis, [other_http, two], "second");
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

#[test]
fn certificates_are_kept_by_the_primary_that_sentinels_have_chosen() {
    let setup = Setup::new();
    let ([http, one], [other_http, two]) = (own_addresses(), own_addresses());
    let Some(pebble) = Pebble::start(setup.directory(), [http, one]) else { return };
    let mut redis = RedisSentinels::start(setup.directory());
    let sentinels: String = redis.addresses().iter().map(|address| format!("\t\t\t{address}\n")).collect();
    let place = format!(
        "address {{\n{sentinels}\t\t}}\n\t\tmaster_name {}\n\t\tsentinel_password \"{}\"",
        RedisSentinels::NAME,
        RedisSentinels::PASSWORD,
    );
    let client = pebble.client();
    let first = instance_of(&pebble, &place, "shop.test", [http, one], "first");
    answers(&client, one, "first");
    redis.wait_until_replicated();
    redis.kill_primary();

    // One that begins now has nothing but what the new primary has.
    let second = instance_of(&pebble, &place, "shop.test", [other_http, two], "second");
    answers(&client, two, "second");
    assert_eq!(pebble.orders(), 1, "{}", pebble.log());
    // What is ordered now takes a lock there, and is stored. The CA reaches this one.
    first.stop();
    let third = instance_of(&pebble, &place, "other.test", [http, one], "third");
    answers_for("other.test", &client, one, "third");
    assert_eq!(pebble.orders(), 2, "{}", pebble.log());
    let stored = redis.ask(&["--raw", "keys", "fleet/certificates/*.key"]);
    assert!(stored.contains("/other.test.key") && stored.contains("/shop.test.key"), "{stored}");
    second.stop();
    third.stop();
}

#[test]
fn certificates_are_kept_by_a_cluster_of_which_a_server_dies() {
    let setup = Setup::new();
    let ([http, one], [other_http, two]) = (own_addresses(), own_addresses());
    let Some(pebble) = Pebble::start(setup.directory(), [http, one]) else { return };
    let mut redis = RedisCluster::start(setup.directory());
    let servers: String = redis.addresses().iter().map(|address| format!("\t\t\t{address}\n")).collect();
    let place = format!("cluster\n\t\taddress {{\n{servers}\t\t}}");
    let client = pebble.client();
    let first = instance_of(&pebble, &place, "shop.test", [http, one], "first");
    answers(&client, one, "first");
    assert!(redis.primaries_with_keys() > 1, "what belongs together is not all of one server");
    let stored = redis.keys("fleet/certificates/*.key");
    let key = stored.trim().to_owned();
    assert!(key.ends_with("/shop.test/shop.test.key"), "{stored}");
    redis.wait_until_replicated();
    redis.kill_primary_of(&key);

    // One that begins now has nothing but what the cluster has.
    let second = instance_of(&pebble, &place, "shop.test", [other_http, two], "second");
    answers(&client, two, "second");
    assert_eq!(pebble.orders(), 1, "{}", pebble.log());
    // What is ordered now takes a lock there, and is stored. The CA reaches this one.
    first.stop();
    let third = instance_of(&pebble, &place, "other.test", [http, one], "third");
    answers_for("other.test", &client, one, "third");
    assert_eq!(pebble.orders(), 2, "{}", pebble.log());
    let stored = redis.keys("fleet/certificates/*.key");
    assert!(stored.contains("/other.test.key") && stored.contains("/shop.test.key"), "{stored}");
    second.stop();
    third.stop();
}
