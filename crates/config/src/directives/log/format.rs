//! `format json` and `format console`.

use crate::call::Call;
use crate::context::Context;
use crate::model::{LogConfig, LogFormat, LogLevelFormat, LogTime};
use crate::problems::{not_built_as, unknown, unknown_option};
use regent_caddyfile::{Error, Token};

const UNBUILT: &[&str] = &["formatted", "single_field", "transform"];
const OPTIONS: &[&str] = &["level_format", "time_format", "time_local"];
const OPTIONS_UNBUILT: &[&str] = &[
    "caller_key",
    "duration_format",
    "level_key",
    "line_ending",
    "message_key",
    "name_key",
    "stacktrace_key",
    "time_key",
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
    let syntax = "format json | console";
    let Some((kind, rest)) = call.args.split_first() else { return Err(call.wrong_arguments(1, syntax)) };
    config.format = match kind.text.as_str() {
        "json" => LogFormat::Json,
        "console" => LogFormat::Console,
        name if UNBUILT.contains(&name) => return Err(not_built_as(kind, &format!("format {name}"))),
        _ => return Err(unknown(kind, "format", &["json", "console", "filter", "append"])),
    };
    if !rest.is_empty() {
        return Err(call.wrong_arguments(1, syntax));
    }
    for option in call.options() {
        let result = match option.name() {
            "time_format" => option
                .one("time_format FORMAT")
                .and_then(|token| named(token, "time format", TIMES))
                .map(|format| config.time_format = Some(format)),
            "level_format" => option
                .one("level_format lower | upper")
                .and_then(level_format)
                .map(|format| config.level_format = format),
            "time_local" => {
                cx.warn(option.name, "`time_local` has no effect: times in logs are in UTC");
                Ok(())
            }
            _ => Err(unknown_option(option.name, &format!("format {}", kind.text), OPTIONS, OPTIONS_UNBUILT)),
        };
        cx.check(result);
    }
    Ok(())
}

fn level_format(token: &Token) -> Result<LogLevelFormat, Error> {
    match token.text.as_str() {
        "lower" => Ok(LogLevelFormat::Lower),
        "upper" => Ok(LogLevelFormat::Upper),
        "color" => Err(not_built_as(token, "level_format color")),
        _ => Err(unknown(token, "level format", &["lower", "upper"])),
    }
}

fn named<T: Copy>(token: &Token, kind: &str, known: &[(&str, T)]) -> Result<T, Error> {
    let found = known.iter().find(|(name, _)| *name == token.text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        unknown(token, kind, &names)
    })
}
