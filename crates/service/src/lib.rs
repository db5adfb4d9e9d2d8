//! The life of a request, from its head to the end of its response.
//!
//! A [`Service`] answers the requests of one listening address on one I/O thread: it asks the sites what to do, and carries that
//! out, by a gateway to an engine, another server, a hub, the cache, or work outside of the I/O threads. How requests come, and
//! how engines live, is not known here.
#![forbid(unsafe_code)]

mod acme_challenge;
pub mod counted;
mod departed;
mod expected_fields;
mod head_check;
mod hub_gateway;
mod hubs;
mod in_use;
mod limits;
mod probe;
mod refusals;
mod rendering;
pub mod scrapes;
mod service;
mod turns;

pub use expected_fields::ExpectedFields;
pub use hub_gateway::HubGateway;
pub use hubs::{Hubs, OpenHubs};
pub use in_use::{InUse, Unused};
pub use limits::body_limits;
pub use probe::probe;
pub use service::{Accepted, ResponseFuture, Service};
pub use turns::Turns;
