//! The harness of the black-box tests: the real `regent` binary, in a fresh directory, seen only from outside.
//!
//! ```no_run
//! use regent_tests::Setup;
//!
//! let server = Setup::new().file("index.php", "<?php echo 'hello';").start();
//! assert_eq!(server.get("/").text(), "hello");
//! server.stop();
//! ```
//!
//! Everything here panics with the reason when something is not as it should be: a failed expectation of the harness
//! is a failed test. Waiting is always for an event, with a deadline ([`until`]); no test sleeps for a guessed time.
#![forbid(unsafe_code)]

mod address;
mod admin;
pub mod apps;
mod bind;
pub mod browser;
pub mod cache_suite;
pub mod chaos;
pub mod compiled;
pub mod differential;
mod dns;
pub mod docs;
mod engine_user;
pub mod fastcgi;
mod forward_proxy;
mod gate;
pub mod h2;
pub mod h3;
pub mod haproxy;
mod http;
pub mod kubernetes;
mod landlock;
mod load;
mod mariadb;
pub mod mercure;
pub mod native;
pub mod nginx;
mod pebble;
pub mod php;
mod powerdns;
pub mod process;
mod redis;
mod redis_cluster;
mod redis_sentinels;
mod server;
pub mod steady;
mod tcp;
mod tls;
pub mod upstream;
mod wait;
pub mod wordpress;

pub use address::{own_address, own_addresses};
pub use admin::{Admin, Thread};
pub use bind::Bind;
pub use dns::{Dns, Mood};
pub use engine_user::give_to_php;
pub use forward_proxy::forward_proxy;
pub use gate::{Gate, STOP_AT_GATE, Visitor};
pub use http::{Conn, Request, Response, percent_encode};
pub use landlock::has_landlock;
pub use load::{in_parallel, keep_asking};
pub use mariadb::MariaDb;
pub use pebble::Pebble;
pub use powerdns::PowerDns;
pub use redis::Redis;
pub use redis_cluster::RedisCluster;
pub use redis_sentinels::RedisSentinels;
pub use server::{Server, Setup, program, regent_command};
pub use tls::{Secured, TlsClient, TlsConn};
pub use upstream::Upstream;
pub use wait::{DEADLINE, heard, pause, until, until_within};
