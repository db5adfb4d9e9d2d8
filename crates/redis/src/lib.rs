//! A server of Redis or Valkey, or a cluster of them: where it is, and connections to it on which nothing is waited for
//! without end.
#![forbid(unsafe_code)]

mod client;
mod cluster;
mod connection;
mod dialer;
mod server;
mod slots;

pub use client::{Client, ClientError, is_broken};
pub use connection::Connection;
pub use server::{Address, Place, RedisServer, RedisTls, Sentinels};
