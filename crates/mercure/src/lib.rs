//! A Mercure hub: publishers send updates to topics, subscribers get them as server-sent events.
//!
//! The protocol is version 0.x, draft-dunglas-mercure-07 with what came to it until 0.24: the query parameters
//! `authorization` and `lastEventID`. [`Hub::open`] starts one, [`Hub::answer`] answers a request to
//! `/.well-known/mercure` and below.
#![forbid(unsafe_code)]

mod answer;
mod budget;
mod cors;
mod credentials;
mod dispatcher;
mod form;
mod history;
mod hub;
mod index;
mod journal;
mod load;
mod mailbox;
mod options;
mod registry;
mod selector;
mod shared;
mod stream;
mod subscriptions;
mod template;
mod token;
mod update;
mod uuid;

pub use answer::{Asked, Bounds, PATH};
pub use hub::{Hub, HubError, Refused};
pub use journal::JournalError;
pub use options::{Anonymous, HistoryOptions, HubOptions, Key, Subscriptions};
pub use token::KeyError;
pub use update::{Publication, UpdateError};
