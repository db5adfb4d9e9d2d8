//! Commands that talk to a running server through its admin listener.

mod client;
mod fleet;
mod fleet_frame;
mod frame;
mod keys;
mod live;
mod profile;
mod reload;
mod screen;
mod stop;
mod table;
mod tasks;
mod threads;
mod top;
mod units;
mod upgrade;

pub use profile::profile;
pub use reload::reload;
pub use stop::stop;
pub use table::{Align, Span, Table, Tone, plain_text};
pub use tasks::tasks;
pub use threads::{native, threads, workers};
pub use top::top;
pub use upgrade::upgrade;
