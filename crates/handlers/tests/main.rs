//! Sites, from a request's head to what becomes of it. One program, so that it is linked once.
#![forbid(unsafe_code)]

mod common;
mod error_pages;
mod hostile_paths;
mod native;
mod php;
mod routing;
mod static_files;
