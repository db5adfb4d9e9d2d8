//! Policy as pure functions over observed figures and time: how many threads a pool needs ([`scaling`]), how many of them
//! are at work at once ([`concurrency`]), which request
//! is let in ([`admission`]), what a route is and how long its requests take ([`routes`]), how a slow one is kept
//! from starving the others ([`lanes`]), and what is done about one that kills engines ([`circuits`]). No threads, no clocks,
//! no I/O: the server observes and carries out.
#![forbid(unsafe_code)]

pub mod admission;
pub mod circuits;
pub mod concurrency;
mod estimate;
pub mod lanes;
pub mod routes;
pub mod scaling;
