//! `map`: variables whose values depend on another's.

use crate::context::exchange::Exchange;
use crate::error::BuildError;
use crate::templates::text::Text;
use regent_config::{self as config, MapInput, Part, Template};
use regex::bytes::{Captures, Regex};

/// The compiled directive.
pub(crate) struct Map {
    source: Text,
    destinations: Vec<Destination>,
    mappings: Vec<Mapping>,
}

struct Destination {
    variable: String,
    default: Option<Text>,
}

struct Mapping {
    input: Input,
    outputs: Vec<Option<Output>>,
}

enum Input {
    Text(String),
    Regex(Regex),
}

/// Constants, in which `$1` may be a group, and values, in which it may not.
struct Output(Vec<Piece>);

enum Piece {
    Literal(String),
    Value(Text),
}

/// The mapping that counts, with the groups of its regular expression.
struct Match<'a, 'b> {
    mapping: &'a Mapping,
    captures: Option<Captures<'b>>,
}

impl Map {
    pub(crate) fn compile(map: &config::Map) -> Result<Self, BuildError> {
        let destination = |(index, variable): (usize, &String)| Destination {
            variable: variable.clone(),
            default: map.defaults.get(index).map(Text::compile),
        };
        Ok(Self {
            source: Text::compile(&map.source),
            destinations: map.destinations.iter().enumerate().map(destination).collect(),
            mappings: map.mappings.iter().map(Mapping::compile).collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn handle(&self, exchange: &mut Exchange) {
        let source = self.source.render(exchange).into_owned();
        let found = self.mappings.iter().find_map(|mapping| mapping.of(&source));
        for (index, destination) in self.destinations.iter().enumerate() {
            let output = found.as_ref().and_then(|found| found.output(index, exchange));
            let value = output.unwrap_or_else(|| match &destination.default {
                Some(default) => default.render(exchange).into_owned(),
                None => Vec::new(),
            });
            exchange.set_var(&destination.variable, String::from_utf8_lossy(&value).into_owned());
        }
    }
}

impl Mapping {
    fn compile(mapping: &config::Mapping) -> Result<Self, BuildError> {
        let input = match &mapping.input {
            MapInput::Text(text) => Input::Text(text.clone()),
            MapInput::Regexp(pattern) => Input::Regex(
                Regex::new(pattern)
                    .map_err(|source| BuildError::Regex { pattern: pattern.clone(), source })?,
            ),
        };
        Ok(Self {
            input,
            outputs: mapping.outputs.iter().map(|output| output.as_ref().map(Output::compile)).collect(),
        })
    }

    fn of<'b>(&self, value: &'b [u8]) -> Option<Match<'_, 'b>> {
        match &self.input {
            Input::Text(text) => {
                (text.as_bytes() == value).then_some(Match { mapping: self, captures: None })
            }
            Input::Regex(regex) => {
                regex.captures(value).map(|captures| Match { mapping: self, captures: Some(captures) })
            }
        }
    }
}

impl Output {
    fn compile(template: &Template) -> Self {
        let piece = |part: &Part| match part {
            Part::Text(text) => Piece::Literal(text.clone()),
            Part::Placeholder(_) => Piece::Value(Text::compile(&Template(vec![part.clone()]))),
        };
        Self(template.0.iter().map(piece).collect())
    }
}

impl Match<'_, '_> {
    fn output(&self, index: usize, exchange: &Exchange) -> Option<Vec<u8>> {
        let output = self.mapping.outputs.get(index)?.as_ref()?;
        let mut value = Vec::new();
        for piece in &output.0 {
            match (piece, &self.captures) {
                (Piece::Literal(text), Some(captures)) => captures.expand(text.as_bytes(), &mut value),
                (Piece::Literal(text), None) => value.extend_from_slice(text.as_bytes()),
                (Piece::Value(text), _) => value.extend_from_slice(&text.render(exchange)),
            }
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::get;

    fn mapping(input: MapInput, outputs: &[Option<Template>]) -> config::Mapping {
        config::Mapping { input, outputs: outputs.to_vec() }
    }

    /// What the two destinations are for this URI.
    fn mapped(uri: &str) -> (String, String) {
        let path = || Part::Placeholder("http.request.uri.path".into());
        let map = config::Map {
            source: Template(vec![path()]),
            destinations: vec!["map.a".into(), "map.b".into()],
            mappings: vec![
                mapping(MapInput::Text("/x".into()), &[Some(Template::text("$1")), None]),
                mapping(
                    MapInput::Regexp("^/(?<first>[^/]+)/(.*)$".into()),
                    &[
                        Some(Template::text("${first}-$2")),
                        Some(Template(vec![Part::Text("<".into()), path()])),
                    ],
                ),
            ],
            defaults: vec![Template::text("none"), Template::text("default")],
        };
        let mut exchange = get(uri);
        Map::compile(&map).unwrap().handle(&mut exchange);
        let value = |name| {
            let mut out = Vec::new();
            exchange.write_var(name, &mut out);
            String::from_utf8(out).unwrap()
        };
        (value("map.a"), value("map.b"))
    }

    #[test]
    fn the_first_input_that_fits_counts() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(mapped("/x"), pair("$1", "default"));
        assert_eq!(mapped("/a/b/c"), pair("a-b/c", "</a/b/c"));
        assert_eq!(mapped("/other"), pair("none", "default"));
    }

    #[test]
    fn what_a_client_sends_is_no_group() {
        assert_eq!(mapped("/a/$1%7Bpath%7D").0, "a-$1{path}");
        assert_eq!(mapped("/a/$1").1, "</a/$1");
    }
}
