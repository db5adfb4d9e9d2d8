//! What an experienced operator would say of a machine and a configuration.
//!
//! [`Machine::read`] looks at the machine once and changes nothing; [`examine`] makes findings of what it saw and of the
//! configuration, and reads nothing itself, so that each check is a function of plain data.
#![forbid(unsafe_code)]

mod checks;
mod finding;
mod machine;
mod php;
mod report;

pub use checks::examine;
pub use finding::{Finding, Severity};
pub use machine::Machine;
pub use php::PhpFacts;
pub use report::{as_json, as_text};
