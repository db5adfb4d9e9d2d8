//! What fits a template, said a second time, as a regular expression: what `expansion` is held against. It is not in the
//! server, as the program of such an expression takes a thousand times the memory of the template.

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
