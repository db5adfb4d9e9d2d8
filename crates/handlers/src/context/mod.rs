//! A request on its way through the routes, what it asks, and what becomes of it.

pub(crate) mod body_rules;
pub(crate) mod cache_rules;
pub(crate) mod client;
pub(crate) mod exchange;
pub(crate) mod failure;
pub(crate) mod filter;
pub(crate) mod flow;
pub(crate) mod found;
pub(crate) mod interceptor;
pub(crate) mod listing;
pub(crate) mod log_value;
pub(crate) mod origin;
pub(crate) mod own_fields;
pub(crate) mod page;
pub(crate) mod place;
pub(crate) mod proxied;
pub(crate) mod rendering;
pub(crate) mod shutdown;
pub(crate) mod target;
pub(crate) mod uuid;
pub(crate) mod verification;
