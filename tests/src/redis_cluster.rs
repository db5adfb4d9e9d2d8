//! Three primaries and three replicas of a test's own that are a Redis Cluster: a replica takes over when its primary dies.

use crate::redis::Redis;
use crate::{own_address, until};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// All end when it is dropped.
pub struct RedisCluster {
    /// Primaries first, then their replicas, as long as nobody dies.
    servers: Vec<Node>,
}

struct Node {
    redis: Redis,
    /// What the others call it.
    id: String,
    /// Where the others speak to it.
    bus: SocketAddr,
}

impl RedisCluster {
    const PRIMARIES: u16 = 3;
    const SLOTS: u16 = 16_384;

    /// Their data and configurations go below the directory.
    pub fn start(directory: &Path) -> Self {
        let servers = (0..2 * Self::PRIMARIES).map(|number| Node::start(directory, number)).collect();
        let all = Self { servers };
        all.share_slots();
        all.meet();
        until("all know that all slots are there", || all.are_all("cluster_state:ok").then_some(()));
        let (primaries, replicas) = all.servers.split_at(Self::PRIMARIES.into());
        for (primary, replica) in primaries.iter().zip(replicas) {
            // It has to have heard of it.
            until("a replica knows its primary", || {
                replica.ask(&["cluster", "replicate", &primary.id]).contains("OK").then_some(())
            });
        }
        until("the replicas have what the primaries have", || {
            replicas.iter().all(|replica| replica.says("replication", "master_link_status:up")).then_some(())
        });
        until("the primaries know of their replicas", || all.know_replicas().then_some(()));
        all
    }

    /// Some of them, as a configuration has them: not the one that dies first.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().skip(1).take(2).map(|node| node.redis.address()).collect()
    }

    /// What the primary says that has the key.
    pub fn ask(&self, key: &str, arguments: &[&str]) -> String {
        self.primary_of(key).ask(arguments)
    }

    /// The keys of all primaries that fit the pattern.
    pub fn keys(&self, pattern: &str) -> String {
        self.primaries().map(|node| node.ask(&["--raw", "keys", pattern])).collect()
    }

    /// How many primaries have keys.
    pub fn primaries_with_keys(&self) -> usize {
        self.primaries().filter(|node| node.ask(&["--raw", "dbsize"]).trim() != "0").count()
    }

    /// The replicas have everything that their primaries have taken so far.
    pub fn wait_until_replicated(&self) {
        for primary in self.primaries() {
            let waited = || primary.ask(&["--raw", "wait", "1", "1000"]).trim() == "1";
            until("a replica is that far", || waited().then_some(()));
        }
    }

    /// The primary of the key is gone from one moment to the next, and its replica takes over. Tells where it was.
    pub fn kill_primary_of(&mut self, key: &str) -> SocketAddr {
        let index = self.servers.iter().position(|node| node.has(key)).expect("somebody has it");
        let mut gone = self.servers.remove(index);
        let address = gone.redis.address();
        gone.redis.kill();
        until("another one has its keys", || {
            self.servers
                .iter()
                .any(|node| node.has(key) && node.says_cluster("cluster_state:ok"))
                .then_some(())
        });
        until("all know that", || self.are_all("cluster_state:ok").then_some(()));
        address
    }

    /// The slot of the key goes to another primary, with all that is in it, without a word to clients.
    pub fn move_slot_of(&self, key: &str) {
        let slot = self.servers[0].ask(&["--raw", "cluster", "keyslot", key]).trim().to_owned();
        let source = self.primary_of(key);
        let target = self.primaries().find(|node| node.id != source.id).expect("there are several");
        expect_ok(&target.ask(&["cluster", "setslot", &slot, "importing", &source.id]));
        expect_ok(&source.ask(&["cluster", "setslot", &slot, "migrating", &target.id]));
        loop {
            let keys = source.ask(&["--raw", "cluster", "getkeysinslot", &slot, "100"]);
            let keys: Vec<&str> = keys.lines().filter(|key| !key.is_empty()).collect();
            if keys.is_empty() {
                break;
            }
            let (host, port) = (target.host(), target.port());
            let to = ["migrate", &host, &port, "", "0", "5000", "auth", Redis::PASSWORD, "keys"];
            expect_ok(&source.ask(&[&to[..], &keys].concat()));
        }
        for node in [target, source] {
            expect_ok(&node.ask(&["cluster", "setslot", &slot, "node", &target.id]));
        }
    }

    fn primaries(&self) -> impl Iterator<Item = &Node> {
        self.servers.iter().filter(|node| node.says("replication", "role:master"))
    }

    fn primary_of(&self, key: &str) -> &Node {
        self.servers.iter().find(|node| node.has(key)).expect("somebody has it")
    }

    fn share_slots(&self) {
        let each = Self::SLOTS / Self::PRIMARIES + 1;
        for (number, node) in (0..Self::PRIMARIES).zip(&self.servers) {
            let (first, end) = (number * each, ((number + 1) * each).min(Self::SLOTS));
            let (first, last) = (first.to_string(), (end - 1).to_string());
            expect_ok(&node.ask(&["cluster", "addslotsrange", &first, &last]));
        }
    }

    fn meet(&self) {
        for (number, node) in self.servers.iter().enumerate() {
            expect_ok(&node.ask(&["cluster", "set-config-epoch", &(number + 1).to_string()]));
        }
        let (first, others) = self.servers.split_first().expect("there are six");
        for other in others {
            let bus = other.bus.port().to_string();
            expect_ok(&first.ask(&["cluster", "meet", &other.host(), &other.port(), &bus]));
        }
    }

    fn are_all(&self, line: &str) -> bool {
        self.servers.iter().all(|node| node.says_cluster(line))
    }

    fn know_replicas(&self) -> bool {
        let replicas = |node: &Node| node.ask(&["--raw", "cluster", "nodes"]).matches("slave").count();
        self.servers.iter().all(|node| replicas(node) == usize::from(Self::PRIMARIES))
    }
}

impl Node {
    fn start(directory: &Path, number: u16) -> Self {
        let place = directory.join(format!("node-{number}"));
        fs::create_dir(&place).expect("the directory is ours");
        let bus = own_address();
        let bus_port = bus.port().to_string();
        let redis = Redis::start_with(
            &place,
            &[
                "--masterauth",
                Redis::PASSWORD,
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus_port,
                // Much less, and on a busy machine they take each other for dead.
                "--cluster-node-timeout",
                "3000",
                // One that has heard little of its primary takes over all the same.
                "--cluster-replica-validity-factor",
                "0",
            ],
        );
        let id = redis.ask(&["--raw", "cluster", "myid"]).trim().to_owned();
        Self { redis, id, bus }
    }

    fn ask(&self, arguments: &[&str]) -> String {
        self.redis.ask(arguments)
    }

    fn host(&self) -> String {
        self.redis.address().ip().to_string()
    }

    fn port(&self) -> String {
        self.redis.address().port().to_string()
    }

    fn says(&self, section: &str, line: &str) -> bool {
        self.ask(&["--raw", "info", section]).contains(line)
    }

    fn says_cluster(&self, line: &str) -> bool {
        self.ask(&["--raw", "cluster", "info"]).contains(line)
    }

    /// Others say who has it instead.
    fn has(&self, key: &str) -> bool {
        let answer = self.ask(&["exists", key]);
        matches!(answer.trim(), "0" | "1")
    }
}

fn expect_ok(answer: &str) {
    assert!(answer.trim() == "OK" || answer.trim() == "NOKEY", "{answer}");
}
