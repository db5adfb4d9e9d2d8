use super::*;
use crate::Sentinels;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

const PRIMARY: &str = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
const REPLICA: &str = "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:1\r\n$9\r\nconnected\r\n:0\r\n";

/// A server that has these answers, for the commands that it hears in them; others are fine with it. Tells of its
/// connections.
fn server(answers: &'static [(&'static str, &'static str)]) -> (Address, Receiver<()>) {
    let answers = answers.iter().map(|(command, answer)| (*command, (*answer).to_owned())).collect();
    server_with(answers)
}

fn server_with(answers: Vec<(&'static str, String)>) -> (Address, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = address_of(listener.local_addr().unwrap());
    let (heard, connections) = channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            if heard.send(()).is_err() {
                return;
            }
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = connection.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                let known = answers.iter().find(|(command, _)| text.contains(command));
                // What a connection begins with are commands about the client.
                let begun = text.matches("CLIENT").count().max(1);
                let answer = known.map_or_else(|| "+OK\r\n".repeat(begun), |(_, answer)| answer.clone());
                if connection.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (address, connections)
}

fn address_of(address: SocketAddr) -> Address {
    Address { host: address.ip().to_string(), port: address.port() }
}

/// Where nobody listens.
fn nobody() -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    address_of(listener.local_addr().unwrap())
}

fn client(place: Place) -> Client {
    let timeout = Duration::from_secs(2);
    Client::new(&RedisServer { place, timeout, ..RedisServer::at("unused", 1) }).unwrap()
}

fn sentinels(addresses: Vec<Address>) -> Place {
    Place::ToldBy(Sentinels { addresses, primary: "shop".into(), username: None, password: None })
}

fn says(primary: &Address) -> Vec<(&'static str, String)> {
    let Address { host, port } = primary;
    let port = port.to_string();
    let answer = format!("*2\r\n${}\r\n{host}\r\n${}\r\n{port}\r\n", host.len(), port.len());
    vec![("get-master-addr-by-name", answer)]
}

#[test]
fn of_several_servers_the_primary_is_found_and_asked_first_from_then_on() {
    let (replica, heard) = server(&[("ROLE", REPLICA)]);
    let (primary, asked) = server(&[("ROLE", PRIMARY)]);
    let client = client(Place::OneOf(vec![nobody(), replica, primary]));
    client.connect().unwrap();
    client.connect().unwrap();
    assert_eq!((heard.try_iter().count(), asked.try_iter().count()), (1, 2));
}

#[test]
fn who_may_not_ask_for_the_role_is_let_in() {
    let (server, _heard) = server(&[("ROLE", "-NOPERM no permissions to run the 'role' command\r\n")]);
    client(Place::OneOf(vec![server, nobody()])).connect().unwrap();
}

#[test]
fn without_a_primary_all_reasons_are_told() {
    let (replica, _heard) = server(&[("ROLE", REPLICA)]);
    let (gone, kept) = (nobody(), replica.to_string());
    let error = client(Place::OneOf(vec![gone.clone(), replica])).connect().err().unwrap().to_string();
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
    client.connect().unwrap();
    client.connect().unwrap();
    assert_eq!(heard.try_iter().count(), 2);
}

#[test]
fn a_name_that_no_sentinel_knows_is_in_the_message() {
    let (ignorant, _heard) = server(&[("get-master-addr-by-name", "*-1\r\n")]);
    let error = client(sentinels(vec![ignorant])).connect().err().unwrap().to_string();
    assert!(error.contains("no primary of the name") && error.contains("shop"), "{error}");
}

#[test]
fn all_together_take_no_longer_than_the_time_limit() {
    // They take connections, and never answer.
    let silent: Vec<_> = (0..4).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses = silent.iter().map(|each| address_of(each.local_addr().unwrap())).collect();
    let begun = Instant::now();
    let timeout = Duration::from_millis(400);
    let place = sentinels(addresses);
    let client = Client::new(&RedisServer { place, timeout, ..RedisServer::at("unused", 1) }).unwrap();
    assert!(client.connect().is_err());
    assert!(begun.elapsed() < timeout * 3, "{:?}", begun.elapsed());
}

#[test]
fn the_answers_of_a_replica_are_those_of_a_broken_connection() {
    let (server, _heard) = server(&[
        ("\r\nSET\r\n", "-READONLY You can't write against a read only replica.\r\n"),
        ("\r\nGET\r\n", "-ERR no\r\n"),
    ]);
    let mut connection = client(Place::OneOf(vec![server])).connect().unwrap();
    let error = cmd("SET").arg("a").arg("b").exec(&mut connection).unwrap_err();
    assert!(is_broken(&error), "{error}");
    let error = cmd("GET").arg("a").exec(&mut connection).unwrap_err();
    assert!(!is_broken(&error), "{error}");
}
