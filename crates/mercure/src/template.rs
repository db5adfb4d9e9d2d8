//! URI templates (RFC 6570): their syntax. Which topics they fit is in `expansion`.
//!
//! Nothing is made of a template but a few numbers: its text is read again for each topic that begins, ends and is as long
//! as an expansion must. So it takes the memory of its text, whatever is in it.

mod expansion;
#[cfg(test)]
mod oracle;

pub(crate) use expansion::Topic;

/// Variables of a template; one with more can only be itself. What a look at a topic costs grows with their number.
const MOST_VARIABLES: usize = 16;

/// What is known of a template whose syntax is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Template {
    variables: usize,
    /// Bytes before the first expression.
    prefix: usize,
    /// Bytes behind the last one.
    suffix: usize,
    /// Bytes of its shortest expansion.
    shortest: usize,
}

/// What a template consists of.
enum Part<'a> {
    Literal(&'a str),
    Expression(Expression<'a>),
}

struct Expression<'a> {
    operator: &'static Operator,
    /// Variables, and commas between them.
    list: &'a str,
}

/// How an expression expands (RFC 6570, appendix A).
struct Operator {
    first: &'static str,
    separator: u8,
    is_named: bool,
    /// What follows the name of an empty value.
    if_empty: &'static str,
    characters: Characters,
}

/// Which characters values have. Others are percent-encoded; but topics are IRIs, so what is not ASCII may stand there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Characters {
    Unreserved,
    /// The reserved ones too, which `+` and `#` leave as they are.
    Reserved,
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

impl Template {
    /// `None`: the text is no template, or has no expression in it, so that it can only be itself.
    pub fn of(text: &str) -> Option<Self> {
        let (mut variables, mut literals) = (0, 0);
        for part in parts(text) {
            match part? {
                Part::Literal(literal) => literals += literal.len(),
                Part::Expression(expression) => {
                    for variable in expression.variables() {
                        variable?;
                        variables += 1;
                    }
                }
            }
            if variables > MOST_VARIABLES {
                return None;
            }
        }
        let (prefix, behind) = (text.find('{')?, text.rfind('}')? + 1);
        Some(Self { variables, prefix, suffix: text.len() - behind, shortest: literals })
    }

    pub fn variables(self) -> usize {
        self.variables
    }

    /// Bytes that every expansion begins with.
    pub fn prefix(self) -> usize {
        self.prefix
    }

    /// Whether `text`, which this is of, can expand to the topic. Takes time that grows with the product of both lengths at
    /// most, and memory with the length of the topic.
    pub fn fits(self, text: &str, topic: &Topic<'_>) -> bool {
        let bytes = topic.text().as_bytes();
        bytes.len() >= self.shortest
            && bytes.starts_with(&text.as_bytes()[..self.prefix])
            && bytes.ends_with(&text.as_bytes()[text.len() - self.suffix..])
            && topic.expands(text)
    }
}

/// The parts of a text; `None` for the first that is none.
fn parts(text: &str) -> impl Iterator<Item = Option<Part<'_>>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (part, after) = match rest.find(['{', '}']) {
            _ if rest.is_empty() => return None,
            Some(0) => match rest[1..].split_once('}') {
                Some((inside, after)) if rest.starts_with('{') => {
                    (expression(inside).map(Part::Expression), after)
                }
                _ => (None, ""),
            },
            Some(open) => (Some(Part::Literal(&rest[..open])), &rest[open..]),
            None => (Some(Part::Literal(rest)), ""),
        };
        rest = after;
        Some(part)
    })
}

fn expression(text: &str) -> Option<Expression<'_>> {
    let operator = operator(*text.as_bytes().first()?);
    let (operator, list) = operator.map_or((&SIMPLE, text), |operator| (operator, &text[1..]));
    Some(Expression { operator, list })
}

const SIMPLE: Operator = unnamed("", b',', Characters::Unreserved);

/// `None`: an expression that begins so has none.
fn operator(first: u8) -> Option<&'static Operator> {
    const RESERVED: Operator = unnamed("", b',', Characters::Reserved);
    const FRAGMENT: Operator = unnamed("#", b',', Characters::Reserved);
    const LABEL: Operator = unnamed(".", b'.', Characters::Unreserved);
    const SEGMENT: Operator = unnamed("/", b'/', Characters::Unreserved);
    const PARAMETER: Operator = named(";", b';', "");
    const QUERY: Operator = named("?", b'&', "=");
    const CONTINUATION: Operator = named("&", b'&', "=");
    Some(match first {
        b'+' => &RESERVED,
        b'#' => &FRAGMENT,
        b'.' => &LABEL,
        b'/' => &SEGMENT,
        b';' => &PARAMETER,
        b'?' => &QUERY,
        b'&' => &CONTINUATION,
        _ => return None,
    })
}

const fn unnamed(first: &'static str, separator: u8, characters: Characters) -> Operator {
    Operator { first, separator, is_named: false, if_empty: "", characters }
}

const fn named(first: &'static str, separator: u8, if_empty: &'static str) -> Operator {
    Operator { first, separator, is_named: true, if_empty, characters: Characters::Unreserved }
}

impl<'a> Expression<'a> {
    /// `None` for what is no variable.
    fn variables(&self) -> impl Iterator<Item = Option<Variable<'a>>> + use<'a> {
        self.list.split(',').map(variable)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
            "",
        ] {
            assert_eq!(Template::of(text), None, "{text}");
        }
        let many = format!("{{{}}}", ["a"; MOST_VARIABLES + 1].join(","));
        assert_eq!(Template::of(&many), None);
        assert_eq!(Template::of(&"{a}".repeat(MOST_VARIABLES + 1)), None);
        assert!(Template::of(&"{a}".repeat(MOST_VARIABLES)).is_some());
    }

    #[test]
    fn what_stands_around_expressions_is_known() {
        let template = Template::of("/é{a}bc{?d,e}fgh").unwrap();
        assert_eq!(template, Template { variables: 3, prefix: 3, suffix: 3, shortest: 8 });
    }
}
