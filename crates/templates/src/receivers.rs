//! What a template finds under `.`, and the methods that have arguments.

use crate::arguments::{Call, Map, string, text_of};
use crate::functions::page::canonical;
use crate::listing::{ITEM, item_method};
use crate::page::{FieldChange, Page};
use crate::run::header_map;
use crate::times::{self, KIND};
use crate::{functions, go_time};
use gotmpl::{Result, Value};
use jiff::ToSpan;
use std::sync::Arc;

/// Kinds of receivers that are more than their fields.
const ROOT: &str = "root";
const REQUEST: &str = "request";
const RESPONSE_HEADER: &str = "response header";

/// `.`, as Caddy has it.
pub(crate) fn root(page: &Page, listing: &Map, args: &[Value]) -> Value {
    let request = &page.request;
    // The colon before a port: within brackets there are others.
    let port = request.host.rsplit_once(':').filter(|(name, _)| !name.contains(':') || name.ends_with(']'));
    let host = port.map_or(request.host.as_str(), |(name, _)| name).trim_matches(['[', ']']);
    let original = (&*request.original_method, &*request.original_uri, &*request.original_path);
    let mut fields = listing.clone();
    fields.extend(entries([
        (KIND, string(ROOT)),
        ("Args", Value::List(args.into())),
        ("Req", request_value(page, (&request.method, &request.uri, &request.path))),
        ("OriginalReq", request_value(page, original)),
        ("Host", string(host)),
        ("RemoteIP", string(request.remote_ip.as_str())),
        ("ClientIP", string(request.client_ip.as_str())),
        ("RespHeader", map([(KIND, string(RESPONSE_HEADER))])),
    ]));
    Value::Map(Arc::new(fields))
}

fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Map(Arc::new(entries(fields).collect()))
}

fn entries<const N: usize>(fields: [(&str, Value); N]) -> impl Iterator<Item = (Arc<str>, Value)> {
    fields.into_iter().map(|(key, value)| (key.into(), value))
}

fn request_value(page: &Page, (method, uri, path): (&str, &str, &str)) -> Value {
    let request = &page.request;
    let (encoded, query) = uri.split_once('?').unwrap_or((uri, ""));
    let field = |name: &str| {
        let found = request.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        string(found.map_or("", |(_, value)| value.as_str()))
    };
    let url = map([
        ("Path", string(path)),
        ("RawPath", string(if encoded == path { "" } else { encoded })),
        ("EscapedPath", string(encoded)),
        ("RawQuery", string(query)),
        ("Query", query_map(query)),
        ("RequestURI", string(uri)),
        ("String", string(uri)),
        ("Scheme", string("")),
        ("Host", string("")),
        ("Fragment", string("")),
    ]);
    map([
        (KIND, string(REQUEST)),
        ("Method", string(method)),
        ("URL", url),
        ("Proto", string(request.protocol.as_str())),
        ("Host", string(request.host.as_str())),
        ("Header", header_map(&request.headers)),
        ("RemoteAddr", string(request.remote.as_str())),
        ("RequestURI", string(request.original_uri.as_str())),
        ("Form", query_map(query)),
        ("UserAgent", field("user-agent")),
        ("Referer", field("referer")),
    ])
}

fn query_map(query: &str) -> Value {
    let mut map = Map::new();
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let values = map.entry(key.as_ref().into()).or_insert_with(|| Value::List(Arc::default()));
        if let Value::List(list) = values {
            *list = list.iter().cloned().chain([string(value.as_ref())]).collect();
        }
    }
    Value::Map(Arc::new(map))
}

/// A method, its receiver, and its arguments.
pub(crate) fn method(call: &Call<'_>) -> Result<Value> {
    let name = call.text(0)?;
    let receiver = call.value(1)?;
    let call = Call { run: call.run, name: &name, args: &call.args[2..] };
    if let Some(time) = times::of_value(receiver) {
        return time_method(&call, &time);
    }
    let Value::Map(fields) = receiver else {
        return match receiver {
            Value::Nil => call.fail("nothing has no methods"),
            _ => call.fail(format!("a value of type {} has no method of this name", receiver.type_name())),
        };
    };
    match (fields.get(KIND).and_then(Value::as_str), call.name) {
        (Some(ROOT), "Cookie") => cookie(&call),
        (Some(ITEM), _) => item_method(&call, fields),
        (Some(REQUEST), "FormValue" | "PostFormValue") => first(&call, fields.get("Form")),
        (Some(RESPONSE_HEADER), _) => response_header(&call),
        (None, "Get") => first(&call, Some(receiver)),
        (None, "Values") => Ok(values(&call, receiver)?.unwrap_or(Value::List(Arc::default()))),
        (None, "Has") => Ok(Value::Bool(values(&call, receiver)?.is_some())),
        // A field that holds a function, as in Go.
        _ => call.fail("there is no method of this name here"),
    }
}

/// The values of a name: as it is written, or as names of fields are.
fn values(call: &Call<'_>, map: &Value) -> Result<Option<Value>> {
    let name = call.text(0)?;
    Ok(map.field(&name).or_else(|| map.field(&canonical(&name))).cloned())
}

fn first(call: &Call<'_>, map: Option<&Value>) -> Result<Value> {
    let found = map.map(|map| values(call, map)).transpose()?.flatten();
    match found {
        Some(Value::List(list)) => Ok(list.first().cloned().unwrap_or(string(""))),
        _ => Ok(string("")),
    }
}

/// As `http.Request.Cookies` reads them.
fn cookie(call: &Call<'_>) -> Result<Value> {
    let name = call.text(0)?;
    let fields = call.run.page.request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    let pairs = fields.flat_map(|(_, value)| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let value = pairs.map(|(key, value)| (key.trim(), value)).find(|(key, _)| *key == name);
    let value = value.map_or("", |(_, value)| value);
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    Ok(string(quoted.unwrap_or(value)))
}

fn response_header(call: &Call<'_>) -> Result<Value> {
    let name = call.text(0)?.into_owned();
    let value = || call.text(1).map(|value| value.into_owned());
    let change = match call.name {
        "Get" => return Ok(header_values(call, &name).into_iter().next().unwrap_or(string(""))),
        "Values" => return Ok(Value::List(header_values(call, &name).into())),
        "Set" => FieldChange::Set(name, value()?),
        "Add" => FieldChange::Add(name, value()?),
        "Del" => FieldChange::Remove(name),
        _ => return call.fail("the header of the response has no method of this name"),
    };
    call.run.state().changes.push(change);
    Ok(string(""))
}

/// With what the template has changed so far.
fn header_values(call: &Call<'_>, name: &str) -> Vec<Value> {
    let is_it = |other: &str| other.eq_ignore_ascii_case(name);
    let fields = call.run.page.fields.iter().filter(|(other, _)| is_it(other));
    let mut values: Vec<Value> = fields.map(|(_, value)| string(value.as_str())).collect();
    for change in &call.run.state().changes {
        match change {
            FieldChange::Add(other, value) if is_it(other) => values.push(string(value.as_str())),
            FieldChange::Set(other, value) if is_it(other) => values = vec![string(value.as_str())],
            FieldChange::Remove(other) if is_it(other) => values.clear(),
            _ => {}
        }
    }
    values
}

fn time_method(call: &Call<'_>, time: &jiff::ZonedDateTime) -> Result<Value> {
    let other = || match times::of_value(call.value(0)?) {
        Some(other) => Ok(other.timestamp()),
        None => call.fail("its argument is no time"),
    };
    Ok(match call.name {
        "Format" => string(go_time::format(time, &call.text(0)?)),
        "AddDate" => {
            let number = |index| call.int(index).map(|number| number.clamp(-9999, 9999));
            let span = number(0)?.years().months(number(1)?).days(number(2)?);
            match time.checked_add(span) {
                Ok(time) => times::value(&time),
                Err(_) => return call.fail("the time is too far away"),
            }
        }
        "Add" => {
            let text = text_of(call.run, call.value(0)?)?;
            functions::dates::shifted(call, time, &text)?
        }
        "Before" => Value::Bool(time.timestamp() < other()?),
        "After" => Value::Bool(time.timestamp() > other()?),
        "Equal" => Value::Bool(time.timestamp() == other()?),
        _ => return call.fail("a time has no method of this name"),
    })
}
