//! What an engine is to give up at its start, before any of its threads runs, and what came of that.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What an engine, and all that its scripts and modules start, must not do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confinement {
    /// Nothing is given up.
    Off,
    /// System calls by which a process attacks others or the kernel, where they can be given up without set-user-ID programs
    /// being given up with them.
    #[default]
    Unasked,
    Asked(Limits),
}

/// What was asked for, beside those system calls and set-user-ID programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// What may be read, beside what programs need of the system. `None`: everything.
    pub read: Option<Vec<PathBuf>>,
    /// What may be written to, beside the directory of temporary files. `None`: everything.
    pub write: Option<Vec<PathBuf>>,
    /// Namespaces and mounts of its own.
    pub namespaces: Grant,
    /// Other programs.
    pub programs: Grant,
    pub shortfall: Shortfall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    Allowed,
    Refused,
}

/// What becomes of an engine that the kernel cannot confine as it was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortfall {
    /// It says what is missing, and serves.
    #[default]
    IsTold,
    /// It does not start.
    Ends,
}

/// What came of it, in words of a few each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    pub enforced: Vec<String>,
    /// With the reasons.
    pub missing: Vec<String>,
}
