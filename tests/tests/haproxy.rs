//! HAProxy in front of four servers, as docs/load-balancers.md has it, with sessions in Redis, as docs/sessions.md has them:
//! what becomes of requests when servers are restarted, upgraded, frozen, removed and killed.
#![forbid(unsafe_code)]

use regent_tests::haproxy::HaProxy;
use regent_tests::steady::Steady;
use regent_tests::{Redis, Server, Setup, apps, free_address, process, regent_command, until};
use rustix::process::Signal;
use std::fs;
use std::net::SocketAddr;
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

/// Where everything is on this machine: each server has an address of its own, with the same ports.
struct Place {
    web: u16,
    check: u16,
}

impl Place {
    fn host(number: usize) -> String {
        format!("127.0.1.{}", 11 + number)
    }

    /// The configuration of the page, with the addresses of this machine and servers like the two that it has.
    fn haproxy(&self, certificates: &Path, address: SocketAddr) -> String {
        let text = block("load-balancers.md", "haproxy", 0);
        let servers: String = NAMES
            .iter()
            .enumerate()
            .map(|(number, name)| format!("\tserver {name} {}:{}\n", Self::host(number), self.web))
            .collect();
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
        let (host, web, check) = (Self::host(number), self.web, self.check);
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
        text + "http://:PORT {\n\tbind 127.0.0.1\n\troot * ROOT\n\tfile_server\n}\n"
    }
}

#[test]
#[ignore = "long: a minute of load; needs HAProxy"]
fn behind_haproxy_no_request_is_lost_but_what_a_dead_server_was_running() {
    let (Some(program), Some(extension)) = (HaProxy::program(), apps::extension("redis")) else { return };
    let setup = Setup::new();
    let redis = Redis::start(setup.directory());
    let place = Place { web: free_address().port(), check: free_address().port() };
    let mut servers: Vec<Option<Server>> = (0..NAMES.len())
        .map(|number| {
            let caddyfile = place.caddyfile(number, &redis, &extension);
            Some(Setup::new().caddyfile(&caddyfile).file("count.php", COUNT).start())
        })
        .collect();
    let certificates = setup.directory().join("certificates");
    HaProxy::write_certificate(&certificates, "shop.test");
    let address = free_address();
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
