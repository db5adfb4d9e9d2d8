//! Shell patterns as Go's `path.Match` has them: `*` and `?` within a segment, `[a-z]`, `[^a]`, `\` before a literal.

/// A pattern for a name or a path; not sensitive to the case of ASCII letters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Glob(Vec<Token>);

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Byte(u8),
    /// Any one byte but `/`.
    Any,
    /// Any number of bytes but `/`.
    Star,
    Class {
        negated: bool,
        ranges: Vec<(u8, u8)>,
    },
}

impl Glob {
    /// `None` if a bracket or an escape does not end.
    pub(crate) fn parse(pattern: &[u8]) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut rest = pattern;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            tokens.push(match byte {
                b'*' => Token::Star,
                b'?' => Token::Any,
                b'[' => parse_class(&mut rest)?,
                b'\\' => Token::Byte(take(&mut rest)?.to_ascii_lowercase()),
                byte => Token::Byte(byte.to_ascii_lowercase()),
            });
        }
        tokens.dedup_by(|a, b| *a == Token::Star && *b == Token::Star);
        Some(Self(tokens))
    }

    /// Whether the whole text fits. Takes at most pattern × text steps, whatever the pattern.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        // Most names fail here: they do not end as the pattern does.
        if let (Some(last @ Token::Byte(_)), Some(end)) = (self.0.last(), text.last())
            && !last.fits(*end)
        {
            return false;
        }
        let (mut token, mut at) = (0, 0);
        // Where to go on if what follows the last star does not fit: that star takes one byte more.
        let mut retry: Option<(usize, usize)> = None;
        while at < text.len() || token < self.0.len() {
            match self.0.get(token) {
                Some(Token::Star) => {
                    retry = Some((token, at + 1));
                    token += 1;
                    continue;
                }
                Some(single) if at < text.len() && single.fits(text[at]) => {
                    token += 1;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            match retry {
                Some((star, next)) if next <= text.len() && text[next - 1] != b'/' => {
                    retry = Some((star, next + 1));
                    token = star + 1;
                    at = next;
                }
                _ => return false,
            }
        }
        true
    }
}

impl Token {
    fn fits(&self, byte: u8) -> bool {
        let lower = byte.to_ascii_lowercase();
        match self {
            Self::Byte(wanted) => *wanted == lower,
            Self::Any => byte != b'/',
            Self::Star => false,
            Self::Class { negated, ranges } => {
                let within = |byte| ranges.iter().any(|(low, high)| (*low..=*high).contains(&byte));
                byte != b'/' && (within(lower) || within(byte.to_ascii_uppercase())) != *negated
            }
        }
    }
}

fn parse_class(rest: &mut &[u8]) -> Option<Token> {
    let negated = rest.first() == Some(&b'^');
    if negated {
        *rest = &rest[1..];
    }
    let mut ranges = Vec::new();
    loop {
        let low = match take(rest)? {
            b']' if !ranges.is_empty() => return Some(Token::Class { negated, ranges }),
            b'\\' => take(rest)?,
            byte => byte,
        };
        let high = if rest.first() == Some(&b'-') {
            *rest = &rest[1..];
            match take(rest)? {
                b'\\' => take(rest)?,
                byte => byte,
            }
        } else {
            low
        };
        ranges.push((low, high));
    }
}

fn take(rest: &mut &[u8]) -> Option<u8> {
    let (&byte, tail) = rest.split_first()?;
    *rest = tail;
    Some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_go() {
        for (pattern, text, want) in [
            ("*.php", "x.PHP", true),
            ("*.php", "a/x.php", false),
            ("/a/*/c", "/a/b/c", true),
            ("/a/*/c", "/a/b/b/c", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[a-c]x", "Bx", true),
            ("[^a-c]x", "bx", false),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("**", "abc", true),
            ("*", "", true),
            ("", "", true),
            ("", "x", false),
            ("/x*", "/x/y", false),
        ] {
            assert_eq!(
                Glob::parse(pattern.as_bytes()).unwrap().matches(text.as_bytes()),
                want,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn unfinished_patterns_are_refused() {
        for pattern in ["[a", "[", "a\\", "[a-"] {
            assert_eq!(Glob::parse(pattern.as_bytes()), None, "{pattern}");
        }
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = "*a".repeat(50) + "b";
        assert!(!Glob::parse(pattern.as_bytes()).unwrap().matches("a".repeat(5_000).as_bytes()));
    }
}
