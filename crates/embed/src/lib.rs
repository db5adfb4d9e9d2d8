//! One executable with an application in it: `regent embed` appends an archive to the program, which unpacks it, once, into a
//! directory that nobody else can write to.
//!
//! ```text
//! the program │ archive (tar, zstd) │ footer: length, unpacked length, SHA-256, name of the format
//! ```
//! The program is not changed but for one byte, by which it knows that there was something behind it: `strip` and the like
//! cut that off ([`Mark`]).
#![forbid(unsafe_code)]

mod application;
mod archive;
mod footer;
mod libraries;
mod mark;
mod place;
mod search_path;
mod unpack;

pub use application::{Application, Excluded};
pub use archive::{Archive, Packed};
pub use footer::Footer;
pub use libraries::{Library, libraries_of, with_search_path};
pub use mark::Mark;
pub use place::{Place, default_cache};
pub use unpack::{Unpacked, unpack};

use std::io;
use std::path::PathBuf;

/// Where things are in what is unpacked.
pub mod layout {
    /// The application.
    pub const APPLICATION: &str = "app";
    /// PHP's engine.
    pub const ENGINE: &str = "regent-php";
    /// The engine of compiled modules.
    pub const NATIVE_ENGINE: &str = "regent-native";
    /// PHP's command line program, where the engine looks for it.
    pub const CLI: &str = "php/bin/php";
    /// libphp, and what it needs.
    pub const LIBRARIES: &str = "php/lib";
    pub const EXTENSIONS: &str = "php/extensions";
    pub const INI: &str = "php/etc/php.ini";
    /// Only of an executable for tests alone: which holes its PHP has.
    pub const OLD_PHP: &str = "php/FOR-TESTS-ALONE";
    /// Settings that are read after it.
    pub const INI_DIRECTORY: &str = "php/etc/conf.d";
}

/// What goes wrong while an executable is made, or unpacks itself.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    #[error("{step} {}: {source}", path.display())]
    File { step: &'static str, path: PathBuf, source: io::Error },
    #[error("there is no room for the application in {}, which needs {} MiB; make some, or name another directory with XDG_CACHE_HOME", directory.display(), needed >> 20)]
    NoRoom { directory: PathBuf, needed: u64 },
    #[error("{} is neither a file, nor a directory, nor a link; leave it out with --exclude", path.display())]
    Special { path: PathBuf },
    #[error("the link {} leads out of the application, to {}; copy what is there, or leave it out with --exclude", path.display(), target.display())]
    LinkOut { path: PathBuf, target: PathBuf },
    #[error("`{pattern}` is no pattern of files: {reason}")]
    Pattern { pattern: String, reason: String },
    #[error(
        "the application in this program is damaged ({0}); copy the program again, or make it again with `regent embed`"
    )]
    Damaged(String),
    #[error(
        "the application that was appended to this program has been cut off, as `strip` does; make it again with `regent embed`"
    )]
    CutOff,
    #[error("no directory is known to unpack the application to: set HOME or XDG_CACHE_HOME")]
    NoCache,
    #[error("{} is not safe to unpack the application to: {reason}; name another directory with XDG_CACHE_HOME", path.display())]
    Unsafe { path: PathBuf, reason: &'static str },
    #[error("which libraries {} needs could not be found out: {reason}", program.display())]
    Libraries { program: PathBuf, reason: String },
    #[error("{} cannot be made to find its libraries: {reason}", program.display())]
    Program { program: PathBuf, reason: String },
}

impl EmbedError {
    fn file(step: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { step, path, source }
    }
}
