//! Which requests are run once more when their engine has died.

use serde::{Serialize, Serializer};

/// The methods of which a request means the same once and twice (RFC 9110 §9.2.2), but TRACE; those that change nothing at all
/// (§9.2.1) first.
const IDEMPOTENT: [&str; 5] = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"];

/// Methods whose requests are run once more; none of them: no request is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryMethods(u8);

impl RetryMethods {
    pub const NONE: Self = Self(0);
    /// GET, HEAD and OPTIONS.
    pub const SAFE: Self = Self(0b111);

    /// `None` if the method is not one that may be repeated.
    pub fn with(self, method: &str) -> Option<Self> {
        IDEMPOTENT.iter().position(|known| *known == method).map(|bit| Self(self.0 | 1 << bit))
    }

    pub fn contains(self, method: &str) -> bool {
        !self.is_empty() && self.names().any(|name| name == method)
    }

    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        IDEMPOTENT
            .into_iter()
            .enumerate()
            .filter(move |(bit, _)| self.0 & (1 << bit) != 0)
            .map(|(_, name)| name)
    }
}

impl Serialize for RetryMethods {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_named_is_repeated() {
        let methods =
            RetryMethods::NONE.with("PUT").and_then(|methods| methods.with("GET")).expect("both may be");
        assert!(methods.contains("PUT") && methods.contains("GET") && !methods.contains("DELETE"));
        assert_eq!(serde_json::to_string(&methods).expect("a list"), r#"["GET","PUT"]"#);
        for method in ["POST", "PATCH", "get", "TRACE", ""] {
            assert_eq!(methods.with(method), None, "{method}");
            assert!(!methods.contains(method) && !RetryMethods::NONE.contains(method), "{method}");
        }
        assert!(["GET", "HEAD", "OPTIONS"].iter().all(|safe| RetryMethods::SAFE.contains(safe)));
        assert!(["PUT", "DELETE"].iter().all(|unsafe_one| !RetryMethods::SAFE.contains(unsafe_one)));
    }
}
