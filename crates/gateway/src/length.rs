//! What an engine says of the length of its body.

/// `Content-Length` of an answer. Where it goes out as it is, the client takes what follows so many bytes for the next
/// response: a script must not be able to write that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DeclaredLength {
    #[default]
    None,
    Bytes(u64),
    /// Something else than one plain number (RFC 9110 §8.6: digits alone), or several that differ.
    Invalid,
}

impl DeclaredLength {
    /// With one more field of that name.
    pub fn and(self, value: &[u8]) -> Self {
        match (self, plain_number(value)) {
            (Self::None, Some(bytes)) => Self::Bytes(bytes),
            (Self::Bytes(earlier), Some(bytes)) if earlier == bytes => self,
            _ => Self::Invalid,
        }
    }

    /// `None`: nothing that could be believed.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::None | Self::Invalid => None,
        }
    }
}

fn plain_number(value: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(value.trim_ascii()).ok()?;
    // `parse` would take a sign.
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(values: &[&str]) -> Option<u64> {
        values.iter().fold(DeclaredLength::None, |length, value| length.and(value.as_bytes())).bytes()
    }

    #[test]
    fn one_plain_number_is_a_length() {
        assert_eq!(declared(&["0"]), Some(0));
        assert_eq!(declared(&[" 42 "]), Some(42));
        assert_eq!(declared(&["007"]), Some(7));
        assert_eq!(declared(&["18446744073709551615"]), Some(u64::MAX));
        assert_eq!(declared(&["3", "3", "03"]), Some(3));
    }

    #[test]
    fn anything_else_is_none() {
        for value in
            ["", "abc", "-1", "+5", "3,3", "3, 3", "0x10", "1e3", "5 5", "18446744073709551616", "５"]
        {
            assert_eq!(declared(&[value]), None, "{value}");
        }
        assert_eq!(declared(&[]), None);
        assert_eq!(declared(&["3", "4"]), None);
        assert_eq!(declared(&["3", "4", "3"]), None);
        assert_eq!(declared(&["abc", "3"]), None, "what follows does not make it good");
    }
}
