//! HAProxy in front of four servers, as docs/load-balancers.md has it, with sessions in Redis, as docs/sessions.md has them:
//! what becomes of requests when servers are restarted, upgraded, frozen, removed and killed. And with TLS passed on, and
//! certificates in Redis, as docs/https.md has them.
#![forbid(unsafe_code)]

use regent_tests::haproxy::HaProxy;
use regent_tests::steady::Steady;
use regent_tests::{
    Pebble, Redis, Server, Setup, TlsClient, apps, own_address, own_addresses, process, regent_command, until,
};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
const NAMES: [&str; 4] = ["one", "two", "three", "four"];
const CLIENTS: u32 = 16;
/// Requests a second, unless `REGENT_FLEET_RATE` says another number.
const RATE: u32 = 300;
/// Requests that each state is watched for.
const ENOUGH: usize = 600;
const PHASES: [&str; 7] = [
    "all four",
    "rolling restart",
    "rolling upgrade",
    "one frozen",
    "one removed",
    "one killed",
    "two are left",
];

/// Takes some milliseconds, so that there is always something running.
const COUNT: &str = "<?php
    if (!@session_start()) { http_response_code(500); exit('no session'); }
    usleep(4000);
    echo $_SESSION['count'] = ($_SESSION['count'] ?? 0) + 1;";

/// Where everything is on this machine: each server has an IP address of its own, with the same ports.
struct Place {
    hosts: [IpAddr; 4],
    web: u16,
    check: u16,
}

/// The same where TLS is passed on.
struct TlsPlace {
    hosts: [IpAddr; 4],
    tls: u16,
    plain: u16,
    check: u16,
}

impl TlsPlace {
    fn haproxy(&self, tls: SocketAddr, plain: SocketAddr) -> String {
        let first = block("load-balancers.md", "haproxy", 0);
        let (defaults, _) = first.split_once("frontend web").expect("the page begins with the defaults");
        let text = block("load-balancers.md", "haproxy", 1);
        let servers = |port: u16| {
            let line = |(name, host)| format!("\tserver {name} {host}:{port}\n");
            NAMES.iter().zip(self.hosts).map(line).collect::<String>()
        };
        let of_page = |port: u16| format!("\tserver one 10.0.0.11:{port}\n\tserver two 10.0.0.12:{port}\n");
        let text = replace(&text, &of_page(443), &servers(self.tls));
        let text = replace(&text, &of_page(80), &servers(self.plain));
        let text = replace(&text, "check port 8081", &format!("check port {}", self.check));
        let text = replace(&text, "bind :443", &format!("bind {tls}"));
        defaults.to_owned() + &replace(&text, "bind :80", &format!("bind {plain}"))
    }

    /// TLS and the PROXY protocol as one page has them, the storage as another, and the checks of the first.
    fn caddyfile(&self, number: usize, redis: &Redis, pebble: &Pebble) -> String {
        let (host, Self { tls, plain, check, .. }) = (self.hosts[number], self);
        let storage = block("https.md", "caddyfile", storage_of_page());
        let storage = between(&storage, "    storage redis {\n", "    }\n");
        let storage = replace(storage, "redis.internal:6379", &redis.address().to_string());
        let storage = replace(&storage, "{$REDIS_PASSWORD}", Redis::PASSWORD);
        let storage = replace(&storage, "{$REDIS_ENCRYPTION_KEY}", "0123456789abcdef0123456789abcdef");
        let global = format!(
            "{{\n\tadmin ADMIN\n\thttp_port {plain}\n\thttps_port {tls}\n\tdefault_bind {host}\n\
             \tacme_ca {}\n\tacme_ca_root {}\n\tregent {{\n\t\tnum_threads 2\n\t}}\n\tstorage redis {{\n{storage}\t}}\n",
            pebble.url(),
            pebble.certificate().display(),
        );
        let text = block("load-balancers.md", "caddyfile", 1).replacen("{\n", &global, 1);
        let text = replace(&text, "servers :443", &format!("servers {host}:{tls}"));
        let text = replace(&text, "10.0.0.0/8", "127.0.0.0/8");
        let text = replace(&text, "shop.example.com", "shop.test");
        let text = replace(&text, "root * public", "root * ROOT");
        let checks = block("load-balancers.md", "caddyfile", 0);
        let (_, checks) = checks.split_once("http://:8081").expect("the page has a site for checks");
        let checks = replace(checks, "/run/regent", "DIRECTORY");
        let checks = replace(&checks, "127.0.0.1:2019", "ADMIN");
        format!("{text}http://:{check}{checks}http://:PORT {{\n\tbind LOOPBACK\n\trespond ready\n}}\n")
    }
}

/// Of the four servers.
fn hosts() -> [IpAddr; 4] {
    std::array::from_fn(|_| own_address().ip())
}

/// The block of docs/https.md that has a storage in Redis.
fn storage_of_page() -> usize {
    let has_it = |index: &usize| block("https.md", "caddyfile", *index).contains("storage redis");
    (0..20).find(has_it).expect("the page has it")
}

impl Place {
    /// The configuration of the page, with the addresses of this machine and servers like the two that it has.
    fn haproxy(&self, certificates: &Path, address: SocketAddr) -> String {
        let text = block("load-balancers.md", "haproxy", 0);
        let line = |(name, host)| format!("\tserver {name} {host}:{}\n", self.web);
        let servers: String = NAMES.iter().zip(self.hosts).map(line).collect();
        let of_page = "\tserver one 10.0.0.11:8080\n\tserver two 10.0.0.12:8080\n";
        let text = replace(&text, of_page, &servers);
        let text = replace(&text, "check port 8081", &format!("check port {}", self.check));
        replace(
            &text,
            "bind :443 ssl crt /etc/haproxy/certs/",
            &format!("bind {address} ssl crt {}/", certificates.display()),
        )
    }

    /// The same of a server, whose PHP has the sessions of the other page.
    fn caddyfile(&self, number: usize, redis: &Redis, extension: &Path) -> String {
        let (host, web, check) = (self.hosts[number], self.web, self.check);
        let sessions = block("sessions.md", "caddyfile", 0);
        let settings = between(&sessions, "\t\tphp_ini {\n", "\t\t}\n");
        let settings = replace(settings, "extension redis", &format!("extension {}", extension.display()));
        let settings = replace(&settings, "redis.internal:6379", &redis.address().to_string());
        let settings = replace(&settings, "{$REDIS_PASSWORD}", &Redis::PASSWORD.replace(' ', "%20"));
        // What a killed server has locked is not to be waited for so long.
        let settings = replace(&settings, "lock_expire 40", "lock_expire 4");
        let global = format!(
            "{{\n\tadmin ADMIN\n\tregent {{\n\t\tnum_threads 4\n\t\tphp_ini {{\n{settings}\t\t}}\n\t}}\n"
        );
        let text = block("load-balancers.md", "caddyfile", 0);
        let text = text.replacen("{\n", &global, 1);
        let text = replace(&text, "servers :8080", &format!("servers {host}:{web}"));
        let text = replace(&text, "10.0.0.0/8", "127.0.0.0/8");
        let text = replace(&text, "http://:8080 {\n", &format!("http://:{web} {{\n\tbind {host}\n"));
        let text = replace(&text, "http://:8081 {\n", &format!("http://:{check} {{\n\tbind {host}\n"));
        let text = replace(&text, "root * public", "root * ROOT");
        let text = replace(&text, "/run/regent", "DIRECTORY");
        let text = replace(&text, "127.0.0.1:2019", "ADMIN");
        text + "http://:PORT {\n\tbind LOOPBACK\n\troot * ROOT\n\tfile_server\n}\n"
    }
}

#[test]
#[ignore = "long: a minute of load; needs HAProxy"]
fn behind_haproxy_no_request_is_lost_but_what_a_dead_server_was_running() {
    let (Some(program), Some(extension)) = (HaProxy::program(), apps::extension("redis")) else { return };
    let setup = Setup::new();
    let redis = Redis::start(setup.directory());
    let [web, check] = own_addresses().map(|address| address.port());
    let place = Place { hosts: hosts(), web, check };
    let mut servers: Vec<Option<Server>> = (0..NAMES.len())
        .map(|number| {
            let caddyfile = place.caddyfile(number, &redis, &extension);
            Some(Setup::new().caddyfile(&caddyfile).file("count.php", COUNT).start())
        })
        .collect();
    let certificates = setup.directory().join("certificates");
    HaProxy::write_certificate(&certificates, "shop.test");
    let address = own_address();
    let configuration = place.haproxy(&certificates, address);
    let haproxy = HaProxy::start(&program, setup.directory(), &configuration, address);
    NAMES.iter().for_each(|name| haproxy.wait_for(name, "UP"));

    let rate = std::env::var("REGENT_FLEET_RATE").ok().and_then(|rate| rate.parse().ok()).unwrap_or(RATE);
    let load = Steady::new(address, "shop.test", rate, CLIENTS, &PHASES);
    std::thread::scope(|scope| {
        let visitors: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| load.visit())).collect();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            go_through(&load, &haproxy, &mut servers);
        }));
        load.end();
        let joined: Vec<_> = visitors.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        println!("{rate} requests a second by {CLIENTS} clients\n{}", load.figures());
        if let Some(panic) = joined.into_iter().chain([outcome]).find_map(Result::err) {
            std::panic::resume_unwind(panic);
        }
    });

    for phase in PHASES.iter().filter(|phase| **phase != "one killed") {
        assert_eq!(load.failures(phase), Vec::<String>::new(), "{phase}");
    }
    let killed = load.failures("one killed");
    assert!(killed.len() <= CLIENTS as usize, "each client had one request under way: {killed:?}");
    println!("lost with the one that was killed: {killed:?}");
    drop(haproxy);
    servers.into_iter().flatten().for_each(Server::stop);
}

#[test]
fn four_servers_behind_haproxy_share_one_certificate_also_when_one_is_killed() {
    let Some(program) = HaProxy::program() else { return };
    let setup = Setup::new();
    let [plain, tls] = own_addresses();
    // The CA knows HAProxy alone.
    let Some(pebble) = Pebble::start(setup.directory(), [plain, tls]) else { return };
    let redis = Redis::start(setup.directory());
    let [one, two, three] = own_addresses().map(|address| address.port());
    let place = TlsPlace { hosts: hosts(), tls: one, plain: two, check: three };
    // Before there is anything to be ordered for, so that the CA finds everybody.
    let haproxy = HaProxy::start(&program, setup.directory(), &place.haproxy(tls, plain), tls);
    let start = |(number, name): (usize, &&str)| {
        let caddyfile = place.caddyfile(number, &redis, &pebble);
        let data = "DIRECTORY/data";
        let setup = Setup::new().caddyfile(&caddyfile).env("XDG_DATA_HOME", data);
        setup.file("index.php", format!("<?php echo '{name} ', $_SERVER['REMOTE_ADDR'];")).start()
    };
    let mut servers: Vec<Server> = NAMES.iter().enumerate().map(start).collect();
    NAMES.iter().for_each(|name| haproxy.wait_for(name, "UP"));
    let client = pebble.client();
    answer_all(&client, tls, &NAMES);
    // An order may fail as long as HAProxy has seen no server.
    assert_eq!(pebble.issued(), 1, "{}", pebble.log());

    let killed = servers.remove(0);
    let (pid, engine) = (killed.pid(), killed.engine());
    killed.signal(Signal::KILL);
    until("the server and its engine are gone", || {
        (!process::runs(pid, "regent") && !process::runs(engine, "regent-php")).then_some(())
    });
    haproxy.wait_for("one", "DOWN");
    answer_all(&client, tls, &NAMES[1..]);
    assert_eq!(pebble.issued(), 1, "{}", pebble.log());
    drop(haproxy);
    servers.into_iter().for_each(Server::stop);
}

/// Each of them answers, with the certificate, and knows the client's address.
fn answer_all(client: &TlsClient, address: SocketAddr, names: &[&str]) {
    let expected: BTreeSet<String> = names.iter().map(|name| format!("{name} 127.0.0.1")).collect();
    let mut seen = BTreeSet::new();
    until(&format!("{names:?} answer"), || {
        // There may be no certificate yet.
        seen.extend(ask(client, address).ok());
        (seen == expected).then_some(())
    });
}

/// On a connection of its own.
fn ask(client: &TlsClient, address: SocketAddr) -> std::io::Result<String> {
    let mut conn = client.try_connect(address, "shop.test")?;
    conn.try_send("GET / HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n")?;
    let answer = conn.try_response("GET")?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
    Ok(answer.expect(200).text().to_owned())
}

fn go_through(load: &Steady, haproxy: &HaProxy, servers: &mut [Option<Server>]) {
    load.wait_for_answers(ENOUGH);

    load.begin("rolling restart");
    for (name, server) in NAMES.iter().zip(servers.iter_mut()) {
        let running = server.take().expect("it runs");
        take_out(haproxy, name, &running);
        let restarted = running.restart(|directory| {
            fs::remove_file(directory.join("drain")).expect("it was there");
            let mut command = regent_command(directory);
            command.args(["run", "--config"]).arg(directory.join("Caddyfile"));
            command
        });
        haproxy.wait_for(name, "UP");
        *server = Some(restarted);
    }
    load.wait_for_answers(ENOUGH);

    load.begin("rolling upgrade");
    for server in servers.iter_mut().flatten() {
        let admin = server.admin().address().to_string();
        let output = regent_command(server.directory()).args(["upgrade", "--address", &admin]).output();
        let output = output.expect("regent can be run");
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        let pid = said.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok());
        server.follow(pid.unwrap_or_else(|| panic!("{said} names no process")));
    }
    load.wait_for_answers(ENOUGH);

    load.begin("one frozen");
    let frozen = servers[2].as_ref().expect("it runs");
    frozen.signal(Signal::STOP);
    haproxy.wait_for("three", "DOWN");
    load.wait_for_answers(ENOUGH);
    frozen.signal(Signal::CONT);
    haproxy.wait_for("three", "UP");
    load.wait_for_answers(ENOUGH);

    load.begin("one removed");
    let removed = servers[1].take().expect("it runs");
    take_out(haproxy, "two", &removed);
    removed.stop();
    load.wait_for_answers(ENOUGH);

    load.begin("one killed");
    let killed = servers[0].take().expect("it runs");
    let (pid, engine) = (killed.pid(), killed.engine());
    killed.signal(Signal::KILL);
    until("the server and its engine are gone", || {
        (!process::runs(pid, "regent") && !process::runs(engine, "regent-php")).then_some(())
    });
    haproxy.wait_for("one", "DOWN");
    load.wait_for_answers(ENOUGH);

    load.begin("two are left");
    load.wait_for_answers(ENOUGH);
}

/// As the page says: HAProxy knows before it stops.
fn take_out(haproxy: &HaProxy, name: &str, server: &Server) {
    fs::write(server.directory().join("drain"), "").expect("the directory is ours");
    haproxy.wait_for(name, "DOWN");
}

/// A block of code of a page, the first of that language or a later one.
fn block(page: &str, language: &str, index: usize) -> String {
    let text = fs::read_to_string(Path::new(DOCS).join(page)).expect("the page is there");
    let fence = format!("```{language}\n");
    let block = text.split(&fence).nth(index + 1).expect("it has such a block");
    block.split("```").next().unwrap_or_default().to_owned()
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(begin).expect("it begins there");
    rest.split_once(end).expect("it ends there").0
}

/// What is replaced is in the page: otherwise this is a test of something else.
fn replace(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the page has no {from:?}");
    text.replace(from, to)
}
