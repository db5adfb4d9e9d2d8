//! Plain text made safe for where it is put.

/// For text and attribute values of XML and HTML. Characters that XML 1.0 cannot hold (section 2.2), such as most
/// control characters, become U+FFFD.
pub fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\t' | '\n' => escaped.push(character),
            // A bare one would be read as a line feed (section 2.11).
            '\r' => escaped += "&#13;",
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// For running text and table cells of Markdown as GitHub reads it: one line, nothing of it markup.
pub fn markdown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let characters: Vec<char> = line.chars().collect();
    let mut escaped = String::with_capacity(line.len());
    for (index, &character) in characters.iter().enumerate() {
        let inside_word = index > 0
            && characters[index - 1].is_alphanumeric()
            && characters.get(index + 1).is_some_and(|next| next.is_alphanumeric());
        let markup = match character {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '$' => true,
            // `max_threads` is no emphasis.
            '_' => !inside_word,
            _ => opens_block(&characters, index),
        };
        if markup {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Whether the character makes the line a heading, an item of a list or a rule.
fn opens_block(line: &[char], index: usize) -> bool {
    let before_space = line.get(index + 1).is_none_or(|next| *next == ' ');
    match line[index] {
        '#' => index == 0,
        '+' => index == 0 && before_space,
        '-' => index == 0 && (before_space || line[1] == '-'),
        '.' | ')' => index > 0 && before_space && line[..index].iter().all(char::is_ascii_digit),
        _ => false,
    }
}

/// A file name's stem: letters, digits, `.`, `_` and `-` are kept, everything else becomes `-`; never empty, never
/// hidden, never a path.
pub fn file_stem(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let stem: String = name.chars().map(safe).collect();
    match stem.trim_start_matches('.') {
        "" => "unnamed".to_owned(),
        visible => visible.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_xml_markup() {
        assert_eq!(xml("<b a=\"1\" c='2'>&amp;"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
        assert_eq!(xml("a\0b\u{1b}[0m\u{ffff}\n"), "a\u{fffd}b\u{fffd}[0m\u{fffd}\n");
    }

    #[test]
    fn nothing_of_a_text_is_markdown_markup() {
        assert_eq!(
            markdown("a|b `c` *d* <e> [f](g) $h$ &lt;"),
            r"a\|b \`c\` \*d\* \<e\> \[f\](g) \$h\$ \&lt;"
        );
        assert_eq!(markdown("max_threads and _x_"), r"max_threads and \_x\_");
        assert_eq!(markdown("two\r\n\n# lines"), "two # lines");
        let blocks = ["# a", "- a", "1. a", "12) a", "---"].map(markdown);
        assert_eq!(blocks, [r"\# a", r"\- a", r"1\. a", r"12\) a", r"\---"]);
        let plain = ["1.5 a", "-5", "a - b", "+5", "4.00×"];
        assert_eq!(plain.map(markdown), plain);
    }

    #[test]
    fn a_file_name_stays_in_its_directory() {
        assert_eq!(file_stem("../../etc/passwd"), "-..-etc-passwd");
        assert_eq!(file_stem("fpm:default"), "fpm-default");
        assert_eq!(["", "..", "\0"].map(file_stem), ["unnamed", "unnamed", "-"]);
    }
}
