//! Descriptors to byte streams: listening, accepting, and sockets that are registered with epoll only if they have to wait.
//! What the bytes mean is not known here.
#![forbid(unsafe_code)]

mod accept;
mod busy_poll;
mod coarse_instant;
mod cork;
mod drain;
mod handover;
mod inherited;
mod keepalive;
mod lazy_socket;
mod listen;
mod prefixed;
mod proxy_protocol;
mod registration;
mod socket;
mod stream;
mod udp;
mod unix;

pub use accept::{Arrival, Listeners, local_address};
pub use busy_poll::{BusyPoll, Peers};
pub use coarse_instant::CoarseInstant;
pub use cork::Cork;
pub use drain::{Drain, DrainWatch};
pub use handover::{Handover, Received};
pub use inherited::{Inherited, InheritedSocket, Keeper, Place};
pub use keepalive::Keepalive;
pub use lazy_socket::Transport;
pub use listen::{Neighbours, listen};
pub use prefixed::Prefixed;
pub use proxy_protocol::{Addresses, BadHeader, Parsed, ProxyHeader, parse_proxy_header, read_proxy_header};
pub use registration::RegisteredSocket;
pub use socket::{Socket, Sockets};
pub use stream::Stream;
pub use udp::bind_udp;
pub use unix::{FileIdentity, SocketFile, listen_unix};
