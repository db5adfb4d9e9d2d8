//! Caddy's functions: files, other pages, and what is known of the request.

use super::Function;
use crate::arguments::{Call, Map, string};
use crate::page::Failed;
use crate::run::Run;
use crate::{files, front_matter, go_time, humanize, markdown, times};
use gotmpl::{Result, TemplateError, Value};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("readFile", |call| call.run.read(&call.text(0)?).map(string)),
    ("import", |call| call.run.import(&call.text(0)?).map(|()| string(""))),
    ("fileExists", |call| Ok(Value::Bool(files::stat(&call.run.page.root, &call.text(0)?).is_ok()))),
    ("listFiles", list_files),
    ("fileStat", file_stat),
    ("env", environment),
    ("expandenv", |call| call.fail("it is not there; write {{env \"NAME\"}}")),
    ("placeholder", placeholder),
    ("ph", placeholder),
    ("httpError", http_error),
    ("markdown", |call| Ok(string(markdown::to_html(&call.text(0)?)))),
    ("splitFrontMatter", split_front_matter),
    ("stripHTML", |call| Ok(string(strip_html(&call.text(0)?)))),
    ("humanize", humanize),
    ("pathEscape", |call| Ok(string(path_escape(&call.text(0)?)))),
    // Regent has no functions that are plugged in.
    ("maybe", |_| Ok(string(""))),
];

/// Renders other pages into this one.
pub(crate) struct Includer(pub(crate) Arc<Run>);

impl Includer {
    /// `include FILE ARGUMENT…`
    pub(crate) fn file(&self, args: &[Value]) -> Result<Value> {
        self.0.budget.step()?;
        let file = Call { run: &self.0, name: "include", args }.text(0)?;
        let source = self.0.read(&file)?;
        self.0.execute(&file, &source, &args[1..]).map(string)
    }

    /// `httpInclude URI`
    pub(crate) fn page(&self, args: &[Value]) -> Result<Value> {
        self.0.budget.step()?;
        let call = Call { run: &self.0, name: "httpInclude", args };
        let uri = call.text(0)?;
        match self.0.supplied.pages.get(&*uri) {
            None => {
                self.0.state().needs.pages.insert(uri.into_owned());
                Ok(string(""))
            }
            Some(Err(reason)) => call.fail(reason),
            Some(Ok(source)) => self.0.execute(&uri, source, &[]).map(string),
        }
    }
}

fn list_files(call: &Call<'_>) -> Result<Value> {
    let names = files::list(&call.run.page.root, &call.text(0)?).map_err(TemplateError::Exec)?;
    call.new_list(names.into_iter().map(string).collect())
}

fn file_stat(call: &Call<'_>) -> Result<Value> {
    let name = call.text(0)?;
    let stat = files::stat(&call.run.page.root, &name).map_err(TemplateError::Exec)?;
    let since =
        stat.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let time = Timestamp::new(seconds, since.subsec_nanos() as i32).unwrap_or(Timestamp::UNIX_EPOCH);
    let base = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let size = i64::try_from(stat.len()).unwrap_or(i64::MAX);
    let fields: Map = [
        ("Name", string(base)),
        ("Size", Value::Int(size)),
        ("IsDir", Value::Bool(stat.is_dir())),
        ("ModTime", times::value(&time.to_zoned_datetime(times::local_zone()))),
    ]
    .into_iter()
    .map(|(key, value)| (key.into(), value))
    .collect();
    call.new_map(fields)
}

fn environment(call: &Call<'_>) -> Result<Value> {
    Ok(string(std::env::var(&*call.text(0)?).unwrap_or_default()))
}

fn placeholder(call: &Call<'_>) -> Result<Value> {
    let name = call.text(0)?;
    if let Some(value) = call.run.supplied.placeholders.get(&*name) {
        return Ok(string(value.as_str()));
    }
    call.run.state().needs.placeholders.insert(name.into_owned());
    Ok(string(""))
}

fn http_error(call: &Call<'_>) -> Result<Value> {
    let status = u16::try_from(call.int(0)?).ok().filter(|status| (400..600).contains(status));
    let Some(status) = status else { return call.fail("a status of 400 to 599 is needed") };
    call.run.state().failed.get_or_insert(Failed::Status(status));
    call.fail(status.to_string())
}

fn split_front_matter(call: &Call<'_>) -> Result<Value> {
    let text = call.text(0)?;
    let (meta, body) = front_matter::split(&text).or_else(|reason| call.fail(reason))?;
    let fields = [("Meta", meta), ("Body", string(body))];
    call.new_map(fields.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

fn strip_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0usize;
    let mut quote = None;
    for c in text.chars() {
        match c {
            '"' | '\'' if depth > 0 && quote.is_none() => quote = Some(c),
            _ if depth > 0 && quote == Some(c) => quote = None,
            '<' if quote.is_none() => depth += 1,
            '>' if quote.is_none() && depth > 0 => depth -= 1,
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

fn humanize(call: &Call<'_>) -> Result<Value> {
    let kind = call.text(0)?;
    let data = call.text(1)?;
    let (kind, layout) = kind.split_once(':').unwrap_or((&kind, go_time::RFC1123Z));
    match kind {
        "size" => match data.parse() {
            Ok(bytes) => Ok(string(humanize::bytes(bytes))),
            Err(_) => call.fail(format!("`{data}` is no number of bytes")),
        },
        "time" => {
            let time = go_time::parse(layout, &data, TimeZone::UTC).or_else(|reason| call.fail(reason))?;
            Ok(string(humanize::relative(time.timestamp().as_second() - call.run.page.now.as_second())))
        }
        _ => call.fail("the first argument is `size`, `time` or `time:LAYOUT`"),
    }
}

/// As Go's `url.PathEscape`.
fn path_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => out.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'~' | b'$' | b'&' | b'+' | b'=' | b':' | b'@' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The name of a field as Go writes it: `content-type` is `Content-Type`.
pub(crate) fn canonical(name: &str) -> String {
    let mut upper = true;
    let letter = |c: char| {
        let c = if upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        upper = c == '-';
        c
    };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert_eq!(strip_html("Shows <b title='a>b'>only</b> text > all"), "Shows only text > all");
        assert_eq!(path_escape("50%_valid filename?.jpg"), "50%25_valid%20filename%3F.jpg");
        assert_eq!(canonical("x-forwarded-FOR"), "X-Forwarded-For");
    }
}
