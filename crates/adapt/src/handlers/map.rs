//! `map`.

use crate::object::Object;
use crate::text::{scalar, text};
use regent_config::{Map, MapInput, Mapping, Template};
use serde_json::Value;

/// What destinations are called among variables.
const SPACE: &str = "map.";

pub(super) fn handler(map: &Map) -> Object {
    let Map { source, destinations, mappings, defaults } = map;
    let mut handler = Object::handler("map");
    handler.set("source", text(source));
    let name = |name: &String| format!("{{{}}}", name.strip_prefix(SPACE).unwrap_or(name));
    handler.set_list("destinations", destinations.iter().map(name));
    handler.set_list("mappings", mappings.iter().map(mapping));
    handler.set_list("defaults", defaults.iter().map(text));
    handler
}

fn mapping(mapping: &Mapping) -> Object {
    let Mapping { input, outputs } = mapping;
    let mut object = Object::new();
    match input {
        MapInput::Text(text) => object.set("input", text.as_str()),
        MapInput::Regexp(pattern) => object.set("input_regexp", pattern.as_str()),
    }
    let output = |output: &Option<Template>| output.as_ref().map_or(Value::Null, scalar);
    object.set("outputs", outputs.iter().map(output).collect::<Vec<_>>());
    object
}
