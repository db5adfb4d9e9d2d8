//! A DNS server that says what a test wants (RFC 1035, over UDP).

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

const A: u16 = 1;
const SRV: u16 = 33;
const NO_SUCH_NAME: u8 = 3;
const SERVER_FAILURE: u8 = 2;

/// Knows the names that it was told. Dropped, it answers nobody.
pub struct Dns {
    address: SocketAddr,
    world: Arc<Mutex<World>>,
    answering: Option<JoinHandle<()>>,
}

/// How it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mood {
    #[default]
    Well,
    /// Every answer is a failure.
    Failing,
    Silent,
}

#[derive(Default)]
struct World {
    /// Data of records, by name and type.
    records: HashMap<(String, u16), Vec<Vec<u8>>>,
    mood: Mood,
    questions: usize,
    is_over: bool,
}

impl Default for Dns {
    fn default() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = socket.local_addr().expect("an address");
        let world = Arc::<Mutex<World>>::default();
        let own = Arc::clone(&world);
        let answering = std::thread::spawn(move || {
            let mut buffer = [0; 1500];
            while let Ok((length, client)) = socket.recv_from(&mut buffer) {
                let mut world = lock(&own);
                if world.is_over {
                    return;
                }
                world.questions += 1;
                if let Some(answer) = world.answer(&buffer[..length]) {
                    let _ = socket.send_to(&answer, client);
                }
            }
        });
        Self { address, world, answering: Some(answering) }
    }
}

impl Dns {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The name has these addresses from now on; none: it is gone.
    pub fn addresses(&self, name: &str, addresses: &[Ipv4Addr]) {
        let records = addresses.iter().map(|address| address.octets().to_vec()).collect();
        self.set(name, A, records);
    }

    /// Servers of a service, by host and port, the first one before all others.
    pub fn services(&self, name: &str, servers: &[(&str, u16)]) {
        let record = |(priority, (host, port)): (usize, &(&str, u16))| {
            let numbers = [priority as u16, 0, *port];
            [numbers.map(u16::to_be_bytes).concat(), encoded(host)].concat()
        };
        self.set(name, SRV, servers.iter().enumerate().map(record).collect());
    }

    pub fn is(&self, mood: Mood) {
        lock(&self.world).mood = mood;
    }

    /// How often it was asked.
    pub fn questions(&self) -> usize {
        lock(&self.world).questions
    }

    fn set(&self, name: &str, kind: u16, records: Vec<Vec<u8>>) {
        let mut world = lock(&self.world);
        let key = (name.to_owned(), kind);
        match records.is_empty() {
            true => drop(world.records.remove(&key)),
            false => drop(world.records.insert(key, records)),
        }
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        lock(&self.world).is_over = true;
        // Wakes the thread that answers.
        let waker = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let _ = waker.send_to(&[0], self.address);
        self.answering.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl World {
    /// To a message with one question.
    fn answer(&self, message: &[u8]) -> Option<Vec<u8>> {
        let (id, question) = (message.get(..2)?, message.get(12..)?);
        let mut name = Vec::new();
        let mut at = 0;
        while let Some(length) =
            question.get(at).map(|length| usize::from(*length)).filter(|length| *length > 0)
        {
            name.push(String::from_utf8_lossy(question.get(at + 1..at + 1 + length)?).to_lowercase());
            at += 1 + length;
        }
        let question = question.get(..at + 5)?;
        let kind = u16::from_be_bytes([question[at + 1], question[at + 2]]);
        let name = name.join(".");
        let (records, code) = match (self.mood, self.records.get(&(name.clone(), kind))) {
            (Mood::Silent, _) => return None,
            (Mood::Failing, _) => (&[][..], SERVER_FAILURE),
            (Mood::Well, Some(records)) => (records.as_slice(), 0),
            (Mood::Well, None) if self.records.keys().any(|(known, _)| *known == name) => (&[][..], 0),
            (Mood::Well, None) => (&[][..], NO_SUCH_NAME),
        };
        let count = u16::try_from(records.len()).ok()?.to_be_bytes();
        // A response with authority, of one question.
        let mut answer = [id, &[0x84, code, 0, 1], &count, &[0; 4], question].concat();
        for data in records {
            let length = u16::try_from(data.len()).ok()?.to_be_bytes();
            // The name of the question, the class of the Internet, good for no time.
            answer
                .extend([&[0xc0, 12][..], &kind.to_be_bytes(), &[0, 1, 0, 0, 0, 0], &length, data].concat());
        }
        Some(answer)
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let label = |label: &str| [&[label.len() as u8][..], label.as_bytes()].concat();
    let mut bytes: Vec<u8> = name.split('.').flat_map(label).collect();
    bytes.push(0);
    bytes
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}
