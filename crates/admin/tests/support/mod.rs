//! A server that is made up, behind a real admin listener, and a client that hides nothing.

use futures_util::future::BoxFuture;
use regent_admin::{
    Access, Activity, Adapted, AdminRequest, Before, Certificate, CertificateAuthority, CertificateSource,
    Change, Circuit, CircuitState, Control, Current, Engine, Generation, Inherited, Lane, Language, Origin,
    Percentiles, Phase, Pool, PoolStatistics, ProfileWish, Readiness, Refusal, Reload, Reloaded, Restarted,
    RouteStatistics, ScaleEvent, Shed, Source, Statistics, Task, TaskEnd, TaskOrder, TaskRun, TaskStarts,
    TaskState, Thread, ThreadCounts, ThreadStack, Threads, Traffic, Upgraded, bind,
};
use regent_profile::{Function, Profile, Stack};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};

pub const WORKER: &str = "/app/public/worker.php";

/// A URI that is a script where it is not escaped.
pub const HOSTILE_URI: &str =
    "/\"><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

/// Most threads of each pool.
const MOST: u16 = 8;
/// Longest wait of a test for anything.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A made-up server: three pools whose sizes change as they are told to.
#[derive(Default)]
pub struct Fake {
    state: Mutex<State>,
    /// While it is set, changes wait for [`Self::release`].
    held: Mutex<Option<Arc<Notify>>>,
    /// Told when a change has begun, and when it has been made.
    pub begun: Notify,
    pub made: Notify,
    pub stopped: Notify,
    polls: AtomicU64,
}

pub struct State {
    /// Classic, worker, native service.
    pub threads: [u16; 3],
    pub restarts: u32,
    pub native_restarts: u32,
    pub reloads: Vec<Reload>,
    pub refusal: Option<Refusal>,
    pub readiness: Readiness,
    pub panics: Panics,
    pub stops: u32,
    pub has_no_authority: bool,
    /// The configuration.
    pub document: Arc<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panics {
    Never,
    InChanges,
    InStatistics,
}

impl Default for State {
    fn default() -> Self {
        Self {
            threads: [2, 4, 2],
            restarts: 0,
            native_restarts: 0,
            reloads: Vec::new(),
            refusal: None,
            readiness: Readiness::Ready,
            panics: Panics::Never,
            stops: 0,
            has_no_authority: false,
            document: Arc::new(document()),
        }
    }
}

/// With what Octane looks for, an object with a name, and a secret.
fn document() -> Value {
    let worker = json!({ "name": "app", "file_name": WORKER, "num": 4 });
    let route = json!({ "@id": "hello", "handle": [{ "handler": "static_response", "body": "hello" }] });
    json!({
        "apps": {
            "frankenphp": { "num_threads": 6, "workers": [worker] },
            "http": { "servers": { "srv0": { "listen": [":8080"], "routes": [route] } } },
        },
        "storage": { "module": "redis", "password": "kept to itself" },
    })
}

impl Fake {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Lets changes wait from now on.
    pub fn hold(&self) {
        *self.held.lock().unwrap() = Some(Arc::default());
    }

    pub fn release(&self) {
        self.held.lock().unwrap().take().unwrap().notify_one();
    }

    /// The lock is not held then.
    fn panic_in(&self, place: Panics) {
        let panics = self.state().panics;
        assert_ne!(panics, place, "made to panic");
    }

    /// What there is to tell, or the refusal that was asked for.
    fn told<T: Send + 'static>(&self, value: T) -> BoxFuture<'_, Result<T, Refusal>> {
        let refusal = self.state().refusal.clone();
        Box::pin(async move { refusal.map_or(Ok(value), Err) })
    }

    async fn change<T>(&self, change: impl FnOnce(&mut State) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.begun.notify_one();
        let held = self.held.lock().unwrap().clone();
        if let Some(held) = held {
            held.notified().await;
        }
        self.panic_in(Panics::InChanges);
        let mut state = self.state();
        match state.refusal.clone() {
            Some(refusal) => Err(refusal),
            None => {
                let changed = change(&mut state);
                self.made.notify_one();
                changed
            }
        }
    }
}

fn index(pool: &str) -> usize {
    match pool {
        "classic" => 0,
        "app" => 1,
        "hello" => 2,
        other => panic!("there is no pool {other}"),
    }
}

impl Fake {
    fn all_threads(&self) -> Threads {
        let [classic, worker, native] = self.state().threads;
        let mut threads: Vec<Thread> = (0..classic + worker)
            .map(|n| Thread {
                index: n.into(),
                engine: Engine::Php,
                pool: if n < classic { "classic" } else { "app" }.into(),
                worker: (n >= classic).then(|| WORKER.into()),
                activity: Activity::Idle(Duration::from_millis(1_234)),
                requests: 40 + u64::from(n),
                memory: 2 << 20,
            })
            .collect();
        let current = |method: &str, uri: &str, seconds| Current {
            method: method.into(),
            uri: uri.into(),
            started_at: SystemTime::now() - Duration::from_secs(seconds),
        };
        threads[0].activity = Activity::Busy(current("GET", HOSTILE_URI, 2));
        let last = threads.len() - 1;
        threads[last].activity = Activity::Stuck(current("POST", "/reports/yearly?format=pdf", 75));
        threads[last - 1].activity = Activity::Starting;
        threads.extend((0..native).map(|n| Thread {
            index: n.into(),
            engine: Engine::Native,
            pool: "hello".into(),
            worker: None,
            activity: Activity::Idle(Duration::from_millis(7)),
            requests: 9,
            memory: 0,
        }));
        Threads { threads, reserved: u32::from(3 * MOST - classic - worker - native) }
    }

    fn all_pools(&self) -> Vec<Pool> {
        let [classic, worker, native] = self.state().threads.map(u32::from);
        vec![
            Pool {
                name: "classic".into(),
                engine: Engine::Php,
                worker: None,
                threads: ThreadCounts { idle: classic - 1, busy: 1, ..ThreadCounts::default() },
                least: 2,
                most: MOST,
                queued: 0,
                oldest_wait: Duration::ZERO,
            },
            Pool {
                name: "app".into(),
                engine: Engine::Php,
                worker: Some(WORKER.into()),
                threads: ThreadCounts {
                    starting: 1,
                    stuck: 1,
                    idle: worker.saturating_sub(2),
                    ..ThreadCounts::default()
                },
                least: 4,
                most: MOST,
                queued: 3,
                oldest_wait: Duration::from_micros(3_200),
            },
            Pool {
                name: "hello".into(),
                engine: Engine::Native,
                worker: None,
                threads: ThreadCounts { idle: native, ..ThreadCounts::default() },
                least: 2,
                most: MOST,
                queued: 0,
                oldest_wait: Duration::ZERO,
            },
        ]
    }
}

impl Control for Fake {
    fn answered(&self, _: AdminRequest<'_>) {}

    fn threads(&self) -> BoxFuture<'_, Result<Threads, Refusal>> {
        self.told(self.all_threads())
    }

    fn stack(&self, index: u16) -> BoxFuture<'_, Result<ThreadStack, Refusal>> {
        if index > 0 {
            return Box::pin(async move { Err(Refusal::UnknownThread(index)) });
        }
        self.told(ThreadStack { index, stack: vec!["#0 sleep()".into(), "#1 {main} /app/a.php:3".into()] })
    }

    /// A profile that shows what was wished for; another one is under way where the path says so.
    fn profile(&self, wish: ProfileWish) -> BoxFuture<'_, Result<Profile, Refusal>> {
        if wish.path == "/under-way" {
            return Box::pin(async { Err(Refusal::ProfileUnderWay) });
        }
        let pool = wish.pool.unwrap_or_else(|| "all pools".to_owned());
        self.told(Profile {
            functions: vec![Function { name: String::new(), file: pool }],
            paths: vec![wish.path],
            stacks: vec![Stack {
                path: 0,
                functions: vec![0],
                samples: wish.hertz.into(),
                cpu: wish.duration,
            }],
            duration: wish.duration,
            looks: u64::from(wish.hertz) * wish.duration.as_secs(),
            lost: 0,
        })
    }

    fn pools(&self) -> BoxFuture<'_, Result<Vec<Pool>, Refusal>> {
        self.told(self.all_pools())
    }

    fn add<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        Box::pin(self.change(move |state| {
            let threads = &mut state.threads[index(pool)];
            let total = threads.saturating_add(count.get());
            if total > MOST {
                return Err(Refusal::TooMany { threads: *threads, most: MOST });
            }
            *threads = total;
            Ok(Change { changed: count.get(), total })
        }))
    }

    fn remove<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        Box::pin(self.change(move |state| {
            let threads = &mut state.threads[index(pool)];
            if count.get() >= *threads {
                return Err(Refusal::TooFew { threads: *threads });
            }
            *threads -= count.get();
            Ok(Change { changed: count.get(), total: *threads })
        }))
    }

    fn restart_workers(&self) -> BoxFuture<'_, Result<Restarted, Refusal>> {
        Box::pin(self.change(|state| {
            state.restarts += 1;
            Ok(Restarted { restarted: state.threads[1].into() })
        }))
    }

    /// A text or a file that holds `broken` is refused.
    fn reload(&self, reload: Reload) -> BoxFuture<'_, Result<Reloaded, Refusal>> {
        let broken = match &reload.source {
            Source::Own => false,
            Source::File(path, _) => path.to_string_lossy().contains("broken"),
            Source::Text(_, text) => text.contains("broken"),
        };
        Box::pin(self.change(move |state| {
            if broken {
                return Err(Refusal::Configuration("Caddyfile:1:1: broken".into()));
            }
            if reload.replaces.as_ref().is_some_and(|expected| *expected != state.document) {
                return Err(Refusal::Replaced);
            }
            if let Source::Text(Language::Json, text) = &reload.source {
                state.document = Arc::new(serde_json::from_str(text).expect("the listener has looked at it"));
            }
            let before = reload.wait.map(|_| Before::Ended);
            state.reloads.push(reload);
            Ok(Reloaded { changed: true, warnings: Vec::new(), before })
        }))
    }

    fn restart_native(&self) -> BoxFuture<'_, Result<Restarted, Refusal>> {
        Box::pin(self.change(|state| {
            state.native_restarts += 1;
            Ok(Restarted { restarted: state.threads[2].into() })
        }))
    }

    fn adapt(&self, text: String) -> BoxFuture<'_, Result<Adapted, Refusal>> {
        Box::pin(async move {
            match text.contains("broken") {
                true => Err(Refusal::Configuration("Caddyfile:1:1: broken".into())),
                false => Ok(Adapted { result: json!({ "apps": {} }), warnings: vec![text] }),
            }
        })
    }

    fn upgrade(&self, patience: Option<Duration>) -> BoxFuture<'_, Result<Upgraded, Refusal>> {
        Box::pin(self.change(move |_| match patience {
            // As a program that is not ready in time.
            Some(patience) if patience.as_secs() == 1 => Err(Refusal::Unavailable("not ready".into())),
            _ => Ok(Upgraded { process: 4711 }),
        }))
    }

    fn readiness(&self) -> BoxFuture<'_, Readiness> {
        let readiness = self.state().readiness.clone();
        Box::pin(async { readiness })
    }

    fn metrics(&self) -> BoxFuture<'_, String> {
        let [classic, worker, _] = self.state().threads;
        Box::pin(async move { format!("frankenphp_total_threads {}\n", classic + worker) })
    }

    fn statistics(&self) -> BoxFuture<'_, Result<Statistics, Refusal>> {
        self.panic_in(Panics::InStatistics);
        let poll = self.polls.fetch_add(1, Ordering::Relaxed);
        self.told(statistics(self.all_pools(), poll))
    }

    fn upstreams(&self) -> Vec<regent_admin::Upstream> {
        vec![regent_admin::Upstream { address: "app:9000".into(), num_requests: 3, fails: 1 }]
    }

    fn authority(&self) -> BoxFuture<'_, Option<CertificateAuthority>> {
        let has_one = !self.state().has_no_authority;
        let authority = CertificateAuthority {
            id: "local".into(),
            name: "Caddy Local Authority".into(),
            root_common_name: "Caddy Local Authority - 2026 ECC Root".into(),
            intermediate_common_name: "Caddy Local Authority - ECC Intermediate".into(),
            root_certificate: "-----BEGIN CERTIFICATE-----\nROOT\n-----END CERTIFICATE-----\n".into(),
            intermediate_certificate: "-----BEGIN CERTIFICATE-----\nOTHER\n-----END CERTIFICATE-----\n"
                .into(),
        };
        Box::pin(async move { has_one.then_some(authority) })
    }

    /// One that runs, and one that has failed and waits.
    fn tasks(&self) -> Vec<Task> {
        let now = SystemTime::now();
        let running = Task {
            task: "queue".into(),
            number: 1,
            file: "/app/artisan".into(),
            arguments: vec!["queue:work".into()],
            starts: TaskStarts::Always,
            state: TaskState::Running,
            pid: Some(4711),
            started_at: Some(now - Duration::from_secs(75)),
            next_start: None,
            runs: 1,
            failures: 0,
            last: None,
        };
        let waiting = Task {
            task: "<b>nightly</b>".into(),
            starts: TaskStarts::Schedule,
            state: TaskState::Waiting,
            pid: None,
            started_at: None,
            next_start: Some(now + Duration::from_secs(3600)),
            runs: 9,
            failures: 2,
            last: Some(TaskRun {
                started_at: now - Duration::from_secs(60),
                ended_at: now - Duration::from_secs(57),
                end: TaskEnd::Failed,
                code: Some(3),
                signal: None,
            }),
            ..running.clone()
        };
        vec![running, waiting]
    }

    fn order(&self, task: &str, order: TaskOrder) -> Result<u16, Refusal> {
        match (task, order) {
            ("none", _) => Err(Refusal::UnknownTask("there is no task `none`; there is `queue`".into())),
            ("queue", TaskOrder::Run) => Err(Refusal::TaskRuns("the task `queue` is running".into())),
            _ => Ok(1),
        }
    }

    fn cache(&self) -> regent_admin::CacheFigures {
        regent_admin::CacheFigures { hits: 3, limit: 1 << 20, ..Default::default() }
    }

    fn purge(&self, _: regent_admin::CachePurge) -> BoxFuture<'_, Result<regent_admin::Purged, Refusal>> {
        Box::pin(self.change(|_| Ok(regent_admin::Purged { purged: 1 })))
    }

    fn certificates(&self) -> BoxFuture<'_, Vec<Certificate>> {
        let now = SystemTime::now();
        let served = Certificate {
            name: "shop.example.com".into(),
            issuer: "R12".into(),
            source: CertificateSource::Acme,
            not_after: Some(now + Duration::from_secs(60 * 86_400)),
            days_left: Some(60),
            last_error: None,
            next_try: Some(now + Duration::from_secs(30 * 86_400)),
        };
        let missing = Certificate {
            name: "<b>new</b>.example.com".into(),
            issuer: "https://ca.example.com/directory".into(),
            not_after: None,
            days_left: None,
            last_error: Some("the CA could not connect to port 80".into()),
            ..served.clone()
        };
        Box::pin(async { vec![served, missing] })
    }

    fn configuration(&self) -> Arc<Value> {
        Arc::clone(&self.state().document)
    }

    fn stop(&self) {
        self.state().stops += 1;
        self.stopped.notify_one();
    }
}

/// Figures that swing, so that plots have something to show.
fn statistics(pools: Vec<Pool>, poll: u64) -> Statistics {
    let swing = (poll as f64 / 7.0).sin() + 1.0;
    let pools = pools
        .into_iter()
        .enumerate()
        .map(|(n, mut pool)| {
            pool.queued = (f64::from(pool.queued) * swing * 6.0) as u32;
            pool.threads.busy += (swing * 2.0) as u32;
            PoolStatistics { pool, traffic: traffic(swing * (1.0 + n as f64)) }
        })
        .collect();
    let now = SystemTime::now();
    let seconds_ago = |seconds| now - Duration::from_secs(seconds);
    let route = |route: &str, pool: &str, deadline, load| RouteStatistics {
        route: route.into(),
        pool: pool.into(),
        deadline,
        lane: None,
        traffic: traffic(load),
    };
    let lane = |limit, inside, waiting| Some(Lane { limit, inside, waiting });
    Statistics {
        version: "0.1.0".into(),
        uptime: Duration::from_secs(93_784),
        window: Duration::from_secs(10),
        pools,
        routes: vec![
            route("GET /api/*", "app", Some(Duration::from_millis(200)), swing * 2.0),
            RouteStatistics {
                lane: lane(12, 12, 7),
                ..route("/reports/*", "app", Some(Duration::from_secs(3)), 0.4)
            },
            route("/<b>bold</b>", "classic", None, 0.0),
        ],
        scale_events: vec![
            ScaleEvent {
                at: seconds_ago(4),
                pool: "app".into(),
                from: 10,
                to: 26,
                reason: "queue head waited 3.2 ms, 96 % blocked".into(),
            },
            ScaleEvent {
                at: seconds_ago(95),
                pool: "app".into(),
                from: 12,
                to: 10,
                reason: "2 threads idle for 5 s".into(),
            },
        ],
        circuits: vec![Circuit {
            pool: "classic".into(),
            route: Some("/export".into()),
            script: "/srv/www/index.php".into(),
            state: CircuitState::Open,
            pause: Duration::from_secs(20),
            left: Duration::from_millis(12_500),
        }],
        generations: vec![Generation {
            engine: Engine::Php,
            number: 3,
            started_at: UNIX_EPOCH + Duration::from_secs(1_790_337_784),
            reason: "opcache_reset()".into(),
            confinement: Some(regent_admin::Confinement {
                enforced: vec!["no attacks on processes and the kernel".into()],
                missing: Vec::new(),
            }),
        }],
        php: Some(regent_admin::Php {
            version: "8.4.24".into(),
            package: None,
            state: regent_admin::PhpState::Below,
            floor: Some("8.4.28".into()),
        }),
    }
}

fn traffic(load: f64) -> Traffic {
    let requests = (load * 4_000.0) as u64;
    let times = |base: f64| {
        let ms = |factor: f64| Duration::from_secs_f64(base * factor * (0.6 + load) / 1e3);
        (requests > 0).then(|| Percentiles { p50: ms(1.0), p90: ms(2.2), p99: ms(4.5), max: ms(9.1) })
    };
    Traffic {
        requests,
        errors: requests / 900,
        deadline_misses: requests / 700,
        shed: Shed { queue_full: requests / 1_000, client_gone: requests / 2_000, ..Shed::default() },
        queue: times(0.4),
        execution: times(3.1),
        cpu: times(0.8),
        total: times(3.6),
    }
}

/// An admin listener on a free port, until it is dropped.
pub struct Site {
    pub fake: Arc<Fake>,
    pub address: SocketAddr,
    end: Option<watch::Sender<Phase>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Site {
    pub fn start() -> Self {
        Self::with_origins(&[])
    }

    pub fn with_origins(origins: &[&str]) -> Self {
        let origins: Vec<Origin> = origins.iter().map(|origin| origin.parse().unwrap()).collect();
        let access = Access { origins, ..Access::default() };
        let listeners = bind(&"127.0.0.1:0".parse().unwrap(), &Inherited::default()).unwrap();
        let address = listeners.tcp_addresses()[0];
        let fake = Arc::new(Fake::default());
        let control = Arc::clone(&fake);
        let (end, ended) = watch::channel(Phase::Serving);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(regent_admin::serve(listeners, access, control, ended)).unwrap();
        });
        Self { fake, address, end: Some(end), thread: Some(thread) }
    }

    /// Tells the listener to stop, and goes on.
    pub fn begin_stop(&mut self) {
        drop(self.end.take());
    }

    pub fn get(&self, target: &str) -> Response {
        self.send("GET", target, &[], "")
    }

    pub fn call(&self, method: &str, target: &str) -> Response {
        self.send(method, target, &[], "")
    }

    /// A request on a connection of its own. `fields` that name Host replace it.
    pub fn send(&self, method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> Response {
        let mut client = self.connect();
        let sent = client.write_all(self.request(method, target, fields, body).as_bytes());
        sent.unwrap_or_else(|error| panic!("sending {method} {target}, {} bytes: {error}", body.len()));
        Response::read(&mut BufReader::new(client), method)
    }

    pub fn connect(&self) -> TcpStream {
        let client = TcpStream::connect(self.address).unwrap();
        client.set_read_timeout(Some(DEADLINE)).unwrap();
        client
    }

    pub fn request(&self, method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> String {
        let mut head = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
        if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in fields {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head + "\r\n" + body
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.begin_stop();
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the listener panicked");
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    pub fn read(reader: &mut impl BufRead, method: &str) -> Self {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {line:?}"));
        let mut headers = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Self { status, headers, body: String::new() };
        let length = response.header("content-length").map_or(0, |length| length.parse().unwrap());
        if method != "HEAD" {
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            response.body = String::from_utf8(body).unwrap();
        }
        response
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_str(&self.body).unwrap()
    }

    /// The sentence of an error.
    pub fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_else(|| panic!("no error: {self:?}")).to_owned()
    }
}
