//! Conditions of routes.

pub(crate) mod expression;
pub(crate) mod matcher;
pub(crate) mod path_pattern;
pub(crate) mod try_files;
