//! What the cache does with a request that is to be handed on: answers it, has it wait for another, or fetches the response for
//! all. When is up to the server: nothing here waits.

mod answer;
mod asked;
mod consult;
mod fetch;
mod invalidate;
mod tee;

pub use asked::HasBody;
pub use consult::{Arrived, Boarding, Consulted, Loading, OnDisk, Waiting, consult, hit};
pub use fetch::{Answer, Fetch, Fetched, Outcome};
pub use invalidate::Passing;
pub use tee::{Copying, Rest};

pub(crate) use invalidate::purge;
