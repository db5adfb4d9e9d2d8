//! A JSON document whose parts know where they stand.

use jsonc_parser::ast::{self, ObjectPropName};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions};
use regent_caddyfile::{Error, Source, Span};
use std::fmt;
use std::sync::Arc;

/// JSON as RFC 8259 has it, and nothing of what the parser would take besides.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Objects and lists within each other, beyond which a document is refused; keeps recursion off the end of the stack. Subroutes
/// take five of them each.
const MAX_NESTING: usize = 256;

/// A value, and where it stands.
#[derive(Debug)]
pub(crate) struct Node {
    pub span: Span,
    pub place: Place,
    pub value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// As it is written.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Member>),
}

#[derive(Debug)]
pub(crate) struct Member {
    pub name: String,
    pub span: Span,
    pub value: Node,
}

/// The way to a value from the document's root. Displayed as `apps.http.servers.srv0.listen[0]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place(Option<Arc<(Place, Step)>>);

#[derive(Debug)]
enum Step {
    Key(String),
    Index(usize),
}

/// Parses a document. Fails at its first mistake, after which nothing can be told of the rest.
pub(crate) fn parse(source: &Arc<Source>) -> Result<Node, Error> {
    let collect = CollectOptions::default();
    let parsed = jsonc_parser::parse_to_ast(source.text(), &collect, &STRICT).map_err(|error| {
        let message = error.kind().to_string();
        let mut characters = message.chars();
        let first = characters.next().map(|first| first.to_ascii_lowercase());
        let message = first.into_iter().chain(characters).collect::<String>();
        Error::new(
            &source.span(boundary(source.text(), error.range().start)),
            format!("this is no JSON: {message}"),
        )
    })?;
    let Some(value) = parsed.value else {
        return Err(Error::new(&source.span(0), "this is no JSON: the file is empty"));
    };
    node(source, &value, Place::default(), 1)
}

impl Node {
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The member of this name that is not `null`, if it is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let found = self.members().iter().find(|member| member.name == name);
        found.map(|member| &member.value).filter(|value| !value.is_null())
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What is in a list, and nothing of anything else.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The innermost value that begins at this byte or before it.
    pub fn at(&self, offset: usize) -> &Self {
        let inner = match &self.value {
            Value::List(items) => items[..items.partition_point(|item| item.span.offset() <= offset)].last(),
            Value::Object(members) => {
                let before = members.partition_point(|member| member.span.offset() <= offset);
                members[..before].last().map(|member| &member.value)
            }
            _ => None,
        };
        inner.map_or(self, |inner| inner.at(offset))
    }

    pub fn members(&self) -> &[Member] {
        match &self.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }
}

impl Place {
    fn key(&self, name: &str) -> Self {
        Self(Some(Arc::new((self.clone(), Step::Key(name.to_owned())))))
    }

    fn index(&self, index: usize) -> Self {
        Self(Some(Arc::new((self.clone(), Step::Index(index)))))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps: Vec<_> =
            std::iter::successors(self.0.as_deref(), |(outer, _)| outer.0.as_deref()).collect();
        steps.reverse();
        for (position, (_, step)) in steps.into_iter().enumerate() {
            match step {
                Step::Key(name) if position == 0 => f.write_str(name)?,
                Step::Key(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn node(source: &Arc<Source>, value: &ast::Value<'_>, place: Place, depth: usize) -> Result<Node, Error> {
    let span = source.span(value.start());
    if depth > MAX_NESTING {
        return Err(Error::new(&span, format!("objects and lists are nested more than {MAX_NESTING} deep")));
    }
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => Value::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => Value::Text(literal.value.to_string()),
        ast::Value::Array(array) => {
            let items = array.elements.iter().enumerate();
            Value::List(
                items
                    .map(|(index, item)| node(source, item, place.index(index), depth + 1))
                    .collect::<Result<_, _>>()?,
            )
        }
        ast::Value::Object(object) => Value::Object(members(source, object, &place, depth)?),
    };
    Ok(Node { span, place, value })
}

fn members(
    source: &Arc<Source>,
    object: &ast::Object<'_>,
    place: &Place,
    depth: usize,
) -> Result<Vec<Member>, Error> {
    let mut names = std::collections::HashSet::new();
    let mut members = Vec::with_capacity(object.properties.len());
    for property in &object.properties {
        let (name, start) = match &property.name {
            ObjectPropName::String(name) => (name.value.to_string(), name.range.start),
            ObjectPropName::Word(name) => (name.value.to_owned(), name.range.start),
        };
        let span = source.span(start);
        if !names.insert(name.clone()) {
            // What Go does, to take the last one, would hide the other.
            return Err(Error::new(&span, format!("`{name}` is written twice in this object")));
        }
        let value = node(source, &property.value, place.key(&name), depth + 1)?;
        members.push(Member { name, span, value });
    }
    Ok(members)
}

/// The beginning of the character that has this byte.
fn boundary(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}
