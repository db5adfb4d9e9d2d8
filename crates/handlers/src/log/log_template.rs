//! Lines of `format transform`: fields of a line of JSON, put where a template names them.

use super::visible::misleads;
use regent_config::{LogPart, LogStep, LogStrings, LogTemplate};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Appends a line, with its end. `json`: an object; of what is none, there is no field.
pub fn write(template: &LogTemplate, json: &str, out: &mut String) {
    let line = serde_json::from_str(json).ok().map(Value::new);
    for part in &template.parts {
        match part {
            LogPart::Text(text) => out.push_str(text),
            LogPart::Field(paths) => {
                let found = paths.iter().find_map(|path| line.as_ref()?.at(path));
                match found.and_then(|found| text_of(found, template.strings)).filter(|text| !text.is_empty())
                {
                    Some(text) => out.push_str(&text),
                    None => out.push_str(&template.placeholder),
                }
            }
        }
    }
    out.push('\n');
}

/// A value of JSON, whose parts are looked for when they are asked for.
struct Value<'a> {
    raw: &'a RawValue,
    parts: OnceCell<Parts<'a>>,
}

enum Parts<'a> {
    Object(BTreeMap<Key<'a>, Value<'a>>),
    List(Vec<Value<'a>>),
    None,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Value<'a> {
    fn new(raw: &'a RawValue) -> Self {
        Self { raw, parts: OnceCell::new() }
    }

    fn at(&self, path: &[LogStep]) -> Option<&'a RawValue> {
        let Some((step, rest)) = path.split_first() else { return Some(self.raw) };
        match (self.parts.get_or_init(|| Parts::of(self.raw)), step) {
            (Parts::Object(fields), LogStep::Key(name)) => fields.get(&Key(Cow::Borrowed(name)))?.at(rest),
            (Parts::List(items), LogStep::Index(index)) => items.get(*index)?.at(rest),
            _ => None,
        }
    }
}

impl<'a> Parts<'a> {
    fn of(raw: &'a RawValue) -> Self {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'{') => serde_json::from_str::<BTreeMap<Key<'a>, &'a RawValue>>(text)
                .map_or(Self::None, |fields| {
                    Self::Object(fields.into_iter().map(|(key, raw)| (key, Value::new(raw))).collect())
                }),
            Some(b'[') => serde_json::from_str::<Vec<&'a RawValue>>(text)
                .map_or(Self::None, |items| Self::List(items.into_iter().map(Value::new).collect())),
            _ => Self::None,
        }
    }
}

/// Numbers, objects and lists are written as they stand in JSON.
fn text_of(raw: &RawValue, strings: LogStrings) -> Option<Cow<'_, str>> {
    let text = Some(raw.get()).filter(|text| *text != "null")?;
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return Some(Cow::Borrowed(text));
    };
    match strings {
        LogStrings::Escaped => Some(Cow::Borrowed(inner)),
        LogStrings::Unescaped => {
            serde_json::from_str::<String>(text).ok().map(|text| Cow::Owned(harmless(&text)))
        }
    }
}

/// No client ends a line, or turns one around.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || misleads(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"level":"info","ts":1777863721.678,"request":{"remote_ip":"192.0.2.7","uri":"/a?\"b\"\u001b\n",
        "headers":{"User-Agent":["curl/8 \"x\"","second"],"Accept":[]}},"user_id":"","status":200,"tls":null}"#;

    fn key(name: &str) -> LogStep {
        LogStep::Key(name.into())
    }

    fn field(steps: &[LogStep]) -> LogPart {
        LogPart::Field(vec![steps.to_vec()])
    }

    fn written(parts: Vec<LogPart>, strings: LogStrings) -> String {
        let template = LogTemplate { text: String::new(), parts, placeholder: "-".into(), strings };
        let mut out = String::new();
        write(&template, LINE, &mut out);
        out
    }

    #[test]
    fn fields_stand_where_they_are_named() {
        let agent = [key("request"), key("headers"), key("User-Agent"), LogStep::Index(0)];
        let parts = vec![
            field(&[key("request"), key("remote_ip")]),
            LogPart::Text(" [".into()),
            field(&[key("ts")]),
            LogPart::Text("] \"".into()),
            field(&agent),
            LogPart::Text("\" ".into()),
            field(&[key("status")]),
        ];
        assert_eq!(
            written(parts, LogStrings::Escaped),
            "192.0.2.7 [1777863721.678] \"curl/8 \\\"x\\\"\" 200\n"
        );
    }

    #[test]
    fn what_is_not_there_or_empty_is_the_placeholder() {
        for path in [
            vec![key("nothing")],
            vec![key("user_id")],
            vec![key("tls")],
            vec![key("status"), key("inner")],
            vec![key("request"), LogStep::Index(0)],
            vec![key("request"), key("headers"), key("Accept"), LogStep::Index(0)],
        ] {
            assert_eq!(written(vec![field(&path)], LogStrings::Escaped), "-\n", "{path:?}");
        }
        let alternatives = LogPart::Field(vec![vec![key("nothing")], vec![key("status")]]);
        assert_eq!(written(vec![alternatives], LogStrings::Escaped), "200\n");
    }

    #[test]
    fn no_text_of_a_client_ends_a_line() {
        let uri = || vec![field(&[key("request"), key("uri")])];
        assert_eq!(written(uri(), LogStrings::Escaped), "/a?\\\"b\\\"\\u001b\\n\n");
        assert_eq!(written(uri(), LogStrings::Unescaped), "/a?\"b\"\\u001b\\u000a\n");
    }
}
