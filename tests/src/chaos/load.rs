//! The load: requests at the times of a schedule, whether those before have been answered or not, as long as there are
//! visitors who wait for nothing.

use super::client::{Client, Line, Over};
use super::question::{Question, Route, Versions};
use super::{Clock, question::Answer};
use crate::TlsClient;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Within this a request has to be answered.
pub const IN_TIME: Duration = Duration::from_secs(3);
/// Of the requests of HTTP/1.1, one in so many goes over a new connection.
const NEW_CONNECTIONS: u64 = 8;
/// Requests a second that a visitor makes: so few that there are visitors for all that are due, also while those before wait
/// for an engine, and so many that no connection is idle for so long that a server which ends closes it.
const OF_EACH: f64 = 3.0;
const MOST_VISITORS: usize = 384;
/// Of the visitors, one in so many speaks HTTP/2.
const HTTP_2: usize = 6;
/// Visitors who share a connection of HTTP/2.
const OF_A_LINE: usize = 16;

/// A server under load.
pub struct Load<'a> {
    pub site: SocketAddr,
    pub tls: SocketAddr,
    pub versions: &'a Versions,
    pub clock: Clock,
    pub runtime: tokio::runtime::Handle,
    /// All requests are of this one, if there is one.
    only: Option<Route>,
    numbers: AtomicU64,
}

/// What became of one request. Times are since the beginning of the run.
#[derive(Debug)]
pub struct Record {
    pub number: u64,
    pub route: Route,
    pub protocol: Protocol,
    /// When it was to be sent.
    pub due: Duration,
    pub sent: Duration,
    pub ended: Duration,
    pub trouble: Option<Trouble>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 over a kept connection.
    Kept,
    /// HTTP/1.1 over a new connection.
    New,
    Http2,
}

/// Why a request was not answered as it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    Status(u16, String),
    /// There was no answer, or not all of one.
    Broken(String),
    /// Status 200, and not what was asked for.
    Wrong(String),
    Late,
}

/// Which requests are sent when.
struct Schedule {
    begin: Duration,
    interval: Duration,
    next: AtomicU64,
    is_over: AtomicBool,
}

impl<'a> Load<'a> {
    pub fn new(
        site: SocketAddr,
        tls: SocketAddr,
        versions: &'a Versions,
        clock: Clock,
        runtime: tokio::runtime::Handle,
    ) -> Self {
        Self { site, tls, versions, clock, runtime, only: None, numbers: AtomicU64::new(1) }
    }

    /// Asks for nothing else.
    pub fn only(self, route: Route) -> Self {
        Self { only: Some(route), ..self }
    }

    /// Waits until requests are answered, with TLS and without.
    pub fn wait_until_ready(&self) {
        let mut clients = [Client::http1(self.site), Client::Http2(self.line())];
        crate::until("all kinds of requests are answered", || {
            let is_answered = |client: &mut Client| self.ask(client, self.clock.now()).trouble.is_none();
            clients.iter_mut().all(|client| (0..20).all(|_| is_answered(client))).then_some(())
        });
    }

    /// How many requests a second the machine can do as it is now, with a few visitors who ask as fast as they can.
    pub fn calibrate(&self, length: Duration) -> f64 {
        const VISITORS: usize = 8;
        let end = self.clock.now() + length;
        let line = self.line();
        let counts = crate::in_parallel(VISITORS, |visitor| {
            let mut client =
                if visitor == 0 { Client::Http2(Arc::clone(&line)) } else { Client::http1(self.site) };
            let mut count = 0;
            while self.clock.now() < end {
                let record = self.ask(&mut client, self.clock.now());
                assert_eq!(record.trouble, None, "nothing has gone wrong yet: {record:?}");
                count += 1;
            }
            count
        });
        f64::from(counts.into_iter().sum::<u32>()) / length.as_secs_f64()
    }

    /// Sends so many requests a second until `meanwhile` returns; gives what became of them, by time.
    pub fn during<T>(&self, rate: f64, meanwhile: impl FnOnce() -> T) -> (Vec<Record>, T) {
        let schedule = Schedule {
            begin: self.clock.now(),
            interval: Duration::from_secs_f64(1.0 / rate),
            next: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        };
        let visitors = ((rate / OF_EACH) as usize).clamp(2 * HTTP_2, MOST_VISITORS);
        let lines: Vec<_> = (0..visitors.div_ceil(HTTP_2 * OF_A_LINE)).map(|_| self.line()).collect();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..visitors)
                .map(|visitor| {
                    let client = match visitor % HTTP_2 {
                        0 => Client::Http2(Arc::clone(&lines[visitor / HTTP_2 / OF_A_LINE])),
                        _ => Client::http1(self.site),
                    };
                    let schedule = &schedule;
                    scope.spawn(move || self.visit(client, schedule))
                })
                .collect();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(meanwhile));
            schedule.is_over.store(true, Relaxed);
            let records =
                threads.into_iter().flat_map(|thread| thread.join().expect("visitors note what fails"));
            let mut records: Vec<Record> = records.collect();
            records.sort_by_key(|record| record.due);
            (records, outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn line(&self) -> Arc<Line> {
        Line::new(self.runtime.clone(), TlsClient::credulous(), self.tls)
    }

    fn visit(&self, mut client: Client, schedule: &Schedule) -> Vec<Record> {
        let mut records = Vec::new();
        loop {
            let ticket = schedule.next.fetch_add(1, Relaxed);
            let due = schedule.begin + schedule.interval.mul_f64(ticket as f64);
            self.clock.sleep_until(due);
            if schedule.is_over.load(Relaxed) {
                return records;
            }
            records.push(self.ask(&mut client, due));
        }
    }

    fn ask(&self, client: &mut Client, due: Duration) -> Record {
        let number = self.numbers.fetch_add(1, Relaxed);
        let route = self.only.unwrap_or(Route::of(number));
        let question = Question::new(number, route, self.versions);
        let over = if question.number.is_multiple_of(NEW_CONNECTIONS) { Over::New } else { Over::Kept };
        let protocol = match (&client, over) {
            (Client::Http2(_), _) => Protocol::Http2,
            (Client::Http1 { .. }, Over::New) => Protocol::New,
            (Client::Http1 { .. }, Over::Kept) => Protocol::Kept,
        };
        let sent = self.clock.now();
        let answer = client.ask(&question, over);
        let ended = self.clock.now();
        let trouble = self.trouble(&question, answer, ended - sent);
        Record { number: question.number, route: question.route, protocol, due, sent, ended, trouble }
    }

    fn trouble(
        &self,
        question: &Question,
        answer: Result<Answer, String>,
        took: Duration,
    ) -> Option<Trouble> {
        match answer {
            Err(reason) => Some(Trouble::Broken(reason)),
            Ok(Answer { status, body, .. }) if status != 200 => {
                Some(Trouble::Status(status, String::from_utf8_lossy(&body).chars().take(200).collect()))
            }
            Ok(answer) => match question.check(&answer, self.versions) {
                Err(reason) => Some(Trouble::Wrong(reason)),
                Ok(()) => (took > IN_TIME).then_some(Trouble::Late),
            },
        }
    }
}

impl Record {
    /// From the moment when it was to be sent: a visitor that came late, because another request kept it, counts.
    pub fn latency(&self) -> Duration {
        self.ended - self.due
    }
}
