//! Front matter: what stands before a text and says something of it, in YAML, TOML or JSON.

use crate::arguments::{Map, string};
use gotmpl::Value;
use std::sync::Arc;
use yaml_rust2::parser::{Event, MarkedEventReceiver, Parser, Tag};
use yaml_rust2::scanner::{Marker, TScalarStyle};

/// Levels of lists and maps.
const MOST_DEPTH: usize = 64;

type Parse = fn(&str) -> Result<Value, String>;

/// What it says, and the text behind it. A text without any says nothing.
///
/// # Errors
/// If it does not end, or is not what its first line promises.
pub(crate) fn split(text: &str) -> Result<(Value, &str), String> {
    let Some((first, rest)) = first_line(text) else { return Ok((Value::Nil, text)) };
    let (fences, parse): (&[&str], Parse) = match first {
        "---" => (&["---", "..."], yaml),
        "+++" => (&["+++"], toml),
        "{" => (&["}"], json),
        _ => return Ok((Value::Nil, text)),
    };
    let find = |fence: &&str| rest.find(&format!("\n{fence}")).map(|at| (at, fence.len()));
    let (end, length) = fences.iter().filter_map(find).min().ok_or("unterminated front matter")?;
    Ok((parse(&rest[..=end])?, &rest[end + 1 + length..]))
}

/// The first line that is not empty, without the space around it, and what follows from its end on.
fn first_line(text: &str) -> Option<(&str, &str)> {
    let start = text.find(|c: char| !c.is_whitespace())?;
    let end = start + text[start..].find('\n')?;
    Some((text[start..end].trim(), &text[end..]))
}

fn toml(text: &str) -> Result<Value, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
    Ok(of_toml(toml::Value::Table(table)))
}

fn of_toml(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => string(text),
        toml::Value::Integer(number) => Value::Int(number),
        toml::Value::Float(number) => Value::Float(number),
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Datetime(time) => string(time.to_string()),
        toml::Value::Array(list) => Value::List(list.into_iter().map(of_toml).collect()),
        toml::Value::Table(table) => {
            Value::Map(Arc::new(table.into_iter().map(|(key, value)| (key.into(), of_toml(value))).collect()))
        }
    }
}

fn json(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(&format!("{{{text}}}")).map_err(|error| error.to_string())?;
    Ok(of_json(value))
}

/// Numbers are floats, as in Go, but for those that are whole, which sprig's functions would have whole anyway.
pub(crate) fn of_json(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::Bool(flag),
        Json::Number(number) => match number.as_i64() {
            Some(int) => Value::Int(int),
            None => Value::Float(number.as_f64().unwrap_or(0.0)),
        },
        Json::String(text) => string(text),
        Json::Array(list) => Value::List(list.into_iter().map(of_json).collect()),
        Json::Object(map) => {
            Value::Map(Arc::new(map.into_iter().map(|(key, value)| (key.into(), of_json(value))).collect()))
        }
    }
}

fn yaml(text: &str) -> Result<Value, String> {
    let mut loader = Loader::default();
    Parser::new_from_str(text).load(&mut loader, false).map_err(|error| error.to_string())?;
    match loader.problem {
        Some(problem) => Err(problem.to_owned()),
        None => match loader.done {
            Some(map @ Value::Map(_)) => Ok(map),
            None | Some(Value::Nil) => Ok(Value::Map(Arc::default())),
            Some(_) => Err("front matter in YAML has to be a mapping".into()),
        },
    }
}

/// Makes values of what the parser of YAML reads. It knows no aliases: a page of a few lines can be billions of values
/// with them.
#[derive(Default)]
struct Loader {
    open: Vec<Open>,
    done: Option<Value>,
    problem: Option<&'static str>,
}

enum Open {
    List(Vec<Value>),
    /// With the key whose value comes next.
    Map(Map, Option<Arc<str>>),
}

impl MarkedEventReceiver for Loader {
    fn on_event(&mut self, event: Event, _: Marker) {
        if self.problem.is_some() {
            return;
        }
        match event {
            Event::Alias(_) => self.problem = Some("front matter in YAML can have no aliases"),
            Event::Scalar(text, style, _, tag) => self.put(scalar(text, style, tag)),
            Event::SequenceStart(..) => self.begin(Open::List(Vec::new())),
            Event::MappingStart(..) => self.begin(Open::Map(Map::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => {
                let value = match self.open.pop() {
                    Some(Open::List(list)) => Value::List(list.into()),
                    Some(Open::Map(map, _)) => Value::Map(Arc::new(map)),
                    None => Value::Nil,
                };
                self.put(value);
            }
            _ => {}
        }
    }
}

impl Loader {
    fn begin(&mut self, open: Open) {
        if self.open.len() == MOST_DEPTH {
            self.problem = Some("front matter is nested too deeply");
            return;
        }
        self.open.push(open);
    }

    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            // Of several documents, the first.
            None => drop(self.done.get_or_insert(value)),
            Some(Open::List(list)) => list.push(value),
            Some(Open::Map(map, key)) => match key.take() {
                Some(key) => drop(map.insert(key, value)),
                None => *key = Some(value.to_string().into()),
            },
        }
    }
}

/// By the core schema of YAML 1.2, and what YAML 1.1 has beside it that people write.
fn scalar(text: String, style: TScalarStyle, tag: Option<Tag>) -> Value {
    if style != TScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix == "str") {
        return string(text);
    }
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Nil,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let looks_like_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    match (text.parse(), text.parse()) {
        (Ok(int), _) if looks_like_number => Value::Int(int),
        (_, Ok(float)) if looks_like_number => Value::Float(float),
        _ => string(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_text(text: &str) -> (String, String) {
        let (meta, body) = split(text).unwrap();
        (meta.to_string(), body.to_owned())
    }

    #[test]
    fn three_formats() {
        let map = "map[draft:false n:3 tags:[a b] title:A page]";
        for text in [
            "---\ntitle: A page\ntags: [a, b]\nn: 3\ndraft: false\n---\nbody",
            "\n+++\ntitle = \"A page\"\ntags = [\"a\", \"b\"]\nn = 3\ndraft = false\n+++\nbody",
            "{\n\"title\": \"A page\", \"tags\": [\"a\", \"b\"], \"n\": 3, \"draft\": false\n}\nbody",
        ] {
            assert_eq!(split_text(text), (map.into(), "\nbody".into()), "{text}");
        }
        assert_eq!(split_text("no front matter"), ("<nil>".into(), "no front matter".into()));
    }

    #[test]
    fn mistakes() {
        assert_eq!(split("---\na: 1\n").unwrap_err(), "unterminated front matter");
        assert!(split("---\na: &x 1\nb: *x\n---\n").unwrap_err().contains("aliases"));
        assert!(split("---\n- 1\n---\n").unwrap_err().contains("mapping"));
        assert!(split("+++\na = \n+++\n").is_err());
        let deep = format!("---\na: {}{}\n---\n", "[".repeat(1000), "]".repeat(1000));
        assert!(split(&deep).is_err());
    }
}
