//! URI templates (RFC 6570), read backwards: which strings can a template expand to?

use std::fmt::Write;

/// Variables of a template; one with more can only be itself. The pattern of an expression grows with their square, and
/// what a look at a topic costs with their number.
const MOST_VARIABLES: usize = 16;

/// A character that RFC 6570 leaves as it is, or a percent-encoded byte. Topics are IRIs, so what is not ASCII may stand
/// there without being encoded.
const UNRESERVED: &str = r"(?:[A-Za-z0-9._~\-]|[^\x00-\x7F]|%[0-9A-Fa-f]{2})";
/// The same with the reserved characters, which `+` and `#` leave as they are too.
const RESERVED: &str = r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=\-]|[^\x00-\x7F]|%[0-9A-Fa-f]{2})";
/// One whole character, for variables of a limited length.
const UNRESERVED_CHARACTER: &str = r"(?:[A-Za-z0-9._~\-]|[^\x00-\x7F]|%[0-7][0-9A-Fa-f]|%[C-Dc-d][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f])|%[Ee][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){2}|%[Ff][0-7](?:%[89ABab][0-9A-Fa-f]){3})";

/// How an expression expands (RFC 6570, appendix A).
struct Operator {
    first: &'static str,
    separator: &'static str,
    is_named: bool,
    /// What follows the name of an empty value.
    if_empty: &'static str,
    character: &'static str,
}

/// A variable of an expression.
struct Variable<'a> {
    name: &'a str,
    modifier: Modifier,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Modifier {
    None,
    /// At most so many characters.
    Prefix(u16),
    /// Lists and pairs, one by one.
    Explode,
}

/// A regular expression of all strings that the template can expand to. `None`: the text is no template, or has no
/// expression in it, so that it can only be itself.
pub(crate) fn pattern(template: &str) -> Option<String> {
    let mut pattern = String::from(r"^(?:");
    let mut rest = template;
    let mut variables = 0;
    while let Some(open) = rest.find(['{', '}']) {
        let (literal, from) = rest.split_at(open);
        push_literal(&mut pattern, literal);
        let (expression, after) = from.strip_prefix('{')?.split_once('}')?;
        variables += push_expression(&mut pattern, expression)?;
        if variables > MOST_VARIABLES {
            return None;
        }
        rest = after;
    }
    push_literal(&mut pattern, rest);
    pattern.push_str(")$");
    (variables > 0).then_some(pattern)
}

fn push_literal(pattern: &mut String, literal: &str) {
    pattern.push_str(&regex_lite::escape(literal));
}

/// Answers how many variables there are.
fn push_expression(pattern: &mut String, expression: &str) -> Option<usize> {
    let (operator, list) = operator(expression)?;
    let variables = list.split(',').map(variable).collect::<Option<Vec<_>>>()?;
    if variables.len() > MOST_VARIABLES {
        return None;
    }
    // A variable that is not defined leaves nothing behind, neither its separator.
    let values: Vec<_> = variables.iter().map(|variable| value(&operator, variable)).collect();
    let separator = regex_lite::escape(operator.separator);
    pattern.push_str("(?:");
    pattern.push_str(&regex_lite::escape(operator.first));
    pattern.push_str("(?:");
    for first in 0..values.len() {
        if first > 0 {
            pattern.push('|');
        }
        pattern.push_str(&values[first]);
        for value in &values[first + 1..] {
            let _ = write!(pattern, "(?:{separator}{value})?");
        }
    }
    pattern.push_str("))?");
    Some(values.len())
}

fn operator(expression: &str) -> Option<(Operator, &str)> {
    let plain = |first, separator| Operator {
        first,
        separator,
        is_named: false,
        if_empty: "",
        character: UNRESERVED,
    };
    let named = |first, separator, if_empty| Operator {
        first,
        separator,
        is_named: true,
        if_empty,
        character: UNRESERVED,
    };
    let operator = match expression.as_bytes().first()? {
        b'+' => Operator { character: RESERVED, ..plain("", ",") },
        b'#' => Operator { character: RESERVED, ..plain("#", ",") },
        b'.' => plain(".", "."),
        b'/' => plain("/", "/"),
        b';' => named(";", ";", ""),
        b'?' => named("?", "&", "="),
        b'&' => named("&", "&", "="),
        _ => return Some((plain("", ","), expression)),
    };
    Some((operator, &expression[1..]))
}

fn variable(text: &str) -> Option<Variable<'_>> {
    let (name, modifier) = match text.split_once(':') {
        Some((name, length)) => (name, Modifier::Prefix(prefix_length(length)?)),
        None => match text.strip_suffix('*') {
            Some(name) => (name, Modifier::Explode),
            None => (text, Modifier::None),
        },
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '%' | '.');
    (!name.is_empty() && name.chars().all(is_part)).then_some(Variable { name, modifier })
}

/// 1 to 9999, without a zero in front.
fn prefix_length(text: &str) -> Option<u16> {
    let is_number =
        text.len() <= 4 && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// All that a defined variable can expand to.
fn value(operator: &Operator, variable: &Variable<'_>) -> String {
    let character = operator.character;
    let separator = regex_lite::escape(operator.separator);
    let name = regex_lite::escape(variable.name);
    // The separator of a list without `*`.
    let list = format!("(?:{character}|,)*");
    match (variable.modifier, operator.is_named) {
        (Modifier::None, false) => list,
        (Modifier::None, true) => named(&name, &list, operator),
        (Modifier::Prefix(length), is_named) => {
            let one = if operator.character == RESERVED { RESERVED } else { UNRESERVED_CHARACTER };
            let start = format!("{one}{{0,{length}}}");
            if is_named { named(&name, &start, operator) } else { start }
        }
        (Modifier::Explode, false) => {
            let item = format!("{character}*(?:={character}*)?");
            format!("{item}(?:{separator}{item})*")
        }
        (Modifier::Explode, true) => {
            let item = named(&format!("{character}+"), &format!("{character}*"), operator);
            format!("{item}(?:{separator}{item})*")
        }
    }
}

fn named(name: &str, value: &str, operator: &Operator) -> String {
    if operator.if_empty.is_empty() { format!("{name}(?:={value})?") } else { format!("{name}={value}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regex_lite::RegexBuilder;

    fn matches(template: &str, topic: &str) -> bool {
        let pattern = pattern(template).unwrap_or_else(|| panic!("{template} is no template"));
        RegexBuilder::new(&pattern).build().unwrap().is_match(topic)
    }

    #[test]
    fn expansions_of_rfc_6570_are_found() {
        // Section 3.2, with the values of its table.
        for (template, topic) in [
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{half}", "50%25"),
            ("O{empty}X", "OX"),
            ("O{undef}X", "OX"),
            ("{x,y}", "1024,768"),
            ("{x,hello,y}", "1024,Hello%20World%21,768"),
            ("?{x,empty}", "?1024,"),
            ("?{undef,y}", "?768"),
            ("{var:3}", "val"),
            ("{var:30}", "value"),
            ("{list}", "red,green,blue"),
            ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
            ("{+base}index", "http://example.com/home/index"),
            ("up{+path}{var}/here", "up/foo/barvalue/here"),
            ("{+path:6}/here", "/foo/b/here"),
            ("{#path,x}/here", "#/foo/bar,1024/here"),
            ("{#path:6}here", "#/foo/bhere"),
            ("X{.list*}", "X.red.green.blue"),
            ("X{.var:3}", "X.val"),
            ("{/who,dub}", "/fred/me%2Ftoo"),
            ("{/var,undef}", "/value"),
            ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
            ("{;x,y,empty}", ";x=1024;y=768;empty"),
            ("{;v,empty,who}", ";v=6;empty;who=fred"),
            ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("{?x,y,undef}", "?x=1024&y=768"),
            ("{?list*}", "?list=red&list=green&list=blue"),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ] {
            assert!(matches(template, topic), "{template} {topic}");
        }
    }

    #[test]
    fn the_example_of_the_specification() {
        let template = "https://example.com/users/foo/{?topic}";
        let topic = "https://example.com/users/foo/?topic=https%3A%2F%2Fexample.com%2Fbooks%2F1";
        assert!(matches(template, topic));
        assert!(!matches(template, &topic.replace("foo", "bar")));
    }

    #[test]
    fn what_a_template_cannot_expand_to() {
        for (template, topic) in [
            ("https://example.com/books/{id}", "https://example.com/books/1/pages"),
            ("https://example.com/books/{id}", "https://example.com/books/1?x"),
            ("https://example.com/books/{id}", "http://example.com/books/1"),
            ("https://example.com/books/{id}", "https://exampleXcom/books/1"),
            ("/a{/b}", "/a/1/2"),
            ("/{var:3}", "/value"),
            ("{?x}", "?y=1"),
            ("{?x}", "x=1"),
            ("{x}", "a\nb"),
            ("a{x}", "a\n"),
            ("a{x}b", "xa1b"),
        ] {
            assert!(!matches(template, topic), "{template} {topic}");
        }
    }

    #[test]
    fn prefixes_count_characters_not_bytes() {
        assert!(matches("{var:2}", "%C3%A9%E2%82%AC"));
        assert!(!matches("{var:2}", "%C3%A9%E2%82%ACx"));
        assert!(matches("{var:1}", "é"));
    }

    #[test]
    fn what_is_no_template() {
        for text in [
            "https://example.com/books/1",
            "{",
            "}",
            "a{b",
            "a}b",
            "{}",
            "{a{b}}",
            "{=x}",
            "{|x}",
            "{a b}",
            "{a,}",
            "{a:0}",
            "{a:01}",
            "{a:12345}",
            "{a:}",
            "{*}",
            "{+}",
        ] {
            assert_eq!(pattern(text), None, "{text}");
        }
        let many = format!("{{{}}}", ["a"; MOST_VARIABLES + 1].join(","));
        assert_eq!(pattern(&many), None);
        assert_eq!(pattern(&"{a}".repeat(MOST_VARIABLES + 1)), None);
        assert!(pattern(&"{a}".repeat(MOST_VARIABLES)).is_some());
    }

    proptest! {
        #[test]
        fn any_text_is_a_valid_pattern_or_none(text in "[a{}+#./;?&:*,0-9é%=\\\\()\\[\\]]{0,40}") {
            if let Some(pattern) = pattern(&text) {
                prop_assert!(RegexBuilder::new(&pattern).build().is_ok(), "{}", pattern);
            }
        }

        #[test]
        fn a_template_finds_its_own_expansions(
            start in "[a-z:/.?()*]{0,10}",
            value in "([a-zA-Z0-9._~-]|%[0-9A-F][0-9A-F]){0,20}",
            end in "[a-z/.$^]{0,10}",
        ) {
            let template = format!("{start}{{id}}{end}");
            let topic = format!("{start}{value}{end}");
            prop_assert!(matches(&template, &topic));
            let other = format!("{start}{value}/{end}");
            // A slash is no part of a value: it has to be one of the literals'.
            if !start.contains('/') && !end.contains('/') {
                prop_assert!(!matches(&template, &other));
            }
        }
    }
}
