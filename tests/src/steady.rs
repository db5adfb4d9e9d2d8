//! A load that does not get slower when the server does: each request has its time.

use crate::{Response, TlsClient, TlsConn};
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Requests over TLS by clients with a session each, whose pages count: what is counted wrong was lost.
pub struct Steady {
    address: SocketAddr,
    name: &'static str,
    /// Between two requests of a client.
    interval: Duration,
    phases: Vec<&'static str>,
    phase: AtomicUsize,
    done: AtomicBool,
    answered: AtomicUsize,
    records: Mutex<Vec<Record>>,
}

/// A request that has ended.
struct Record {
    phase: usize,
    took: Duration,
    /// Why it failed, if it did.
    failure: Option<String>,
}

/// What one client knows of its session.
struct Visitor {
    conn: Option<TlsConn>,
    cookie: Option<String>,
    counted: u64,
    /// A request has failed, and may have been counted or not.
    is_unsure: bool,
}

impl Steady {
    /// So many requests a second by so many clients. The first of the phases has begun.
    pub fn new(
        address: SocketAddr,
        name: &'static str,
        rate: u32,
        clients: u32,
        phases: &[&'static str],
    ) -> Self {
        Self {
            address,
            name,
            interval: Duration::from_secs(1) * clients / rate,
            phases: phases.to_vec(),
            phase: AtomicUsize::new(0),
            done: AtomicBool::new(false),
            answered: AtomicUsize::new(0),
            records: Mutex::default(),
        }
    }

    pub fn begin(&self, phase: &str) {
        let place = self.phases.iter().position(|known| *known == phase).expect("it is one of the phases");
        self.phase.store(place, Ordering::Relaxed);
    }

    /// Waits until so many more requests were answered.
    pub fn wait_for_answers(&self, more: usize) {
        let enough = self.answered.load(Ordering::Relaxed) + more;
        crate::until("requests are answered", || {
            (self.answered.load(Ordering::Relaxed) >= enough).then_some(())
        });
    }

    pub fn end(&self) {
        self.done.store(true, Ordering::Relaxed);
    }

    /// One client, until the end.
    ///
    /// # Panics
    /// When a session is not what it was.
    #[expect(clippy::disallowed_methods, reason = "a load with a rate, whose times are printed")]
    pub fn visit(&self) {
        let client = TlsClient::credulous();
        let mut visitor = Visitor { conn: None, cookie: None, counted: 0, is_unsure: false };
        let mut next = Instant::now();
        while !self.done.load(Ordering::Relaxed) {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            // Who is late does not make up for it all at once.
            next = (next + self.interval).max(Instant::now() - Duration::from_secs(1));
            let begun = Instant::now();
            let failure = visitor.ask(&client, self.address, self.name).err();
            if failure.is_none() {
                self.answered.fetch_add(1, Ordering::Relaxed);
            }
            let record = Record { phase: self.phase.load(Ordering::Relaxed), took: begun.elapsed(), failure };
            self.records.lock().expect("no client panics with it").push(record);
        }
    }

    /// The failures of a phase.
    pub fn failures(&self, phase: &str) -> Vec<String> {
        let records = self.records.lock().expect("no client panics with it");
        let of_phase = records.iter().filter(|record| self.phases[record.phase] == phase);
        of_phase.filter_map(|record| record.failure.clone()).collect()
    }

    /// A line for each phase.
    pub fn figures(&self) -> String {
        let records = self.records.lock().expect("no client panics with it");
        let mut table = format!(
            "{:16} {:>8} {:>8} {:>9} {:>9} {:>9}\n",
            "phase", "requests", "failed", "p50 ms", "p99 ms", "most ms"
        );
        for (place, phase) in self.phases.iter().enumerate() {
            let of_phase: Vec<_> = records.iter().filter(|record| record.phase == place).collect();
            let mut times: Vec<_> = of_phase.iter().map(|record| record.took.as_secs_f64() * 1e3).collect();
            times.sort_by(f64::total_cmp);
            let at = |part: f64| {
                times.get(((times.len() as f64 * part) as usize).min(times.len().saturating_sub(1)))
            };
            let [p50, p99, most] = [0.5, 0.99, 1.0].map(|part| at(part).copied().unwrap_or_default());
            let failed = of_phase.iter().filter(|record| record.failure.is_some()).count();
            table +=
                &format!("{phase:16} {:>8} {failed:>8} {p50:>9.1} {p99:>9.1} {most:>9.1}\n", of_phase.len());
        }
        table
    }
}

impl Visitor {
    fn ask(&mut self, client: &TlsClient, address: SocketAddr, name: &str) -> Result<(), String> {
        let answer = self.send(client, address, name).map_err(|error| error.to_string());
        let answer = answer.and_then(|answer| match answer.status {
            200 => Ok(answer),
            status => Err(format!("{status} {}", answer.text())),
        });
        let answer = answer.inspect_err(|_| self.is_unsure = true)?;
        let count: u64 = answer.text().parse().map_err(|_| answer.text())?;
        let may_be_one_more = self.is_unsure && count == self.counted + 2;
        assert!(count == self.counted + 1 || may_be_one_more, "{count} follows {}", self.counted);
        (self.counted, self.is_unsure) = (count, false);
        let cookie = answer.header("set-cookie").and_then(|cookie| cookie.split(';').next());
        self.cookie = cookie.map(str::to_owned).or(self.cookie.take());
        Ok(())
    }

    fn send(&mut self, client: &TlsClient, address: SocketAddr, name: &str) -> io::Result<Response> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => client.try_connect(address, name)?,
        };
        let cookie = self.cookie.as_ref().map_or(String::new(), |cookie| format!("Cookie: {cookie}\r\n"));
        conn.try_send(format!("GET /count.php HTTP/1.1\r\nHost: {name}\r\n{cookie}\r\n"))?;
        let answer = conn.try_response("GET")?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if answer.header("connection") != Some("close") {
            self.conn = Some(conn);
        }
        Ok(answer)
    }
}
