//! `map`: placeholders whose values depend on another's.

use super::Template;
use serde::Serialize;

/// One `map` directive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Map {
    pub source: Template,
    /// Names of variables.
    pub destinations: Vec<String>,
    /// The first whose input fits counts.
    pub mappings: Vec<Mapping>,
    /// Of each destination, or none.
    pub defaults: Vec<Template>,
}

/// What becomes of a value of the source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mapping {
    pub input: MapInput,
    /// Of the first destinations; `None`: the default. `$1` and `${name}` are groups of a regular expression.
    pub outputs: Vec<Option<Template>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum MapInput {
    Text(String),
    Regexp(String),
}
