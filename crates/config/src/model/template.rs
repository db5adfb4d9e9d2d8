//! Texts with placeholders.

use serde::Serialize;
use std::fmt;

/// A text with placeholders, cut at parse time. A text without any is one [`Part::Text`] (or empty).
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Template(pub Vec<Part>);

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Part {
    Text(String),
    /// The long form of the name, without braces: `http.request.uri.path`, `env.HOME`, `vars.x`, `re.name.1`.
    /// Shorthands (`{path}`) are expanded by the parser. Unknown names become empty, as in Caddy.
    Placeholder(String),
}

impl Template {
    /// A template without placeholders.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { Self(Vec::new()) } else { Self(vec![Part::Text(text)]) }
    }

    /// The text, if there is no placeholder in it.
    pub fn as_text(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Template {
    /// As it could be written, with the long names of placeholders.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Placeholder(name) => write!(f, "{{{name}}}"),
        })
    }
}
