//! What PHP, native modules and tasks give up.

use serde::Serialize;
use std::path::PathBuf;

/// The `confine` option.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confine {
    /// Nothing.
    Off,
    /// What no application can miss.
    #[default]
    Unasked,
    Asked(Confinement),
}

/// The block of `confine`. Paths are absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Confinement {
    /// What may be read beside the system's files. `None`: everything.
    pub read: Option<Vec<PathBuf>>,
    /// What may be written to beside the directory of temporary files. `None`: everything.
    pub write: Option<Vec<PathBuf>>,
    pub programs: Programs,
    pub namespaces: Namespaces,
    pub enforcement: Enforcement,
}

/// Whether scripts and modules may start other programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Programs {
    #[default]
    Allowed,
    Refused,
}

/// Whether they, and the programs that they start, may make namespaces and mounts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespaces {
    Allowed,
    #[default]
    Refused,
}

/// What becomes of an engine that the kernel cannot confine in all that was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// It serves, and the log says what is missing.
    #[default]
    BestEffort,
    /// It does not start.
    Strict,
}

impl Confine {
    /// Whether nothing was configured.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Self::Unasked
    }
}
