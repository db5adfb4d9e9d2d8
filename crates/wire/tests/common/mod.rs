//! What the tests over real memory share: a server of one or more ports, engines, and an echo script.

use regent_wire::names::key;
use regent_wire::{
    BodyState, ClientGone, Completion, End, Engine, EngineMemory, EngineThread, Frame, Geometry, Head,
    HeadBuilder, HeadKind, LogLine, ReadError, Region, ResponseHead, SlotTable, Token, Trailers,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Long enough for the slowest machine, short enough for a test that hangs.
const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

pub const SMALL: Geometry = Geometry {
    io_threads: 1,
    slots_per_io: 64,
    pools: 2,
    threads: 8,
    head_capacity: 4096,
    request_capacity: 4096,
    response_capacity: 4096,
    frame_capacity: 131_072,
};

/// One I/O thread of a server.
pub struct Io {
    pub backend: Arc<EngineMemory>,
    pub port: SlotTable,
    pub doorbell: OwnedFd,
}

/// All that came for one request.
#[derive(Default, Debug)]
pub struct Response {
    pub informational: Vec<ResponseHead>,
    pub head: Option<ResponseHead>,
    pub body: Vec<u8>,
    pub log: Vec<LogLine>,
    pub trailers: Option<Trailers>,
    pub completion: Option<Completion>,
}

impl Io {
    /// A server of one I/O thread.
    pub fn new(geometry: Geometry) -> Self {
        Self::of(0, backend(geometry), eventfd())
    }

    pub fn of(io: usize, backend: Arc<EngineMemory>, doorbell: OwnedFd) -> Self {
        let slots = backend.region().geometry().slots_per_io as usize;
        Self { backend, port: SlotTable::new(io, slots), doorbell }
    }

    /// An engine over this memory, for a server of one I/O thread.
    pub fn engine(&self) -> Arc<Engine> {
        engine(&self.backend, [&self.doorbell])
    }

    /// Queues a request whose body is complete once `body` is sent.
    pub fn submit(&mut self, head: &[u8], pool: usize) -> Token {
        let token = self.port.acquire(&self.backend, head).unwrap().expect("a free slot");
        self.port.submit(token, pool, regent_wire::clock::now()).unwrap();
        token
    }

    /// Sleeps until there is news, or a slot came back; returns whose news.
    pub fn wait(&mut self) -> Vec<Token> {
        self.wait_for(&PATIENCE).expect("no news for too long")
    }

    /// As `wait`, for so long.
    pub fn wait_for(&mut self, time: &Timespec) -> Option<Vec<Token>> {
        let mut tokens = Vec::new();
        let in_use = self.port.in_use();
        self.port.park(&self.backend);
        self.port.drain(&self.backend, |token| tokens.push(token));
        if tokens.is_empty() && self.port.in_use() == in_use {
            let mut polled = [PollFd::new(&self.doorbell, PollFlags::IN)];
            if rustix::event::poll(&mut polled, Some(time)).unwrap() == 0 {
                return None;
            }
            let _ = rustix::io::read(&self.doorbell, &mut [0; 8]);
            self.port.drain(&self.backend, |token| tokens.push(token));
        }
        self.port.unpark(&self.backend);
        Some(tokens)
    }

    /// Waits until no slot is in use any more. Nobody rings for a slot that comes back after the response.
    pub fn wait_until_empty(&mut self) {
        while self.port.in_use() > 0 {
            self.wait_for(&short());
        }
    }

    /// Sends the body while it reads the response, and gives the slot back.
    pub fn finish(&mut self, token: Token, body: &[u8]) -> Result<Response, ReadError> {
        let mut response = Response::default();
        let mut sent = 0;
        loop {
            if sent < body.len() || sent == 0 {
                sent += self.port.write_body(token, &body[sent..])?;
                if sent == body.len() {
                    self.port.end_body(token, BodyState::Complete)?;
                    sent = sent.max(1);
                }
            }
            while let Some(frame) = self.port.read(token)? {
                if response.add(frame) {
                    self.port.release(token);
                    return Ok(response);
                }
            }
            self.wait();
        }
    }
}

impl Response {
    /// Whether that was the end.
    pub fn add(&mut self, frame: Frame) -> bool {
        assert!(self.completion.is_none(), "a frame after the end");
        match frame {
            Frame::Head(head) => assert!(self.head.replace(head).is_none(), "two heads"),
            Frame::Informational(head) => self.informational.push(head),
            Frame::Body(part) => self.body.extend(part),
            Frame::Log(line) => self.log.push(line),
            Frame::Trailers(fields) => assert!(self.trailers.replace(fields).is_none(), "trailers twice"),
            Frame::End(End { completion, .. }) => self.completion = Some(completion),
        }
        self.completion.is_some()
    }
}

/// For what nobody rings.
pub fn short() -> Timespec {
    Timespec { tv_sec: 0, tv_nsec: 1_000_000 }
}

pub fn backend(geometry: Geometry) -> Arc<EngineMemory> {
    let region = Region::create(geometry).unwrap();
    for pool in 0..geometry.pools as usize {
        region.tune(pool, regent_wire::Scheduling::Spread, 1, 0);
    }
    Arc::new(EngineMemory::new(region))
}

pub fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap()
}

/// Opens the memory as an engine does.
pub fn engine<'a>(backend: &EngineMemory, doorbells: impl IntoIterator<Item = &'a OwnedFd>) -> Arc<Engine> {
    let memory = backend.region().file().try_clone_to_owned().unwrap();
    let doorbells = doorbells.into_iter().map(|doorbell| doorbell.try_clone().unwrap()).collect();
    Arc::new(Engine::new(0, Region::open(memory).unwrap(), doorbells))
}

/// A head that says what the request is called.
pub fn head(name: &str, body_length: Option<u64>) -> Vec<u8> {
    let mut builder = HeadBuilder::new();
    builder.known(key("REQUEST_URI"), name.as_bytes());
    builder.build(body_length).to_vec()
}

/// What `head` was given.
pub fn name(head: Head<'_>) -> String {
    let uri = key("REQUEST_URI");
    let mut variables = head.filter(|variable| variable.key == uri);
    let value = variables.next().expect("a request of these tests").value;
    String::from_utf8(value.to_vec()).unwrap()
}

/// Runs a script for every request until the thread has to end; returns the names of the requests.
pub fn start(
    engine: &Arc<Engine>,
    index: usize,
    pool: usize,
    mut script: impl FnMut(&mut EngineThread, &str) -> Result<(), ClientGone> + Send + 'static,
) -> JoinHandle<Vec<String>> {
    let engine = Arc::clone(engine);
    std::thread::spawn(move || {
        let mut thread = EngineThread::new(engine, index, pool);
        let mut names = Vec::new();
        while let Some(head) = thread.next_request() {
            let name = name(head);
            let _ = script(&mut thread, &name);
            thread.release();
            names.push(name);
        }
        names
    })
}

/// Answers with the request's name in the head and its body as the body.
pub fn echo(thread: &mut EngineThread, name: &str) -> Result<(), ClientGone> {
    let fields = [(&b"X-Name"[..], name.as_bytes())];
    thread.head(HeadKind::Final, 200, b"", fields.into_iter())?;
    let mut buffer = [0; 3000];
    loop {
        match thread.read_body(&mut buffer) {
            Ok(0) => break,
            Ok(count) => thread.body(&buffer[..count])?,
            Err(_) => {
                thread.end(Completion::Truncated)?;
                thread.publish();
                return Ok(());
            }
        }
    }
    thread.end(Completion::Complete)?;
    thread.publish();
    Ok(())
}

/// The value of `X-Name`.
pub fn answered_name(head: &ResponseHead) -> String {
    let (_, value) = head.fields().find(|(name, _)| *name == b"X-Name").expect("an answer of `echo`");
    String::from_utf8(value.to_vec()).unwrap()
}

/// Bytes that differ from place to place and from seed to seed.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random(seed | 1);
    (0..length.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).take(length).collect()
}

/// Marsaglia's xorshift: enough for tests, and repeatable.
pub struct Random(pub u64);

impl Random {
    /// With the seed of the environment, or else the usual one. A test that fails prints which it was.
    pub fn seeded(usual: u64) -> Self {
        let seed = std::env::var("REGENT_WIRE_SEED").map_or(usual, |text| text.parse().expect("a number"));
        println!("REGENT_WIRE_SEED={seed}");
        // With zero it would stay zero.
        Self(seed.max(1))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
