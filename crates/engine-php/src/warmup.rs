//! The requests that a worker script is given before those of clients, so that it has done by then what it does in its
//! first request: frameworks build their container, open connections and fill caches there.

use regent_engine_host::Reporter;
use regent_wire::control::PoolStart;
use regent_wire::names::WELL_KNOWN;
use regent_wire::{Head, HeadBuilder};
use std::sync::Arc;

/// Of syslog(3).
const WARNING: u8 = 4;

/// What one thread has to do before it serves.
pub struct Warmup {
    /// Encoded heads.
    requests: Vec<Vec<u8>>,
    /// How many of them the script was given; one more once it has asked for a client's.
    given: usize,
    worker: String,
    reporter: Arc<Reporter>,
}

impl Warmup {
    /// Nothing, in a pool without a worker.
    pub fn new(pool: &PoolStart, reporter: &Arc<Reporter>) -> Self {
        let worker = pool.worker.iter();
        let requests = worker.flat_map(|worker| worker.warmup.iter().map(|own| encode(&worker.env, own)));
        Self {
            requests: requests.collect(),
            given: 0,
            worker: pool.name.clone(),
            reporter: Arc::clone(reporter),
        }
    }

    /// The script is about to boot. If the last one ended in its warm-up, this one goes without: it would not come to
    /// serve.
    pub fn begin(&mut self) {
        if (1..=self.requests.len()).contains(&self.given) {
            self.given = self.requests.len();
            self.warn("its script ended in the warm-up, and is started again without");
        } else {
            self.given = 0;
        }
    }

    /// The next request of the script; `None`: it is the clients' turn.
    pub fn next(&mut self) -> Option<Head<'_>> {
        let request = self.requests.get(self.given);
        self.given = (self.given + 1).min(self.requests.len() + 1);
        request.and_then(|head| Head::parse(head))
    }

    /// Notes the status of the answer to the request that was given last.
    pub fn answered(&self, status: i32) {
        if status >= 500 {
            let head = self.given.checked_sub(1).and_then(|last| Head::parse(self.requests.get(last)?));
            let uri = head.and_then(|head| head.value(b"REQUEST_URI")).unwrap_or_default();
            self.warn(&format!("the warm-up request {} got {status}", String::from_utf8_lossy(uri)));
        }
    }

    fn warn(&self, what: &str) {
        let message = format!("worker {}: {what}", self.worker);
        self.reporter.log(WARNING, message.as_bytes(), b"");
    }
}

fn encode(environment: &[(String, String)], variables: &[(String, String)]) -> Vec<u8> {
    let mut head = HeadBuilder::new();
    environment.iter().for_each(|(name, value)| head.named(name.as_bytes(), value.as_bytes()));
    head.end_environment();
    for (name, value) in variables {
        match WELL_KNOWN.iter().position(|known| known == name) {
            Some(key) => head.known(key as u16, value.as_bytes()),
            None => head.named(name.as_bytes(), value.as_bytes()),
        }
    }
    head.build(Some(0)).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_wire::control::WorkerStart;
    use regent_wire::names::OTHER;
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixStream;

    /// Two requests, and where the server would read.
    fn warmup() -> (Warmup, BufReader<UnixStream>) {
        let (ours, servers) = UnixStream::pair().unwrap();
        let request = |uri: &str| {
            [("REQUEST_URI", uri), ("ODD", "1")].map(|(name, value)| (name.into(), value.into())).to_vec()
        };
        let pool = PoolStart {
            name: "shop".into(),
            max_requests: 0,
            max_memory: 0,
            max_age_ms: 0,
            worker: Some(WorkerStart {
                file: "/w.php".into(),
                env: vec![("TIER".into(), "web".into())],
                max_consecutive_failures: None,
                warmup: vec![request("/a"), request("/b")],
            }),
        };
        let reporter = Arc::new(Reporter::new(ours).unwrap());
        (Warmup::new(&pool, &reporter), BufReader::new(servers))
    }

    fn next(warmup: &mut Warmup) -> Option<String> {
        let uri = warmup.next()?.value(b"REQUEST_URI").unwrap();
        Some(String::from_utf8(uri.to_vec()).unwrap())
    }

    #[test]
    fn every_boot_of_the_script_has_its_warm_up() {
        let (mut warmup, _server) = warmup();
        for _ in 0..2 {
            warmup.begin();
            let given: Vec<_> = (0..5).map(|_| next(&mut warmup)).collect();
            assert_eq!(given, [Some("/a".into()), Some("/b".into()), None, None, None]);
        }
    }

    #[test]
    fn a_script_that_ended_in_its_warm_up_goes_without_until_it_has_served() {
        let (mut warmup, mut server) = warmup();
        warmup.begin();
        next(&mut warmup);
        for _ in 0..2 {
            warmup.begin();
        }
        assert_eq!(next(&mut warmup), None);
        warmup.begin();
        assert_eq!(next(&mut warmup), Some("/a".into()));
        let mut line = String::new();
        server.read_line(&mut line).unwrap();
        assert!(line.contains("worker shop: its script ended in the warm-up"), "{line}");
    }

    #[test]
    fn a_script_that_did_not_come_to_its_warm_up_has_it_at_the_next_boot() {
        let (mut warmup, _server) = warmup();
        (0..3).for_each(|_| warmup.begin());
        assert_eq!(next(&mut warmup), Some("/a".into()));
    }

    #[test]
    fn errors_are_logged_with_their_request() {
        let (mut warmup, mut server) = warmup();
        warmup.begin();
        next(&mut warmup);
        warmup.answered(404);
        next(&mut warmup);
        warmup.answered(503);
        let mut line = String::new();
        server.read_line(&mut line).unwrap();
        assert!(line.contains("worker shop: the warm-up request /b got 503"), "{line}");
    }

    #[test]
    fn the_environment_stands_before_the_variables() {
        let (mut warmup, _server) = warmup();
        let head = warmup.next().unwrap();
        assert_eq!((head.environment, head.body_length), (1, Some(0)));
        let variables: Vec<_> = head.map(|variable| (variable.full_name(), variable.key == OTHER)).collect();
        assert_eq!(variables, [(&b"TIER"[..], true), (b"REQUEST_URI", false), (b"ODD", true)]);
    }
}
