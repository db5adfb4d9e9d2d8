//! What the pages of `docs/` show.

use crate::native::repository;
use std::fs;

/// The text of a page, by its path in the repository.
pub fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The blocks of one language in a page, in order.
pub fn blocks(path: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let text = read(path);
    text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}
