//! Texts with placeholders.

use regent_config::{Part, Template, escaped};
use serde_json::Value;

/// What Regent calls otherwise than Caddy does.
const NAMES: &[(&str, &str)] = &[("vars.map.", ""), ("vars.", "http.vars."), ("re.", "http.regexp.")];

/// With the names that placeholders have in Caddy.
pub(crate) fn text(template: &Template) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => escaped(text),
        Part::Placeholder(name) => placeholder(name),
    };
    template.0.iter().map(part).collect()
}

pub(crate) fn placeholder(name: &str) -> String {
    let found = NAMES.iter().find_map(|(ours, theirs)| Some((theirs, name.strip_prefix(ours)?)));
    match found {
        Some((theirs, rest)) => format!("{{{theirs}{rest}}}"),
        None => format!("{{{name}}}"),
    }
}

pub(crate) fn texts(templates: &[Template]) -> Vec<String> {
    templates.iter().map(text).collect()
}

/// A number where the text is one, as Caddy writes statuses.
pub(crate) fn status(template: &Template) -> Option<Value> {
    let text = text(template);
    let number = text.parse::<u16>().ok().filter(|number| number.to_string() == text);
    match number {
        Some(number) => Some(number.into()),
        None => (!text.is_empty()).then(|| text.into()),
    }
}

/// A number or a truth value where the text is one, as Caddy reads the values of `vars` and `map`.
pub(crate) fn scalar(template: &Template) -> Value {
    let text = text(template);
    let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    match (number, text.as_str()) {
        (Some(number), _) => number.into(),
        (None, "true") => true.into(),
        (None, "false") => false.into(),
        _ => text.into(),
    }
}
