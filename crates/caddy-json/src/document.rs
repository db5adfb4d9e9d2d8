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
        Error::new(&source.span(boundary(source.text(), error.range().start)), format!("this is no JSON: {message}"))
    })?;
    let Some(value) = parsed.value else {
        return Err(Error::new(&source.span(0), "this is no JSON: the file is empty"));
    };
    node(source, &value, Place::default())
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
        let mut steps: Vec<_> = std::iter::successors(self.0.as_deref(), |(outer, _)| outer.0.as_deref()).collect();
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

fn node(source: &Arc<Source>, value: &ast::Value<'_>, place: Place) -> Result<Node, Error> {
    let span = source.span(value.start());
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => Value::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => Value::Text(literal.value.to_string()),
        ast::Value::Array(array) => {
            let items = array.elements.iter().enumerate();
            Value::List(items.map(|(index, item)| node(source, item, place.index(index))).collect::<Result<_, _>>()?)
        }
        ast::Value::Object(object) => Value::Object(members(source, object, &place)?),
    };
    Ok(Node { span, place, value })
}

fn members(source: &Arc<Source>, object: &ast::Object<'_>, place: &Place) -> Result<Vec<Member>, Error> {
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
        let value = node(source, &property.value, place.key(&name))?;
        members.push(Member { name, span, value });
    }
    Ok(members)
}

/// The beginning of the character that has this byte.
fn boundary(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}
