//! Fronts: listening sockets and HTTP/1.1 connections, from bytes to requests and back.
//!
//! What a request means is not known here; a service answers it.
#![forbid(unsafe_code)]

mod activity;
mod connection;
mod drain;
mod end;
mod farewell;
mod inbound;
mod interim;
mod listener;
mod registered;
mod socket;
mod unix_socket;
mod watched;

pub use connection::{Settings, serve};
pub use drain::Drain;
pub use end::Transport;
pub use farewell::Farewell;
pub use interim::Interim;
pub use listener::listen;
pub use registered::RegisteredSocket;
pub use socket::{Socket, Sockets};
pub use unix_socket::{SocketFile, listen_unix};
