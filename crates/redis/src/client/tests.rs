use super::testing::{address_of, nobody, server, server_with, text};
use super::*;
use std::net::TcpListener;
use std::time::Instant;

const PRIMARY: &str = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
const REPLICA: &str = "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:1\r\n$9\r\nconnected\r\n:0\r\n";

fn client(place: Place) -> Client {
    let timeout = Duration::from_secs(60);
    Client::new(&RedisServer { place, timeout, ..RedisServer::at("unused", 1) }).unwrap()
}

fn sentinels(addresses: Vec<Address>) -> Place {
    Place::ToldBy(Sentinels { addresses, primary: "shop".into(), username: None, password: None })
}

fn says(primary: &Address) -> Vec<(&'static str, String)> {
    let (host, port) = (text(&primary.host), text(&primary.port.to_string()));
    vec![("get-master-addr-by-name", format!("*2\r\n{host}{port}"))]
}

#[test]
fn of_several_servers_the_primary_is_found_and_asked_first_from_then_on() {
    let (replica, heard) = server(&[("ROLE", REPLICA)]);
    let (primary, asked) = server(&[("ROLE", PRIMARY)]);
    let client = client(Place::OneOf(vec![nobody(), replica, primary]));
    client.connect("key").unwrap();
    client.connect("key").unwrap();
    assert_eq!((heard.try_iter().count(), asked.try_iter().count()), (1, 2));
}

#[test]
fn who_may_not_ask_for_the_role_is_let_in() {
    let (server, _heard) = server(&[("ROLE", "-NOPERM no permissions to run the 'role' command\r\n")]);
    client(Place::OneOf(vec![server, nobody()])).connect("key").unwrap();
}

#[test]
fn without_a_primary_all_reasons_are_told() {
    let (replica, _heard) = server(&[("ROLE", REPLICA)]);
    let (gone, kept) = (nobody(), replica.to_string());
    let error = client(Place::OneOf(vec![gone.clone(), replica])).connect("key").err().unwrap().to_string();
    assert!(error.contains(&format!("{gone}: ")) && error.contains("is a replica"), "{error}");
    assert!(error.contains(&kept) && error.contains("refused"), "{error}");
}

#[test]
fn sentinels_are_asked_until_one_leads_to_a_primary() {
    let (primary, _asked) = server(&[("ROLE", PRIMARY)]);
    let (replica, _heard) = server(&[("ROLE", REPLICA)]);
    let (ignorant, _) = server(&[("get-master-addr-by-name", "*-1\r\n")]);
    let (stale, _) = server_with(says(&replica));
    let (right, heard) = server_with(says(&primary));
    let client = client(sentinels(vec![nobody(), ignorant, stale, right]));
    client.connect("key").unwrap();
    client.connect("key").unwrap();
    assert_eq!(heard.try_iter().count(), 2);
}

#[test]
fn a_name_that_no_sentinel_knows_is_in_the_message() {
    let (ignorant, _heard) = server(&[("get-master-addr-by-name", "*-1\r\n")]);
    let error = client(sentinels(vec![ignorant])).connect("key").err().unwrap().to_string();
    assert!(error.contains("no primary of the name") && error.contains("shop"), "{error}");
}

#[test]
fn all_together_take_no_longer_than_the_time_limit() {
    // They take connections, and never answer.
    let silent: Vec<_> = (0..120).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses = silent.iter().map(|each| address_of(each.local_addr().unwrap())).collect();
    let begun = Instant::now();
    let timeout = Duration::from_millis(500);
    let place = sentinels(addresses);
    let client = Client::new(&RedisServer { place, timeout, ..RedisServer::at("unused", 1) }).unwrap();
    assert!(client.connect("key").is_err());
    // clock: half a second, where each for itself would make a minute; only a hang is between them.
    let taken = begun.elapsed();
    assert!(taken < Duration::from_secs(30), "{taken:?}");
}

#[test]
fn the_answers_of_a_replica_are_those_of_a_broken_connection() {
    let (server, _heard) = server(&[
        ("\r\nSET\r\n", "-READONLY You can't write against a read only replica.\r\n"),
        ("\r\nGET\r\n", "-ERR no\r\n"),
    ]);
    let mut connection = client(Place::OneOf(vec![server])).connect("key").unwrap();
    let error = cmd("SET").arg("a").arg("b").exec(&mut connection).unwrap_err();
    assert!(is_broken(&error), "{error}");
    let error = cmd("GET").arg("a").exec(&mut connection).unwrap_err();
    assert!(!is_broken(&error), "{error}");
}
