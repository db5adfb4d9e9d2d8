//! Texts in other forms: JSON, Base64, URLs, checksums that need no library of cryptography.

use super::Function;
use crate::arguments::{Call, Map, string};
use crate::budget::Text;
use crate::front_matter;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use gotmpl::{Result, Value};
use std::fmt::{self, Write};
use std::sync::Arc;

/// Levels of lists and maps in JSON.
const MOST_DEPTH: usize = 128;

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("toJson", |call| json(call, None, true)),
    ("toRawJson", |call| json(call, None, false)),
    ("toPrettyJson", |call| json(call, Some(0), true)),
    ("fromJson", |call| from_json(call).or(Ok(string("")))),
    ("mustFromJson", from_json),
    ("mustToJson", |call| json(call, None, true)),
    ("b64enc", |call| Ok(string(STANDARD.encode(&*call.text(0)?)))),
    ("b64dec", |call| match STANDARD.decode(&*call.text(0)?) {
        Ok(bytes) => Ok(string(String::from_utf8_lossy(&bytes).as_ref())),
        Err(error) => Ok(string(error.to_string())),
    }),
    ("urlSafeB64enc", |call| Ok(string(URL_SAFE.encode(&*call.text(0)?)))),
    ("urlParse", url_parse),
    ("base", |call| Ok(string(base(&call.text(0)?)))),
    ("dir", |call| Ok(string(dir(&call.text(0)?)))),
    ("ext", |call| {
        let text = call.text(0)?;
        let name = text.rsplit('/').next().unwrap_or_default();
        Ok(string(name.rfind('.').map_or("", |at| &name[at..])))
    }),
    ("clean", |call| Ok(string(clean(&call.text(0)?)))),
    ("isAbs", |call| Ok(Value::Bool(call.text(0)?.starts_with('/')))),
    ("adler32sum", |call| Ok(string(adler32(call.text(0)?.as_bytes()).to_string()))),
    ("randInt", |call| {
        let (least, end) = (call.int(0)?, call.int(1)?);
        let span = end.checked_sub(least).filter(|span| *span > 0);
        match span {
            Some(span) => Ok(Value::Int(least + (random() % span.unsigned_abs()) as i64)),
            None => call.fail("the second number has to be greater than the first"),
        }
    }),
    ("randAlphaNum", |call| {
        random_text(call, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    }),
    ("randAlpha", |call| random_text(call, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")),
    ("randNumeric", |call| random_text(call, b"0123456789")),
];

fn json(call: &Call<'_>, indent: Option<usize>, escape: bool) -> Result<Value> {
    let value = call.value(0)?;
    Ok(string(call.run.budget.text(|out| write_json(out, value, Style { indent, depth: 0, escape }))?))
}

#[derive(Clone, Copy)]
struct Style {
    /// Levels that the line is moved in by; `None`: all in one line.
    indent: Option<usize>,
    depth: usize,
    /// Whether it can stand in HTML.
    escape: bool,
}

fn write_json(out: &mut Text<'_>, value: &Value, style: Style) -> fmt::Result {
    let Style { indent, depth, escape } = style;
    if depth > MOST_DEPTH {
        return Err(fmt::Error);
    }
    let inner = indent.map(|level| level + 1);
    let inside = Style { indent: inner, depth: depth + 1, escape };
    match value {
        Value::Nil | Value::Function(_) => out.write_str("null"),
        Value::Bool(flag) => write!(out, "{flag}"),
        Value::Int(_) | Value::Uint(_) => write!(out, "{value}"),
        Value::Float(float) if float.is_finite() => write!(out, "{float}"),
        Value::Float(_) => out.write_str("null"),
        Value::String(text) => write_json_text(out, text, escape),
        Value::List(list) if list.is_empty() => out.write_str("[]"),
        Value::Map(map) if map.is_empty() => out.write_str("{}"),
        Value::List(list) => {
            out.write_char('[')?;
            for (index, value) in list.iter().enumerate() {
                begin_item(out, index, inner)?;
                write_json(out, value, inside)?;
            }
            begin_line(out, indent)?;
            out.write_char(']')
        }
        Value::Map(map) => {
            out.write_char('{')?;
            for (index, (key, value)) in map.iter().filter(|(key, _)| !key.starts_with('\0')).enumerate() {
                begin_item(out, index, inner)?;
                write_json_text(out, key, escape)?;
                out.write_str(if indent.is_some() { ": " } else { ":" })?;
                write_json(out, value, inside)?;
            }
            begin_line(out, indent)?;
            out.write_char('}')
        }
    }
}

fn begin_item(out: &mut Text<'_>, index: usize, level: Option<usize>) -> fmt::Result {
    if index > 0 {
        out.write_char(',')?;
    }
    begin_line(out, level)
}

fn begin_line(out: &mut Text<'_>, level: Option<usize>) -> fmt::Result {
    match level {
        Some(level) => write!(out, "\n{:1$}", "", level * 2),
        None => Ok(()),
    }
}

/// Go writes what could end a script in HTML by its number.
fn write_json_text(out: &mut Text<'_>, text: &str, escape: bool) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '<' | '>' | '&' if escape => write!(out, "\\u{:04x}", u32::from(c))?,
            '\u{2028}' | '\u{2029}' => write!(out, "\\u{:04x}", u32::from(c))?,
            _ if c < ' ' => write!(out, "\\u{:04x}", u32::from(c))?,
            _ => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

fn from_json(call: &Call<'_>) -> Result<Value> {
    let text = call.text(0)?;
    // A value takes more than its text does.
    call.run.budget.bytes(text.len().saturating_mul(16))?;
    match serde_json::from_str(&text) {
        Ok(value) => Ok(front_matter::of_json(value)),
        Err(error) => call.fail(error.to_string()),
    }
}

fn url_parse(call: &Call<'_>) -> Result<Value> {
    let text = call.text(0)?;
    let (rest, fragment) = text.split_once('#').unwrap_or((&text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    let path_at = if scheme.is_empty() { 0 } else { rest.find('/').unwrap_or(rest.len()) };
    let (authority, path) = rest.split_at(path_at);
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let parts = [
        ("scheme", scheme),
        ("host", host),
        ("hostname", name),
        ("path", path),
        ("query", query),
        ("fragment", fragment),
        ("userinfo", user),
        ("opaque", ""),
    ];
    call.new_map(parts.into_iter().map(|(key, value)| (key.into(), string(value))).collect::<Map>())
}

/// As Go's `path.Base`.
fn base(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" if path.is_empty() => ".",
        "" => "/",
        path => path.rsplit('/').next().unwrap_or(path),
    }
}

/// As Go's `path.Dir`.
fn dir(path: &str) -> String {
    clean(path.rfind('/').map_or("", |at| &path[..=at]))
}

/// As Go's `path.Clean`.
fn clean(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (is_absolute, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

fn adler32(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (1u32, 0u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    b << 16 | a
}

/// Nothing that has to be secret: of the keys of the standard library's hash maps.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

fn random_text(call: &Call<'_>, letters: &[u8]) -> Result<Value> {
    let count = call.count(0)?;
    call.run.budget.bytes(count)?;
    let letter = |_| char::from(letters[(random() % letters.len() as u64) as usize]);
    Ok(Value::String(Arc::from((0..count).map(letter).collect::<String>())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::print;

    #[test]
    fn paths() {
        for (path, cleaned, last, first) in [
            ("/a/../b/", "/b", "b", "/b"),
            ("a/b.txt", "a/b.txt", "b.txt", "a"),
            ("", ".", ".", "."),
            ("/", "/", "/", "/"),
        ] {
            assert_eq!(
                (clean(path).as_str(), base(path), dir(path).as_str()),
                (cleaned, last, first),
                "{path}"
            );
        }
    }

    #[test]
    fn json_and_base64() {
        for (template, text) in [
            (r#"{{toJson (dict "a" (list 1 "x<y" nil true))}}"#, r#"{"a":[1,"x\u003cy",null,true]}"#),
            (r#"{{(fromJson "{\"a\": {\"b\": [1, 2]}}").a.b}}"#, "[1 2]"),
            ("{{toPrettyJson (list 1)}}", "[\n  1\n]"),
            (r#"{{b64enc "hello"}} {{b64dec "aGVsbG8="}} {{ext "a/b.tar.gz"}}"#, "aGVsbG8= hello .gz"),
            (r#"{{(urlParse "https://u@h:1/p?q#f").hostname}} {{len (randAlphaNum 12)}}"#, "h 12"),
        ] {
            assert_eq!(print(template), text, "{template}");
        }
    }
}
