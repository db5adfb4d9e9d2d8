//! The lowest PHP of each branch without known critical holes, and whether a PHP reaches it.
//!
//! A [`Table`] is built in, or read as JSON. It judges a [`Build`]: what PHP calls itself, and the distribution's package that
//! it is from, which [`Package::of`] looks up.
#![forbid(unsafe_code)]

mod debian;
mod error;
mod package;
mod table;
mod verdict;
mod version;

pub use error::FloorError;
pub use package::Package;
pub use table::{Branch, Floor, PackageFloor, Table};
pub use verdict::{Build, Verdict};
