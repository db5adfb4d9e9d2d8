//! The functions of templates: Go's own, Caddy's, and sprig's as far as pages use them.

pub(crate) mod dates;
mod encoding;
mod lists;
mod maps;
mod math;
pub(crate) mod page;
mod print;
mod text;

use crate::arguments::Call;
use gotmpl::{Result, Value};

pub(crate) type Function = fn(&Call<'_>) -> Result<Value>;

/// All of them, by name. What includes other pages is not here, since it renders.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Function)> {
    [
        print::FUNCTIONS,
        page::FUNCTIONS,
        text::FUNCTIONS,
        text::PATTERNS,
        lists::FUNCTIONS,
        maps::FUNCTIONS,
        math::FUNCTIONS,
        dates::FUNCTIONS,
        encoding::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = super::all().map(|(name, _)| name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
