//! What the readers of all parts share: mistakes, and values of the kinds that JSON has.

use crate::document::{Member, Node, Value};
use regent_caddyfile::{Error, Line, Span, Token};
use std::cell::RefCell;

/// Something that works, but perhaps not as its author thinks.
#[derive(Debug)]
pub struct Warning {
    pub message: String,
    pub span: Span,
}

#[derive(Default)]
pub(crate) struct Reader {
    pub errors: Vec<Error>,
    pub warnings: Vec<Warning>,
}

/// An object whose members are taken one after the other; what is left at the end is a mistake.
pub(crate) struct Fields<'a> {
    pub node: &'a Node,
    left: RefCell<Vec<&'a Member>>,
    asked: RefCell<Vec<&'static str>>,
}

impl Reader {
    pub fn error(&mut self, node: &Node, message: impl std::fmt::Display) {
        self.errors.push(Error::new(&node.span, message.to_string()));
    }

    pub fn warn(&mut self, node: &Node, message: impl std::fmt::Display) {
        self.warnings.push(Warning { message: message.to_string(), span: node.span.clone() });
    }

    fn wrong_kind(&mut self, node: &Node, wanted: &str) {
        self.error(node, format_args!("{wanted} is needed here, not {}", node.kind()));
    }

    /// The members of an object; `null` is one without any.
    pub fn object<'a>(&mut self, node: &'a Node) -> Fields<'a> {
        if !matches!(node.value, Value::Object(_) | Value::Null) {
            self.wrong_kind(node, "an object");
        }
        // Names that tools give to parts of a configuration; they mean something to the admin API alone.
        let left = node.members().iter().filter(|member| member.name != "@id" && !member.value.is_null());
        Fields { node, left: RefCell::new(left.collect()), asked: RefCell::default() }
    }

    /// What is in a list; `null` is one without anything.
    pub fn list<'a>(&mut self, node: &'a Node) -> &'a [Node] {
        if !matches!(node.value, Value::List(_) | Value::Null) {
            self.wrong_kind(node, "a list");
        }
        node.items()
    }

    pub fn text(&mut self, node: &Node) -> Option<Token> {
        let text = node.as_text().map(|text| word(node, text));
        if text.is_none() {
            self.wrong_kind(node, "a string");
        }
        text
    }

    /// A string, a number, or a truth value, as a Caddyfile would have it.
    pub fn scalar(&mut self, node: &Node) -> Option<Token> {
        match &node.value {
            Value::Text(text) | Value::Number(text) => Some(word(node, text)),
            Value::Bool(value) => Some(word(node, &value.to_string())),
            _ => {
                self.wrong_kind(node, "a string or a number");
                None
            }
        }
    }

    pub fn number(&mut self, node: &Node) -> Option<Token> {
        match &node.value {
            Value::Number(text) => Some(word(node, text)),
            _ => {
                self.wrong_kind(node, "a number");
                None
            }
        }
    }

    pub fn bool(&mut self, node: &Node) -> bool {
        match node.value {
            Value::Bool(value) => value,
            _ => {
                self.wrong_kind(node, "true or false");
                false
            }
        }
    }

    /// A text such as `5s`, or a number of nanoseconds.
    pub fn duration(&mut self, node: &Node) -> Option<Token> {
        match &node.value {
            Value::Text(text) => Some(word(node, text)),
            Value::Number(number) => match number.parse::<i64>() {
                Ok(nanoseconds) => Some(word(node, &go_duration(nanoseconds))),
                Err(_) => {
                    self.error(
                        node,
                        format_args!(
                            "`{number}` is no whole number of nanoseconds; write a text such as \"5s\""
                        ),
                    );
                    None
                }
            },
            _ => {
                self.wrong_kind(node, "a duration, such as \"5s\" or a number of nanoseconds,");
                None
            }
        }
    }

    pub fn texts(&mut self, node: &Node) -> Vec<Token> {
        self.list(node).iter().filter_map(|item| self.text(item)).collect()
    }
}

impl<'a> Fields<'a> {
    /// The member of this name, which is then no mistake.
    pub fn take(&self, name: &'static str) -> Option<&'a Node> {
        self.asked.borrow_mut().push(name);
        let mut left = self.left.borrow_mut();
        let index = left.iter().position(|member| member.name == name)?;
        Some(&left.remove(index).value)
    }

    /// Reports what has not been taken. `what` is the object, for the message.
    pub fn finish(self, reader: &mut Reader, what: &str) {
        let mut known = self.asked.into_inner();
        known.sort_unstable();
        known.dedup();
        for member in self.left.into_inner() {
            let known = if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("its keys: {}", known.join(", "))
            };
            let message = format!("unknown key `{}` of {what} ({known})", member.name);
            reader.errors.push(Error::new(&member.span, message));
        }
    }

    /// All that has not been taken.
    pub fn rest(&self) -> Vec<&'a Member> {
        self.left.take()
    }
}

/// A word of the tree that a value has become.
pub(crate) fn word(at: &Node, text: &str) -> Token {
    Token { text: text.to_owned(), quoted: true, span: at.span.clone() }
}

/// A line without a block. `at`: whom mistakes in it are blamed on.
pub(crate) fn line(at: &Node, name: &str, args: Vec<Token>) -> Line {
    Line { name: word(at, name), args, block: None }
}

pub(crate) fn block(at: &Node, name: &str, args: Vec<Token>, lines: Vec<Line>) -> Line {
    Line { name: word(at, name), args, block: Some(lines) }
}

/// A duration of so many nanoseconds, in the largest unit that it is a whole number of.
fn go_duration(nanoseconds: i64) -> String {
    const UNITS: &[(&str, i64)] = &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    // -1 is a word of its own in some options.
    if matches!(nanoseconds, 0 | -1) {
        return nanoseconds.to_string();
    }
    let unit = UNITS.iter().find(|(_, length)| nanoseconds % length == 0);
    let (unit, length) = unit.unwrap_or(&("ns", 1));
    format!("{}{unit}", nanoseconds / length)
}

/// What a key holds, and how an option of a Caddyfile has it.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// A number, or a text with placeholders.
    Scalar,
    Number,
    Duration,
    /// Each becomes an argument.
    Texts,
    /// The option alone if it is true, and nothing otherwise.
    Flag,
}

/// A key of an object, the option that it becomes, and what it holds.
pub(crate) type Row = (&'static str, &'static str, Kind);

impl Reader {
    /// The options that these keys become.
    pub fn options(&mut self, fields: &Fields<'_>, table: &[Row]) -> Vec<Line> {
        table.iter().filter_map(|(key, name, kind)| self.option(fields.take(key)?, name, *kind)).collect()
    }

    fn option(&mut self, node: &Node, name: &str, kind: Kind) -> Option<Line> {
        let args = match kind {
            Kind::Text => vec![self.text(node)?],
            Kind::Scalar => vec![self.scalar(node)?],
            Kind::Number => vec![self.number(node)?],
            Kind::Duration => vec![self.duration(node)?],
            Kind::Texts => Some(self.texts(node)).filter(|texts| !texts.is_empty())?,
            Kind::Flag => Some(Vec::new()).filter(|_| self.bool(node))?,
        };
        Some(line(node, name, args))
    }
}
