use super::*;
use crate::client::testing::{Answers, nobody, server_with, text};
use crate::{Client, Place, RedisServer};
use redis::pipe;

/// What `CLUSTER SLOTS` says of ranges of slots.
fn slots(ranges: &[(u16, u16, &Address)]) -> (&'static str, String) {
    let ranges = ranges.iter().map(|(first, last, address)| {
        let node = format!("*2\r\n{}:{}\r\n", text(&address.host), address.port);
        format!("*3\r\n:{first}\r\n:{last}\r\n{node}")
    });
    let ranges: Vec<String> = ranges.collect();
    ("\r\nSLOTS\r\n", format!("*{}\r\n{}", ranges.len(), ranges.concat()))
}

/// What a server says that has all slots and does not know its address.
fn has_all() -> (&'static str, String) {
    ("\r\nSLOTS\r\n", "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$-1\r\n:PORT\r\n".to_owned())
}

fn redirection(kind: &str, key: &str, to: &Address) -> String {
    format!("-{kind} {} {}:{}\r\n", slot(key), to.host, to.port)
}

fn client(seeds: Vec<Address>) -> Client {
    let timeout = Duration::from_secs(60);
    Client::new(&RedisServer { place: Place::Cluster(seeds), timeout, ..RedisServer::at("unused", 1) })
        .unwrap()
}

fn has(value: &'static str) -> Answers {
    vec![("\r\nGET\r\n", format!("+{value}\r\n"))]
}

fn get(connection: &mut crate::Connection, key: &str) -> RedisResult<String> {
    cmd("GET").arg(key).query(connection.about(key)?)
}

#[test]
fn each_key_is_asked_for_where_it_is() {
    let (low, _asked) = server_with(has("low"));
    let (high, _asked) = server_with(has("high"));
    let (seed, asked) = server_with(vec![slots(&[(0, 9_999, &low), (10_000, 16_383, &high)])]);
    let client = client(vec![nobody(), seed]);
    assert_ne!(client.slot("foo"), client.slot("bar"));
    let mut connection = client.connect("foo").unwrap();
    assert_eq!(get(&mut connection, "foo").unwrap(), "high");
    assert_eq!(get(&mut connection, "bar").unwrap(), "low");
    assert_eq!(get(&mut connection, "foo").unwrap(), "high");
    assert_eq!(asked.try_iter().count(), 1);
}

#[test]
fn a_seed_whose_word_is_old_is_not_the_last_that_is_asked() {
    let (right, _asked) = server_with(has("right"));
    let (old, _asked) = server_with(vec![slots(&[(0, 16_383, &nobody())])]);
    let (new, _asked) = server_with(vec![slots(&[(0, 16_383, &right)])]);
    let client = client(vec![old, new]);
    assert_eq!(get(&mut client.connect("foo").unwrap(), "foo").unwrap(), "right");
}

#[test]
fn servers_that_were_learnt_are_asked_when_the_seeds_have_gone() {
    let (learnt, _asked) = server_with(vec![has_all()]);
    let (seed, asked) = server_with(vec![slots(&[(0, 16_383, &learnt)])]);
    let client = client(vec![seed.clone()]);
    client.connect("foo").unwrap();
    // The next connection is its last, since nobody hears of it.
    drop(asked);
    client.connect("foo").unwrap();
    assert!(std::net::TcpStream::connect((seed.host.as_str(), seed.port)).is_err());
    client.connect("foo").unwrap();
}

#[test]
fn a_key_that_has_moved_is_asked_for_there_from_then_on() {
    let (new, asked) = server_with(has("new"));
    let (old, _asked) = server_with(vec![has_all(), ("\r\nGET\r\n", redirection("MOVED", "foo", &new))]);
    let mut connection = client(vec![old]).connect("foo").unwrap();
    for _ in 0..2 {
        assert_eq!(get(&mut connection, "foo").unwrap(), "new");
    }
    assert_eq!(asked.try_iter().count(), 1);
}

#[test]
fn a_key_that_is_on_its_way_is_asked_for_with_a_word_before_it() {
    let answers = vec![("\r\nASKING\r\n", "+OK\r\n".to_owned()), ("\r\nGET\r\n", "+there\r\n".to_owned())];
    let (target, _asked) = server_with(answers);
    let (source, _asked) = server_with(vec![has_all(), ("\r\nGET\r\n", redirection("ASK", "foo", &target))]);
    let mut connection = client(vec![source]).connect("foo").unwrap();
    assert_eq!(get(&mut connection, "foo").unwrap(), "there");
}

#[test]
fn what_is_sent_from_one_to_the_other_without_end_is_an_error() {
    let moved = format!("-MOVED {} :PORT\r\n", slot("foo"));
    let (itself, _asked) = server_with(vec![has_all(), ("\r\nGET\r\n", moved)]);
    let mut connection = client(vec![itself]).connect("foo").unwrap();
    let error = get(&mut connection, "foo").unwrap_err();
    assert!(crate::is_broken(&error), "{error}");
}

#[test]
fn a_slot_that_nobody_has_is_an_error_that_says_so() {
    let (seed, _asked) = server_with(vec![slots(&[(0, 1, &nobody())])]);
    let error = client(vec![seed]).connect("foo").err().unwrap().to_string();
    assert!(error.contains("no server of the cluster has the key"), "{error}");
}

#[test]
fn a_pipeline_is_split_where_its_commands_end() {
    let mut all = pipe();
    all.cmd("XADD").arg("a\r\n$1\r\n").arg("*2\r\n");
    all.cmd("PING").cmd("GET").arg("");
    let packed = all.get_packed_pipeline();
    let parts: Vec<&[u8]> = split(&packed).collect();
    assert_eq!(parts.len(), 3);
    assert_eq!(parts.concat(), packed);
    assert_eq!(parts[1], b"*1\r\n$4\r\nPING\r\n");
    assert_eq!(split(b"*1\r\n$4\r\nPI").count(), 0);
}
