//! The admin listener: what operators, dashboards and framework adapters ask of a running server.
//!
//! [`bind`] takes an [`Address`] (`localhost:2019`, `unix//run/regent.sock`), [`serve`] answers there until it is told
//! to stop. What the answers say, and what the changes do, comes from the server through the [`Control`] trait: this
//! crate knows nothing else of it. `openapi.json` describes every call, and is served too.
//!
//! A web page of another origin cannot drive it: see [`Access`].
#![forbid(unsafe_code)]

mod address;
mod answer;
mod authority;
mod cache;
mod calls;
mod certificate;
mod circuit;
mod control;
mod dashboard;
mod document;
mod failure;
mod guard;
mod listener;
mod milliseconds;
mod php;
mod pool;
mod query;
mod router;
mod serve;
mod statistics;
mod task;
mod thread;
mod upstream;

pub use address::{Address, AddressError};
pub use authority::CertificateAuthority;
pub use cache::{CacheDiskFigures, CacheFigures, CachePurge, Purged};
pub use certificate::{Certificate, CertificateList, CertificateSource, days_between};
pub use circuit::{Circuit, CircuitState};
pub use control::{
    Adapted, Before, Change, Control, Force, Language, ProfileWish, Readiness, Refusal, Reload, Reloaded,
    Restarted, Source, Upgraded,
};
pub use document::ids::{IdError, check_ids};
pub use guard::{Access, Origin, OriginCheck, OriginError};
pub use listener::{BindError, Listeners, bind};
pub use php::{Php, PhpState};
pub use pool::{Engine, Pool, Queue, ThreadCounts};
/// What [`Control`] is told of each call.
pub use regent_metrics::AdminRequest;
pub use regent_metrics::Shed;
/// What [`bind`] looks for its address among.
pub use regent_net::Inherited;
pub use router::endpoints;
pub use serve::{Phase, serve};
pub use statistics::{
    Confinement, Generation, Lane, Percentiles, PoolStatistics, RouteStatistics, ScaleEvent, Statistics,
    Traffic,
};
pub use task::{Task, TaskEnd, TaskList, TaskOrder, TaskRun, TaskStarts, TaskState, TasksTold};
pub use thread::{Activity, Current, Thread, ThreadList, ThreadStack, ThreadState, Threads};
pub use upstream::Upstream;
