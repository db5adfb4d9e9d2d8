//! What is found, and what to do about it.

use serde::Serialize;

/// One thing that should be otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    /// Which check it is from, for programs: stable, as `opcache`.
    pub check: &'static str,
    /// What is the case.
    pub what: String,
    /// Why it matters.
    pub why: &'static str,
    /// What to do.
    pub remedy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The server will not start, will fail under load, or shows what it should not.
    Problem,
    /// It works, and could work better.
    Advice,
}

impl Finding {
    pub fn problem(
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
        remedy: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Problem, check, what: what.into(), why, remedy: remedy.into() }
    }

    pub fn advice(
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
        remedy: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Advice, check, what: what.into(), why, remedy: remedy.into() }
    }
}
