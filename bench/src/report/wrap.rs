//! Text in lines of a limited width, whatever width is measured in.

/// The lines of a text, broken between words, and inside a word that is too wide alone. No line is empty but the only
/// one of an empty text.
pub fn wrap(text: &str, width: f64, measure: impl Fn(&str) -> f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    let words = text.split_whitespace().flat_map(|word| pieces(word, width, &measure));
    for word in words {
        let line = lines.last_mut().expect("invariant: there is always a last line");
        let longer = if line.is_empty() { word.clone() } else { format!("{line} {word}") };
        if line.is_empty() || measure(&longer) <= width {
            *line = longer;
        } else {
            lines.push(word);
        }
    }
    lines
}

/// The word, or parts of it of at most the width, each of at least a character.
fn pieces(word: &str, width: f64, measure: impl Fn(&str) -> f64) -> Vec<String> {
    if measure(word) <= width {
        return vec![word.to_owned()];
    }
    let mut pieces = vec![String::new()];
    for character in word.chars() {
        let piece = pieces.last_mut().expect("invariant: there is always a last piece");
        let longer = format!("{piece}{character}");
        if piece.is_empty() || measure(&longer) <= width {
            *piece = longer;
        } else {
            pieces.push(character.to_string());
        }
    }
    pieces
}

/// The width in cells of a terminal, each character one.
pub fn cells(text: &str) -> f64 {
    text.chars().count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two  three", 7.0, cells), ["one two", "three"]);
        assert_eq!(wrap("", 7.0, cells), [""]);
    }

    #[test]
    fn a_word_that_is_too_wide_is_broken() {
        assert_eq!(wrap("a abcdefgh", 3.0, cells), ["a", "abc", "def", "gh"]);
        assert_eq!(wrap("ab", 0.0, cells), ["a", "b"]);
    }
}
