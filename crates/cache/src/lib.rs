//! A shared cache of HTTP (RFC 9111): what may be kept, for how long, and for whom, and a memory of bounded size for it, with a
//! disk behind.
//!
//! Nothing in here makes a response. [`Policy`] judges responses and reads no clock, [`Store`] keeps them under [`Key`]s, and
//! [`Flights`] let one of many who miss the same fetch it. What waits for a disk is asynchronous, or says that it blocks.
#![forbid(unsafe_code)]

mod date;
mod directives;
mod disk;
mod figures;
mod flights;
mod key;
mod policy;
mod purge;
mod room;
mod rope;
mod scope;
mod selection;
mod status;
mod store;
mod stored;
mod tags;

pub use disk::{DiskFigures, DiskLimits, FileBody, Located, Spilling};
pub use figures::{Count, Counts, Figures};
pub use flights::{Flight, Flights, Landed, Landing, Ticket};
pub use key::Key;
pub use policy::{Ground, Judged, Policy, Question, Reuse, Terms};
pub use purge::Purge;
pub use room::{Full, Taken};
pub use rope::{Gathering, Rope};
pub use scope::{Scope, Scopes};
pub use selection::{CookieRule, Selection, VaryCookie, glob};
pub use status::{CacheStatus, Detail, Forwarded, Tier, Waiting};
pub use store::{Found, Limits, Store};
pub use stored::{Stored, StoredBody};
pub use tags::TAG_FIELDS;
