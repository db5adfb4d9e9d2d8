//! A server of Redis or Valkey: where it is, and connections to it on which nothing is waited for without end.
#![forbid(unsafe_code)]

mod client;
mod dialer;
mod server;

pub use client::{Client, ClientError, is_broken};
pub use server::{Address, Place, RedisServer, RedisTls, Sentinels};
