//! A primary, a replica and Sentinels of a test's own, which choose the other one when the primary dies.

use crate::redis::{Redis, ask};
use crate::{own_address, until};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Child;

/// All end when it is dropped.
pub struct RedisSentinels {
    /// The primary first, as long as it lives.
    servers: Vec<Redis>,
    sentinels: Vec<(SocketAddr, Process)>,
}

struct Process(Child);

impl RedisSentinels {
    /// What the Sentinels call the primary.
    pub const NAME: &str = "shop";
    /// What clients of the Sentinels have to say, which is not what those of the servers have.
    pub const PASSWORD: &str = "that of the Sentinels";
    const NUMBER: usize = 3;

    /// Their data and configurations go below the directory.
    pub fn start(directory: &Path) -> Self {
        let place = |name: &str| {
            let place = directory.join(name);
            fs::create_dir(&place).expect("the directory is ours");
            place
        };
        let primary = Redis::start_with(&place("primary"), &["--masterauth", Redis::PASSWORD]);
        let (host, port) = (primary.address().ip().to_string(), primary.address().port().to_string());
        let of_primary = ["--masterauth", Redis::PASSWORD, "--replicaof", &host, &port];
        let replica = Redis::start_with(&place("replica"), &of_primary);
        until("the replica has what the primary has", || {
            replica.ask(&["info", "replication"]).contains("master_link_status:up").then_some(())
        });
        let sentinels = (0..Self::NUMBER).map(|number| {
            let address = own_address();
            let file = place(&format!("sentinel-{number}")).join("sentinel.conf");
            fs::write(&file, configuration(address, primary.address())).expect("the directory is ours");
            (address, Process(crate::redis::sentinel(&file, address)))
        });
        let all = Self { sentinels: sentinels.collect(), servers: vec![primary, replica] };
        until("the Sentinels know each other and the replica", || all.know_all().then_some(()));
        all
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sentinels.iter().map(|(address, _)| *address).collect()
    }

    /// What the primary has.
    pub fn ask(&self, arguments: &[&str]) -> String {
        self.servers[0].ask(arguments)
    }

    /// The replica has everything that the primary has taken so far.
    pub fn wait_until_replicated(&self) {
        let offset = |server: &Redis, field: &str| {
            let text = server.ask(&["info", "replication"]);
            let line = text.lines().find_map(|line| line.strip_prefix(field)).map(str::trim);
            line.and_then(|number| number.parse::<u64>().ok())
        };
        let until_here = offset(&self.servers[0], "master_repl_offset:").expect("a primary says that");
        until("the replica is that far", || {
            offset(&self.servers[1], "slave_repl_offset:").filter(|offset| *offset >= until_here)
        });
    }

    /// The primary is gone from one moment to the next, and one of the Sentinels too; the others choose the replica.
    pub fn kill_primary(&mut self) {
        self.sentinels.remove(0);
        self.servers.remove(0).kill();
        let expected = self.servers[0].address().port().to_string();
        until("another primary is chosen", || {
            self.sentinels
                .iter()
                .all(|(address, _)| {
                    let arguments = ["--raw", "sentinel", "get-master-addr-by-name", Self::NAME];
                    ask(*address, Self::PASSWORD, &arguments).lines().nth(1) == Some(expected.as_str())
                })
                .then_some(())
        });
        until("it knows that it is one", || self.ask(&["role"]).contains("master").then_some(()));
    }

    fn know_all(&self) -> bool {
        self.sentinels.iter().all(|(address, _)| {
            let known = ask(*address, Self::PASSWORD, &["--raw", "sentinel", "master", Self::NAME]);
            let lines: Vec<&str> = known.lines().collect();
            let has = |field: &str, number: usize| {
                lines.windows(2).any(|pair| pair[0] == field && pair[1].parse() == Ok(number))
            };
            has("num-slaves", 1) && has("num-other-sentinels", Self::NUMBER - 1)
        })
    }
}

fn configuration(own: SocketAddr, primary: SocketAddr) -> String {
    let (name, password) = (RedisSentinels::NAME, RedisSentinels::PASSWORD);
    let own_ip = own.ip();
    format!(
        "bind {own_ip}\nbind-source-addr {own_ip}\nport {}\nrequirepass \"{password}\"\nsentinel sentinel-pass \"{password}\"\n\
         sentinel monitor {name} {} {} 2\nsentinel auth-pass {name} \"{}\"\n\
         sentinel down-after-milliseconds {name} 1000\nsentinel failover-timeout {name} 5000\n",
        own.port(),
        primary.ip(),
        primary.port(),
        Redis::PASSWORD,
    )
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
