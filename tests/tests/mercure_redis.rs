//! Mercure hubs of several servers that share their updates by Redis: for publishers and subscribers they are one.
#![forbid(unsafe_code)]

use regent_tests::mercure::{HUB, SECRET, SUBSCRIBER, publish, subscribe};
use regent_tests::{Conn, Redis, RedisCluster, RedisSentinels, Server, Setup, in_parallel, until};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn instance(redis: &Redis, options: &str) -> Server {
    hub(redis, "", options)
}

/// Options of the hub, and of its transport.
fn hub(redis: &Redis, own: &str, options: &str) -> Server {
    hub_at(&format!("address {}", redis.address()), own, options)
}

/// One whose Redis is where these say.
fn hub_told_by(redis: &RedisSentinels) -> Server {
    let addresses: String = redis.addresses().iter().map(|address| format!(" {address}")).collect();
    let (name, password) = (RedisSentinels::NAME, RedisSentinels::PASSWORD);
    let place = format!("addresses{addresses}\n\t\tmaster_name {name}\n\t\tsentinel_password \"{password}\"");
    hub_at(&place, "", "")
}

/// One whose stream is in a cluster, of which it knows some servers.
fn hub_of_cluster(redis: &RedisCluster) -> Server {
    let addresses: String = redis.addresses().iter().map(|address| format!(" {address}")).collect();
    hub_at(&format!("cluster\n\t\taddresses{addresses}"), "", "")
}

/// Redis may take as long as a busy machine makes it; of two options with a name the later counts.
fn hub_at(place: &str, own: &str, options: &str) -> Server {
    let site = format!(
        "mercure {{\n\tpublisher_jwt {SECRET}\n\tsubscriber_jwt {SECRET}\n\tanonymous\n\t{own}\n\ttransport redis {{\n\t\t\
         {place}\n\t\tpassword \"{}\"\n\t\ttimeout 10\n\t\t{options}\n\t}}\n\t}}\n\tphp_server",
        Redis::PASSWORD,
    );
    let script = "<?php echo mercure_publish('a', 'of a script', id: $_GET['id']);";
    Setup::new().file("index.php", script).site(&site).start()
}

/// The ids of the next events, until one is `last`.
fn ids(conn: &mut Conn, last: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    while ids.last().is_none_or(|id| id != last) {
        ids.extend(next_id(conn));
    }
    ids
}

/// `None`: it was a comment.
fn next_id(conn: &mut Conn) -> Option<String> {
    let event = conn.read_until("\n\n");
    event.lines().find_map(|line| line.strip_prefix("id: ")).map(str::to_owned)
}

fn all(server: &Server, last: &str) -> Vec<String> {
    ids(&mut subscribe(server, "topic=a&lastEventID=earliest", "").0, last)
}

/// A client that stays for a few events, goes, and comes again to the other server with what it had last.
fn wanderer(servers: [&Server; 2], last: &str) -> Vec<String> {
    let (mut seen, mut turn): (Vec<String>, usize) = (Vec::new(), 0);
    while seen.last().is_none_or(|id| id != last) {
        let since = seen.last().map_or("earliest", String::as_str);
        let (mut conn, head) = subscribe(servers[turn % 2], &format!("topic=a&lastEventID={since}"), "");
        assert_eq!(head.header("last-event-id"), Some(since), "each server knows it");
        for _ in 0..=turn % 5 {
            seen.extend(next_id(&mut conn));
            if seen.last().is_some_and(|id| id == last) {
                break;
            }
        }
        turn += 1;
    }
    seen
}

#[test]
fn hubs_that_share_a_stream_are_one() {
    let setup = Setup::new();
    let redis = Redis::start(setup.directory());
    let (first, second) = (instance(&redis, ""), instance(&redis, ""));
    let servers = [&first, &second];
    let mut live = servers.map(|server| subscribe(server, "topic=a", "").0);
    let walks = std::thread::scope(|scope| {
        let walkers: Vec<_> = (0..4).map(|_| scope.spawn(move || wanderer(servers, "last"))).collect();
        in_parallel(4, |client| {
            for round in 0..50 {
                let (server, id) = (servers[(client + round) % 2], format!("{client}-{round}"));
                publish(server, &[("topic", "a"), ("id", &id)]).expect(200);
            }
        });
        assert_eq!(first.get("/?id=script").expect(200).text(), "script");
        // What a script publishes follows its answer.
        until("the script's update is there", || {
            redis.ask(&["xlen", "mercure"]).trim().eq("201").then_some(())
        });
        publish(&second, &[("topic", "a"), ("id", "last")]).expect(200);
        walkers.into_iter().map(|walker| walker.join().expect("it walks to the end")).collect::<Vec<_>>()
    });
    let expected = ids(&mut live[0], "last");
    let different: HashSet<_> = expected.iter().collect();
    assert_eq!((expected.len(), different.len()), (202, 202), "each once");
    assert_eq!(ids(&mut live[1], "last"), expected, "in the same order");
    for server in servers {
        assert_eq!(all(server, "last"), expected);
    }
    for walk in walks {
        assert_eq!(walk, expected, "no gap and no double, wherever it was before");
    }
    let third = instance(&redis, "");
    assert_eq!(all(&third, "last"), expected, "also at a server that has just begun");
    [first, second, third].into_iter().for_each(Server::stop);
}

/// The connection that a hub has kept may be one to the Redis of before: then it is not known what became of the update.
fn publish_again(server: &Server, id: &str) {
    let try_once = || publish(server, &[("topic", "a"), ("id", id)]).status == 200;
    until("it is published again", || try_once().then_some(()));
}

/// Who publishes ends, also when the test fails.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_was_answered_outlives_redis() {
    let setup = Setup::new();
    let mut redis = Redis::start(setup.directory());
    let (first, second) = (instance(&redis, ""), instance(&redis, ""));
    let mut live = subscribe(&second, "topic=a", "").0;
    let (stop, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
    let answered = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            let mut answered = Vec::new();
            for number in 0.. {
                let id = number.to_string();
                match publish(&first, &[("topic", "a"), ("id", &id)]).status {
                    200 => answered.push(id),
                    503 => drop(refused.fetch_add(1, Ordering::Relaxed)),
                    other => panic!("{other}"),
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            answered
        });
        let stopping = Stopping(&stop);
        until("some are published", || {
            redis.ask(&["xlen", "mercure"]).trim().parse::<u32>().ok().filter(|count| *count > 50)
        });
        redis.kill();
        first.wait_for_log("updates of a Mercure hub cannot be published");
        second.wait_for_log("the updates of a Mercure hub cannot be read");
        // Who comes gets what the hub knows.
        let mut comes = subscribe(&second, "topic=a&lastEventID=earliest", "").0;
        assert_eq!(next_id(&mut comes).as_deref(), Some("0"));
        until("who publishes is refused", || (refused.load(Ordering::Relaxed) > 0).then_some(()));
        redis.come_back();
        second.wait_for_log("are read from Redis again");
        publish_again(&second, "back");
        drop(stopping);
        publisher.join().expect("it publishes to the end")
    });
    publish_again(&first, "last");
    let seen = ids(&mut live, "last");
    let mut times: HashMap<&str, usize> = HashMap::new();
    seen.iter().for_each(|id| *times.entry(id).or_default() += 1);
    assert!(times.iter().all(|(id, count)| *count == 1 || matches!(*id, "back" | "last")), "{times:?}");
    assert!(answered.iter().all(|id| times.contains_key(id.as_str())), "an answered update is missing");
    assert_eq!(all(&first, "last"), seen);
    first.stop();
    second.stop();
}

#[test]
fn subscribers_go_on_when_sentinels_have_chosen_another_primary() {
    let setup = Setup::new();
    let mut redis = RedisSentinels::start(setup.directory());
    let (first, second) = (hub_told_by(&redis), hub_told_by(&redis));
    let mut live = subscribe(&second, "topic=a", "").0;
    let before: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    for id in &before {
        publish(&first, &[("topic", "a"), ("id", id)]).expect(200);
    }
    redis.wait_until_replicated();
    redis.kill_primary();
    first.wait_for_log("the updates of a Mercure hub cannot be read");
    publish_again(&first, "after");
    publish_again(&second, "last");
    let expected = [before, vec!["after".to_owned(), "last".to_owned()]].concat();
    assert_eq!(ids(&mut live, "last"), expected, "no gap and no double");
    for server in [&first, &second] {
        assert_eq!(all(server, "last"), expected, "also for who comes now");
    }
    assert_eq!(redis.ask(&["xlen", "mercure"]).trim(), "52");
    let third = hub_told_by(&redis);
    assert_eq!(all(&third, "last"), expected, "also at a server that has just begun");
    [first, second, third].into_iter().for_each(Server::stop);
}

#[test]
fn subscribers_go_on_when_a_stream_moves_in_a_cluster_and_when_its_server_dies() {
    let setup = Setup::new();
    let mut redis = RedisCluster::start(setup.directory());
    let (first, second) = (hub_of_cluster(&redis), hub_of_cluster(&redis));
    let mut live = subscribe(&second, "topic=a", "").0;
    let publish_some = |expected: &mut Vec<String>, number: usize| {
        for _ in 0..number {
            let id = expected.len().to_string();
            publish(&first, &[("topic", "a"), ("id", &id)]).expect(200);
            expected.push(id);
        }
    };
    let mut expected = Vec::new();
    publish_some(&mut expected, 20);
    // The server that had it says where it is: nobody is refused, and nothing is added twice.
    redis.move_slot_of("mercure");
    publish_some(&mut expected, 20);
    assert_eq!(ids(&mut live, "39"), expected, "no gap and no double");
    redis.wait_until_replicated();
    redis.kill_primary_of("mercure");
    publish_again(&first, "after");
    publish_again(&second, "last");
    assert_eq!(ids(&mut live, "last"), ["after", "last"], "no gap and no double");
    expected.extend(["after".to_owned(), "last".to_owned()]);
    for server in [&first, &second] {
        assert_eq!(all(server, "last"), expected, "also for who comes now");
    }
    assert_eq!(redis.ask("mercure", &["xlen", "mercure"]).trim(), "42");
    let third = hub_of_cluster(&redis);
    assert_eq!(all(&third, "last"), expected, "also at a server that has just begun");
    [first, second, third].into_iter().for_each(Server::stop);
}

#[test]
fn a_hub_that_begins_without_redis_promises_nothing_until_it_is_there() {
    let setup = Setup::new();
    let mut redis = Redis::start(setup.directory());
    redis.kill();
    let server = instance(&redis, "timeout 1");
    let refused = server.get(&format!("{HUB}?topic=a"));
    assert_eq!(refused.status, 503, "{}", refused.text());
    redis.come_back();
    server.wait_for_log("are read from Redis again");
    publish(&server, &[("topic", "a"), ("id", "1")]).expect(200);
    assert_eq!(all(&server, "1"), ["1"]);
    server.stop();
}

#[test]
fn who_subscribes_at_one_server_is_told_at_the_other() {
    let setup = Setup::new();
    let redis = Redis::start(setup.directory());
    let (first, second) = (hub(&redis, "subscriptions", ""), hub(&redis, "subscriptions", ""));
    let topic = "topic=%2F.well-known%2Fmercure%2Fsubscriptions%7B%2Ftopic%7D%7B%2Fsubscriber%7D";
    let (mut watcher, _) = subscribe(&first, topic, &format!("Authorization: Bearer {SUBSCRIBER}\r\n"));
    assert!(watcher.read_until("\n\n").contains("\"active\":true"), "its own subscription");
    let (visitor, _) = subscribe(&second, "topic=a", "");
    let begun = watcher.read_until("\n\n");
    assert!(begun.contains("subscriptions/a/") && begun.contains("\"active\":true"), "{begun}");
    drop(visitor);
    let ended = watcher.read_until("\n\n");
    assert!(ended.contains("subscriptions/a/") && ended.contains("\"active\":false"), "{ended}");
    first.stop();
    second.stop();
}

#[test]
fn the_history_is_bounded_and_a_stream_that_was_lost_begins_anew() {
    let setup = Setup::new();
    let mut redis = Redis::start(setup.directory());
    let server = instance(&redis, "max_length 100\n\t\tstream small");
    for number in 0..400 {
        publish(&server, &[("topic", "a"), ("id", &number.to_string())]).expect(200);
    }
    let kept: usize = redis.ask(&["xlen", "small"]).trim().parse().expect("a number");
    assert!((100..=200).contains(&kept), "{kept}");
    let expected: Vec<_> = (300..400).map(|number| number.to_string()).collect();
    assert_eq!(all(&server, "399"), expected);
    // What is not the hub's is left out.
    redis.ask(&["xadd", "small", "*", "other", "x"]);
    redis.ask(&["xadd", "small", "*", "update", "no json"]);
    publish(&server, &[("topic", "a"), ("id", "400")]).expect(200);
    assert_eq!(all(&server, "400").last().map(String::as_str), Some("400"));

    // Redis comes back empty: subscribers are told to come again, and get what there is.
    let mut live = subscribe(&server, "topic=a", "").0;
    redis.kill();
    redis.lose_all();
    redis.come_back();
    assert!(live.read_until("retry: ").starts_with(":\n"), "it is told to come again");
    publish_again(&server, "new");
    assert_eq!(all(&server, "new"), ["new"]);
    server.stop();
}
