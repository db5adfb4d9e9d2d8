//! Go templates with the functions that Caddy's `templates` directive gives them, executed within bounds.
//!
//! A template is as trusted as a page of the site: it reads files below its root, and what it is given. What it costs has
//! bounds all the same, since pages of scripts may have become templates by accident, with strangers' text in them.
//!
//! [`render`] blocks: it reads files and takes a core. What only the server knows, it does not wait for: placeholders and
//! the pages of `httpInclude` are named in [`Outcome::Needs`], and the page is rendered once more when they are there.
#![forbid(unsafe_code)]

mod arguments;
mod budget;
mod files;
mod front_matter;
mod functions;
mod go_time;
mod humanize;
mod listing;
mod markdown;
mod methods;
mod page;
mod printf;
mod receivers;
mod render;
mod run;
mod times;

pub use go_time::utc_in_layout;
pub use humanize::binary_bytes;
pub use listing::{Item, Listing};
pub use page::{Failed, FieldChange, Needs, Outcome, Page, Request, Supplied};
pub use render::render;
