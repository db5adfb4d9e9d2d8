//! Sites, their routes, and the way of a request through them.

pub(crate) mod handler;
mod listed;
mod responses;
pub(crate) mod route;
pub(crate) mod sites;
