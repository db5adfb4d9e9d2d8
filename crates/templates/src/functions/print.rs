//! Go's own functions that print: those of the library would print as much as they are told to.

use super::Function;
use crate::arguments::{Call, string};
use crate::printf;
use crate::receivers;
use crate::times;
use gotmpl::{Result, Value};
use std::fmt::Write;

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    (crate::methods::METHOD, receivers::method),
    (crate::methods::SHOW, show),
    (crate::methods::STEP, |_| Ok(string(""))),
    ("print", |call| Ok(string(call.run.budget.text(|out| printf::print(out, call.args))?))),
    ("println", |call| Ok(string(call.run.budget.text(|out| printf::println(out, call.args))?))),
    ("printf", |call| {
        let format = call.text(0)?;
        Ok(string(call.run.budget.text(|out| printf::printf(out, &format, &call.args[1..]))?))
    }),
    ("html", |call| Ok(string(gotmpl::html_escape(&printed(call)?)))),
    ("js", |call| Ok(string(gotmpl::js_escape(&printed(call)?)))),
    ("urlquery", |call| Ok(string(gotmpl::url_encode(&printed(call)?)))),
];

fn printed(call: &Call<'_>) -> Result<String> {
    match call.args {
        [Value::String(text)] => Ok(text.to_string()),
        args => call.run.budget.text(|out| printf::print(out, args)),
    }
}

/// What an action prints: a time is a map here, which Go has as a value of its own.
fn show(call: &Call<'_>) -> Result<Value> {
    let value = call.value(0)?;
    match value {
        Value::Map(map) if times::of_value(value).is_some() => {
            Ok(map.get("String").cloned().unwrap_or(Value::Nil))
        }
        Value::List(_) | Value::Map(_) => Ok(string(call.run.budget.text(|out| write!(out, "{value}"))?)),
        _ => Ok(value.clone()),
    }
}
