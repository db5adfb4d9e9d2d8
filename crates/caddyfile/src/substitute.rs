//! `{$NAME}` and `{$NAME:default}`: environment variables, put in before anything else looks at the text.

/// A text with the variables put in, that still knows where each of its bytes came from.
pub(crate) struct Substituted {
    pub text: String,
    pieces: Vec<Piece>,
}

struct Piece {
    /// Where it begins in the new text.
    start: usize,
    /// Where it, or the `{$…}` that it replaces, begins in the original.
    origin: usize,
    kind: PieceKind,
}

enum PieceKind {
    Copied,
    Value,
}

/// Puts the values of `lookup` into `text`. A variable that is not set becomes its default, or nothing.
///
/// As in Caddy, values are not searched for variables again, and `{$}` stays as it is.
pub(crate) fn substitute(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Substituted {
    let mut result = Substituted { text: String::with_capacity(text.len()), pieces: Vec::new() };
    let mut at = 0;
    while let Some((start, end)) = find_variable(text, at) {
        result.push(&text[at..start], at, PieceKind::Copied);
        let (name, default) = split_default(&text[start + 2..end]);
        let value = lookup(name).unwrap_or_else(|| default.to_owned());
        result.push(&value, start, PieceKind::Value);
        at = end + 1;
    }
    result.push(&text[at..], at, PieceKind::Copied);
    result
}

impl Substituted {
    /// The place in the original of the byte at `offset`; for a byte of a value: where its `{$…}` begins.
    pub fn origin(&self, offset: usize) -> usize {
        let index = self.pieces.partition_point(|piece| piece.start <= offset).saturating_sub(1);
        let piece = &self.pieces[index];
        match piece.kind {
            PieceKind::Copied => piece.origin + (offset - piece.start),
            PieceKind::Value => piece.origin,
        }
    }

    fn push(&mut self, text: &str, origin: usize, kind: PieceKind) {
        self.pieces.push(Piece { start: self.text.len(), origin, kind });
        self.text.push_str(text);
    }
}

/// Offsets of the `{` and the `}` of the first variable at or after `from`.
fn find_variable(text: &str, from: usize) -> Option<(usize, usize)> {
    let mut from = from;
    loop {
        let start = from + text[from..].find("{$")?;
        let end = start + text[start..].find('}')?;
        if end > start + 2 {
            return Some((start, end));
        }
        from = end + 1;
    }
}

fn split_default(variable: &str) -> (&str, &str) {
    variable.split_once(':').unwrap_or((variable, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "NAME" => Some("value {$NAME}".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn values_defaults_and_what_stays() {
        let cases = [
            ("a {$NAME} b", "a value {$NAME} b"),
            ("{$UNSET:a:b}{$UNSET}!", "a:b!"),
            ("{$EMPTY:default}", ""),
            ("{$} {$NAME", "{$} {$NAME"),
            ("{$}{$NAME}", "{$}value {$NAME}"),
        ];
        for (text, expected) in cases {
            assert_eq!(substitute(text, &lookup).text, expected, "{text}");
        }
    }

    #[test]
    fn places_lead_back_to_the_original() {
        let original = "ab {$NAME} cd";
        let result = substitute(original, &lookup);
        assert_eq!(result.origin(1), 1);
        assert_eq!(result.origin(5), 3);
        assert_eq!(result.origin(result.text.find("cd").unwrap()), original.find("cd").unwrap());
        assert_eq!(result.origin(result.text.len()), original.len());
    }
}
