//! Questions to servers of the tests' own.

use super::*;
use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::Record;
use hickory_resolver::proto::rr::rdata::{A, CNAME, NS, SOA, TXT};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;
use tokio::sync::watch;

const ZONE: &str = "zone.test.";
const FQDN: &str = "_acme-challenge.www.zone.test.";
const PATIENCE: Duration = Duration::from_secs(20);

type Records = Arc<Mutex<HashMap<(String, RecordType), Vec<RData>>>>;

/// Answers with what it was told, until the test ends.
struct Server {
    address: SocketAddr,
    records: Records,
    questions: watch::Receiver<usize>,
}

impl Server {
    async fn start(address: SocketAddr) -> Self {
        let socket = UdpSocket::bind(address).await.unwrap();
        let address = socket.local_addr().unwrap();
        let records = Records::default();
        let (asked, questions) = watch::channel(0);
        let known = Arc::clone(&records);
        tokio::spawn(async move {
            let mut buffer = [0; 1500];
            loop {
                let (length, client) = socket.recv_from(&mut buffer).await.unwrap();
                let answer = answer(&Message::from_vec(&buffer[..length]).unwrap(), &known);
                socket.send_to(&answer.to_vec().unwrap(), client).await.unwrap();
                asked.send_modify(|count| *count += 1);
            }
        });
        Self { address, records, questions }
    }

    fn knows(&self, name: &str, data: RData) -> &Self {
        let mut records = self.records.lock().unwrap();
        records.entry((name.to_owned(), data.record_type())).or_default().push(data);
        self
    }
}

fn answer(question: &Message, records: &Records) -> Message {
    let query = &question.queries[0];
    let mut answer = Message::response(question.metadata.id, question.metadata.op_code);
    answer.metadata.message_type = MessageType::Response;
    answer.metadata.recursion_available = true;
    answer.add_query(query.clone());
    let key = (query.name().to_ascii().to_ascii_lowercase(), query.query_type());
    let records = records.lock().unwrap();
    let alias = (key.0.clone(), RecordType::CNAME);
    match records.get(&key).or_else(|| records.get(&alias)) {
        Some(found) => {
            for data in found {
                answer.add_answer(Record::from_rdata(query.name().clone(), 0, data.clone()));
            }
        }
        None => answer.metadata.response_code = ResponseCode::NXDomain,
    }
    answer
}

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

fn soa() -> RData {
    RData::SOA(SOA::new(name("ns1.test."), name("a.test."), 1, 60, 60, 60, 60))
}

fn value(text: &str) -> RData {
    RData::TXT(TXT::new(vec![text.to_owned()]))
}

/// The servers of the system, and both servers of the zone.
struct World {
    system: Server,
    zone: [Server; 2],
}

impl World {
    async fn start() -> Self {
        let local = |last, port| SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), port));
        let system = Server::start(local(1, 0)).await;
        let first = Server::start(local(1, 0)).await;
        let second = Server::start(local(2, first.address.port())).await;
        system
            .knows(ZONE, soa())
            .knows("test.", soa())
            .knows("www.zone.test.", RData::CNAME(CNAME(name("cdn.test."))))
            .knows(ZONE, RData::NS(NS(name("ns1.test."))))
            .knows(ZONE, RData::NS(NS(name("ns2.test."))))
            .knows("ns1.test.", RData::A(A::new(127, 0, 0, 1)))
            .knows("ns2.test.", RData::A(A::new(127, 0, 0, 2)));
        Self { system, zone: [first, second] }
    }

    fn lookup(&self, asks_own_servers: bool) -> Lookup {
        let resolver = of_servers([self.system.address].into_iter(), true).unwrap();
        Lookup { resolver, asks_own_servers, port: self.zone[0].address.port() }
    }
}

#[tokio::test]
async fn the_zone_is_the_closest_above_that_has_a_soa() {
    let world = World::start().await;
    let lookup = world.lookup(false);
    assert_eq!(lookup.zone_of(FQDN).await.as_deref(), Ok(ZONE));
    world.system.knows("www.zone.test.", soa());
    world.system.records.lock().unwrap().remove(&("www.zone.test.".to_owned(), RecordType::CNAME));
    assert_eq!(lookup.zone_of(FQDN).await.as_deref(), Ok("www.zone.test."));
    let unknown = lookup.zone_of("_acme-challenge.a.elsewhere.").await.unwrap_err();
    assert_eq!(unknown, "DNS knows no zone that _acme-challenge.a.elsewhere. is in");
}

#[tokio::test]
async fn a_record_is_seen_when_the_last_server_of_the_zone_has_it() {
    let world = World::start().await;
    let lookup = world.lookup(false);
    world.zone[0].knows(FQDN, value("another")).knows(FQDN, value("value"));
    let waiting = tokio::spawn(async move { lookup.until_seen(ZONE, FQDN, "value", PATIENCE).await });
    let mut questions = world.zone[1].questions.clone();
    questions.wait_for(|count| *count > 0).await.unwrap();
    assert!(!waiting.is_finished());
    world.zone[1].knows(FQDN, value("value"));
    assert_eq!(waiting.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn who_does_not_have_it_is_named_when_the_patience_ends() {
    let world = World::start().await;
    world.zone[0].knows(FQDN, value("value"));
    let patience = Duration::from_millis(300);
    let unseen = world.lookup(false).until_seen(ZONE, FQDN, "value", patience).await.unwrap_err();
    assert!(unseen.starts_with("ns2.test. does not have it"), "{unseen}");
}

#[tokio::test]
async fn servers_of_the_configuration_are_asked_instead() {
    let world = World::start().await;
    world.system.knows(FQDN, value("value"));
    assert_eq!(world.lookup(true).until_seen(ZONE, FQDN, "value", PATIENCE).await, Ok(()));
    assert!(world.zone.iter().all(|server| *server.questions.borrow() == 0));
}
