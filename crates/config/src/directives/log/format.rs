//! `format json`, `format console`, `format transform`, and `format journald` around them.

use super::transform;
use crate::call::Call;
use crate::context::Context;
use crate::model::{LogConfig, LogDuration, LogFormat, LogLevelFormat, LogPrefix, LogTime};
use crate::problems::{error, not_built_as, unknown, unknown_option};
use regent_caddyfile::{Error, Token};

const UNBUILT: &[&str] = &["single_field"];
const OPTIONS: &[&str] = &[
    "caller_key",
    "duration_format",
    "level_format",
    "level_key",
    "message_key",
    "name_key",
    "stacktrace_key",
    "time_format",
    "time_key",
    "time_local",
];
const OPTIONS_UNBUILT: &[&str] = &["line_ending"];

const DURATIONS: &[(&str, LogDuration)] = &[
    ("s", LogDuration::Seconds),
    ("second", LogDuration::Seconds),
    ("seconds", LogDuration::Seconds),
    ("ms", LogDuration::Milliseconds),
    ("milli", LogDuration::Milliseconds),
    ("millis", LogDuration::Milliseconds),
    ("ns", LogDuration::Nanoseconds),
    ("nano", LogDuration::Nanoseconds),
    ("nanos", LogDuration::Nanoseconds),
    ("string", LogDuration::Text),
];

const TIMES: &[(&str, LogTime)] = &[
    ("common_log", LogTime::CommonLog),
    ("iso8601", LogTime::Iso8601),
    ("rfc3339", LogTime::Rfc3339),
    ("rfc3339_nano", LogTime::Rfc3339Nanoseconds),
    ("unix_milli_float", LogTime::UnixMilliseconds),
    ("unix_nano", LogTime::UnixNanoseconds),
    ("unix_seconds_float", LogTime::UnixSeconds),
    ("wall", LogTime::Wall),
    ("wall_milli", LogTime::WallMilliseconds),
    ("wall_nano", LogTime::WallNanoseconds),
];

/// Changes the format of a log; the kind is the first argument.
pub(super) fn apply(cx: &mut Context<'_>, call: &Call<'_>, config: &mut LogConfig) -> Result<(), Error> {
    let syntax = "format json | console | journald | transform TEMPLATE";
    let Some((kind, rest)) = call.args.split_first() else { return Err(call.wrong_arguments(1, syntax)) };
    config.template = None;
    config.format = match kind.text.as_str() {
        "json" => LogFormat::Json,
        // Caddy's module has both names.
        "transform" | "formatted" => {
            transform::parse(cx, call, rest, config)?;
            LogFormat::Json
        }
        "console" => LogFormat::Console,
        "journald" if rest.is_empty() => return journald(cx, call, config),
        name if UNBUILT.contains(&name) => return Err(not_built_as(kind, &format!("format {name}"))),
        _ => {
            return Err(unknown(
                kind,
                "format",
                &["json", "console", "journald", "transform", "filter", "append"],
            ));
        }
    };
    if !rest.is_empty() && config.template.is_none() {
        return Err(call.wrong_arguments(1, syntax));
    }
    for option in call.options() {
        let result = match option.name() {
            "level_key" => key(&option).map(|key| config.keys.level = key),
            "time_key" => key(&option).map(|key| config.keys.time = key),
            "name_key" => key(&option).map(|key| config.keys.name = key),
            "message_key" => key(&option).map(|key| config.keys.message = key),
            // No line says where in the source it comes from.
            "caller_key" | "stacktrace_key" => key(&option).map(drop),
            "duration_format" => option
                .one("duration_format FORMAT")
                .and_then(|token| named(token, "duration format", DURATIONS))
                .map(|format| config.duration_format = format),
            "time_format" => option
                .one("time_format FORMAT")
                .and_then(time_format)
                .map(|format| config.time_format = Some(format)),
            "level_format" => option
                .one("level_format lower | upper | color")
                .and_then(|token| level_format(token, config))
                .map(|format| config.level_format = format),
            "time_local" => {
                cx.warn(option.name, "`time_local` has no effect: times in logs are in UTC");
                Ok(())
            }
            name => match &mut config.template {
                Some(template) if transform::OPTIONS.contains(&name) => transform::option(&option, template),
                template => {
                    let own: &[_] = if template.is_some() { &transform::OPTIONS } else { &[] };
                    let owner = format!("format {}", kind.text);
                    Err(unknown_option(option.name, &owner, &[OPTIONS, own].concat(), OPTIONS_UNBUILT))
                }
            },
        };
        cx.check(result);
    }
    Ok(())
}

/// `format journald { wrap json }`.
fn journald(cx: &mut Context<'_>, call: &Call<'_>, config: &mut LogConfig) -> Result<(), Error> {
    config.prefix = LogPrefix::Journald;
    config.format = LogFormat::Auto;
    for option in call.options() {
        match option.name() {
            "wrap" => apply(cx, &option, config)?,
            _ => return Err(unknown_option(option.name, "format journald", &["wrap"], &[])),
        }
    }
    Ok(())
}

fn key(option: &Call<'_>) -> Result<String, Error> {
    option.one(&format!("{} NAME", option.name())).map(|token| token.text.clone())
}

fn level_format(token: &Token, config: &LogConfig) -> Result<LogLevelFormat, Error> {
    match token.text.as_str() {
        "color" if config.template.is_some() => {
            Err(error(token, "there are no colours in `format transform`"))
        }
        "lower" => Ok(LogLevelFormat::Lower),
        "upper" => Ok(LogLevelFormat::Upper),
        "color" => Ok(LogLevelFormat::Color),
        _ => Err(unknown(token, "level format", &["lower", "upper", "color"])),
    }
}

/// One of Caddy's names, or a layout of Go's. (Caddy takes a name with a slip for a layout too, which is the same text in each
/// line.)
fn time_format(token: &Token) -> Result<LogTime, Error> {
    const LONGEST: usize = 100;
    const STANDS_FOR_SOMETHING: [&str; 5] = ["2006", "15:04", "3:04", "Jan", "Mon"];
    let text = &token.text;
    let is_named = TIMES.iter().any(|(name, _)| name == text);
    if is_named || !STANDS_FOR_SOMETHING.iter().any(|piece| text.contains(piece)) {
        return named(token, "time format", TIMES);
    }
    if text.len() > LONGEST || text.contains(|c: char| c.is_control() || matches!(c, '"' | '\\')) {
        return Err(error(token, "a layout of times has at most 100 bytes, and no quotes and backslashes"));
    }
    Ok(LogTime::Layout(text.clone()))
}

fn named<T: Clone>(token: &Token, kind: &str, known: &[(&str, T)]) -> Result<T, Error> {
    let found = known.iter().find(|(name, _)| *name == token.text);
    found.map(|(_, value)| value.clone()).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        unknown(token, kind, &names)
    })
}
