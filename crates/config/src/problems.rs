//! How mistakes are worded.

use crate::advice;
use regent_caddyfile::{Error, Span, Token};
use std::fmt;

/// Something that works, but perhaps not as its author thinks. Displayed as `Caddyfile:3:5: message`.
#[derive(Debug, Clone)]
pub struct Warning {
    pub message: String,
    /// `None` if no place in the text is to blame.
    pub span: Option<Span>,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.span {
            Some(span) => write!(f, "{span}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

pub(crate) fn error(token: &Token, message: impl Into<String>) -> Error {
    Error::new(&token.span, message)
}

/// Caddy or FrankenPHP has it, Regent not yet.
pub(crate) fn not_built(token: &Token) -> Error {
    not_built_as(token, &token.text)
}

/// The same for something that is written as more than the one word.
pub(crate) fn not_built_as(token: &Token, what: &str) -> Error {
    let advice = advice::instead_of(what).map_or(String::new(), |advice| format!("; {advice}"));
    let state = match advice::needs_module(what) {
        true => "needs a third party's module in Caddy too, and Regent has none",
        false => "is not built yet in Regent",
    };
    error(token, format!("`{what}` {state}{advice}"))
}

/// A directive, or an option of the global block.
pub(crate) fn unknown_name(token: &Token, kind: &str, known: &[&str]) -> Error {
    if advice::is_of_others(&token.text) {
        let message = format!(
            "`{}` is of a third party's module for Caddy, and Regent has none like it; leave it out, or have it done in \
             front of Regent",
            token.text
        );
        return error(token, message);
    }
    unknown(token, kind, known)
}

/// An option of `cache`, Regent's own.
pub(crate) fn unknown_option_of_cache(token: &Token, known: &[&str]) -> Error {
    if advice::is_of_souin(&token.text) {
        let known = known.join(", ");
        let message = format!(
            "`{}` is an option of Souin, a third party's cache for Caddy; Regent's own `cache` has other ones: {known}",
            token.text
        );
        return error(token, message);
    }
    unknown_option(token, "cache", known, &[])
}

/// A word that is none of `known`; `kind` says what it should have been.
pub(crate) fn unknown(token: &Token, kind: &str, known: &[&str]) -> Error {
    let hint =
        suggestion(&token.text, known).map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    error(token, format!("unknown {kind} `{}`{hint}", token.text))
}

/// A word in the block of `owner` that is none of its options.
pub(crate) fn unknown_option(token: &Token, owner: &str, known: &[&str], unbuilt: &[&str]) -> Error {
    if unbuilt.contains(&token.text.as_str()) {
        return not_built_as(token, &format!("{owner} {}", token.text));
    }
    let hint =
        suggestion(&token.text, known).map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    let mut known = known.to_vec();
    known.sort_unstable();
    let known = known.join(", ");
    error(token, format!("unknown option `{}` of `{owner}`{hint} (its options: {known})", token.text))
}

/// The known word that is so close that a slip of the hand explains the difference.
pub(crate) fn suggestion<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = 1 + word.chars().count() / 4;
    let distance = |name: &str| strsim::damerau_levenshtein(word, name);
    known.iter().copied().min_by_key(|name| distance(name)).filter(|name| distance(name) <= allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_close_words_are_suggested() {
        let known = ["php", "php_server", "root"];
        assert_eq!(suggestion("php_sever", &known), Some("php_server"));
        assert_eq!(suggestion("rot", &known), Some("root"));
        assert_eq!(suggestion("banana", &known), None);
    }
}
