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
const PATIENCE: Duration = Duration::from_secs(60);

type Question = (String, RecordType);
type Records = Arc<Mutex<HashMap<Question, Vec<RData>>>>;

/// Answers with what it was told, until the test ends.
struct Server {
    address: SocketAddr,
    records: Records,
    /// Names for which it has a failure only.
    failing: Arc<Mutex<Vec<String>>>,
    asked: Arc<Mutex<Vec<Question>>>,
    questions: watch::Receiver<usize>,
}

impl Server {
    async fn start(address: SocketAddr) -> Self {
        let socket = UdpSocket::bind(address).await.unwrap();
        let address = socket.local_addr().unwrap();
        let records = Records::default();
        let (asked, questions) = watch::channel(0);
        let (failing, log) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<Question>>>::default());
        let (known, fails, asked_for) = (Arc::clone(&records), Arc::clone(&failing), Arc::clone(&log));
        tokio::spawn(async move {
            let mut buffer = [0; 1500];
            loop {
                let (length, client) = socket.recv_from(&mut buffer).await.unwrap();
                let question = Message::from_vec(&buffer[..length]).unwrap();
                let key = (
                    question.queries[0].name().to_ascii().to_ascii_lowercase(),
                    question.queries[0].query_type(),
                );
                let mut answer = answer(&question, &known);
                if fails.lock().unwrap().contains(&key.0) {
                    answer.metadata.response_code = ResponseCode::ServFail;
                    answer.answers.clear();
                }
                asked_for.lock().unwrap().push(key);
                socket.send_to(&answer.to_vec().unwrap(), client).await.unwrap();
                asked.send_modify(|count| *count += 1);
            }
        });
        Self { address, records, failing, asked: log, questions }
    }

    fn fails_for(&self, name: &str) {
        self.failing.lock().unwrap().push(name.to_owned());
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

    fn lookup(&self) -> Lookup {
        let resolver = of_servers([self.system.address].into_iter(), true).unwrap();
        Lookup { resolver, port: self.zone[0].address.port() }
    }
}

#[tokio::test]
async fn the_zone_is_the_closest_above_that_has_a_soa() {
    let world = World::start().await;
    let lookup = world.lookup();
    assert_eq!(lookup.zone_of(FQDN).await.as_deref(), Ok(ZONE));
    world.system.knows("www.zone.test.", soa());
    world.system.records.lock().unwrap().remove(&("www.zone.test.".to_owned(), RecordType::CNAME));
    assert_eq!(lookup.zone_of(FQDN).await.as_deref(), Ok("www.zone.test."));
    let unknown = lookup.zone_of("_acme-challenge.a.elsewhere.").await.unwrap_err();
    assert_eq!(unknown, "DNS knows no zone that _acme-challenge.a.elsewhere. is in");
    // That of all that ends in `test` is nobody's who sets records.
    world.system.records.lock().unwrap().retain(|(name, _), _| name == "test.");
    assert!(lookup.zone_of(FQDN).await.is_err());
    let asked_for_itself = world.system.asked.lock().unwrap().iter().any(|(name, _)| name == FQDN);
    assert!(!asked_for_itself, "an answer that it is not there would be kept");
}

#[tokio::test]
async fn a_zone_is_not_guessed_where_dns_fails() {
    let world = World::start().await;
    world.system.fails_for("www.zone.test.");
    let error = world.lookup().zone_of(FQDN).await.unwrap_err();
    assert!(error.starts_with("DNS does not say whether www.zone.test. is a zone"), "{error}");
}

#[tokio::test]
async fn a_record_is_seen_when_the_last_server_of_the_zone_has_it() {
    let world = World::start().await;
    let lookup = world.lookup();
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
    let patience = Duration::from_secs(5);
    let unseen = world.lookup().until_seen(ZONE, FQDN, "value", patience).await.unwrap_err();
    assert!(unseen.starts_with("ns2.test. does not have it"), "{unseen}");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_not_waited_for() {
    let world = World::start().await;
    world.system.records.lock().unwrap().remove(&("ns2.test.".to_owned(), RecordType::A));
    world.zone[0].knows(FQDN, value("value"));
    assert_eq!(world.lookup().until_seen(ZONE, FQDN, "value", PATIENCE).await, Ok(()));
}

#[tokio::test]
async fn where_no_server_of_the_zone_can_be_reached_others_have_their_say() {
    let world = World::start().await;
    for name in ["ns1.test.", "ns2.test."] {
        world.system.records.lock().unwrap().remove(&(name.to_owned(), RecordType::A));
    }
    world.system.knows(FQDN, value("value"));
    assert_eq!(world.lookup().until_seen(ZONE, FQDN, "value", PATIENCE).await, Ok(()));
    assert!(world.zone.iter().all(|server| *server.questions.borrow() == 0));
}
