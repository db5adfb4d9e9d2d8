//! What the lines of a log look like.

use crate::object::Object;
use regent_config::{
    LogAction, LogConfig, LogDuration, LogField, LogFilter, LogFormat, LogKeys, LogLevelFormat, LogPrefix,
    LogStrings, LogTemplate, LogTime, ValueAction, ValueEdit, escaped,
};

/// `None`: as the place of the log decides.
pub(super) fn encoder(config: &LogConfig) -> Option<Object> {
    let mut encoder = plain(config);
    if config.prefix == LogPrefix::Journald {
        encoder = Some(around("journald", encoder));
    }
    if !config.append.is_empty() {
        let mut object = around("append", encoder);
        let mut fields = Object::new();
        config.append.iter().for_each(|(name, value)| fields.set(name, escaped(value)));
        object.set("fields", fields);
        encoder = Some(object);
    }
    if !config.filters.is_empty() {
        let mut object = around("filter", encoder);
        let mut fields = Object::new();
        config
            .filters
            .iter()
            .for_each(|LogFilter { field, action }| fields.set(field_name(field), filter(action)));
        object.set("fields", fields);
        encoder = Some(object);
    }
    encoder
}

fn around(format: &str, inner: Option<Object>) -> Object {
    let mut object = Object::of_kind("format", format);
    object.set_some("wrap", inner);
    object
}

fn plain(config: &LogConfig) -> Option<Object> {
    let format = match config.format {
        LogFormat::Auto => return None,
        LogFormat::Json => "json",
        LogFormat::Console => "console",
    };
    let format = if config.template.is_some() { "transform" } else { format };
    let mut object = Object::of_kind("format", format);
    if let Some(LogTemplate { text, placeholder, strings, .. }) = &config.template {
        object.set("template", text.as_str());
        object.set_unless("placeholder", placeholder.as_str(), "-");
        object.set_if("unescape_strings", *strings == LogStrings::Unescaped);
    }
    object.set_some("time_format", config.time_format.as_ref().map(time_name));
    object.set_some("level_format", level_format(config.level_format));
    object.set_some("duration_format", duration_format(config.duration_format));
    let LogKeys { level, time, name, message } = &config.keys;
    let usual = LogKeys::default();
    object.set_unless("level_key", level.as_str(), &usual.level);
    object.set_unless("time_key", time.as_str(), &usual.time);
    object.set_unless("name_key", name.as_str(), &usual.name);
    object.set_unless("message_key", message.as_str(), &usual.message);
    Some(object)
}

fn time_name(time: &LogTime) -> &str {
    match time {
        LogTime::UnixSeconds => "unix_seconds_float",
        LogTime::UnixMilliseconds => "unix_milli_float",
        LogTime::UnixNanoseconds => "unix_nano",
        LogTime::Iso8601 => "iso8601",
        LogTime::Rfc3339 => "rfc3339",
        LogTime::Rfc3339Nanoseconds => "rfc3339_nano",
        LogTime::Wall => "wall",
        LogTime::WallMilliseconds => "wall_milli",
        LogTime::WallNanoseconds => "wall_nano",
        LogTime::CommonLog => "common_log",
        LogTime::Layout(layout) => layout,
    }
}

fn level_format(format: LogLevelFormat) -> Option<&'static str> {
    match format {
        LogLevelFormat::Auto => None,
        LogLevelFormat::Lower => Some("lower"),
        LogLevelFormat::Upper => Some("upper"),
        LogLevelFormat::Color => Some("color"),
    }
}

fn duration_format(format: LogDuration) -> Option<&'static str> {
    match format {
        LogDuration::Seconds => None,
        LogDuration::Milliseconds => Some("ms"),
        LogDuration::Nanoseconds => Some("ns"),
        LogDuration::Text => Some("string"),
    }
}

fn field_name(field: &LogField) -> String {
    let name = match field {
        LogField::RemoteIp => "request>remote_ip",
        LogField::RemotePort => "request>remote_port",
        LogField::ClientIp => "request>client_ip",
        LogField::Proto => "request>proto",
        LogField::Method => "request>method",
        LogField::Host => "request>host",
        LogField::Uri => "request>uri",
        LogField::RequestHeaders => "request>headers",
        LogField::RequestHeader(name) => {
            return format!("request>headers>{}", crate::server::field_name(name));
        }
        LogField::BytesRead => "bytes_read",
        LogField::UserId => "user_id",
        LogField::Duration => "duration",
        LogField::Size => "size",
        LogField::Status => "status",
        LogField::ResponseHeaders => "resp_headers",
        LogField::ResponseHeader(name) => return format!("resp_headers>{}", crate::server::field_name(name)),
    };
    name.to_owned()
}

fn filter(action: &LogAction) -> Object {
    let named = |name: &str| Object::of_kind("filter", name);
    match action {
        LogAction::Delete => named("delete"),
        LogAction::Hash => named("hash"),
        LogAction::Replace(text) => {
            let mut object = named("replace");
            object.set("value", escaped(text));
            object
        }
        LogAction::Rename(name) => {
            let mut object = named("rename");
            object.set("name", name.as_str());
            object
        }
        LogAction::IpMask { v4, v6 } => {
            let mut object = named("ip_mask");
            object.set_unless("ipv4_cidr", *v4, 0);
            object.set_unless("ipv6_cidr", *v6, 0);
            object
        }
        LogAction::Regexp { pattern, replacement } => {
            let mut object = named("regexp");
            set_step(&mut object, pattern, replacement);
            object
        }
        LogAction::MultiRegexp(steps) => {
            let step = |(pattern, replacement): &(String, String)| {
                let mut object = Object::new();
                set_step(&mut object, pattern, replacement);
                object
            };
            let mut object = named("multi_regexp");
            object.set_list("operations", steps.iter().map(step));
            object
        }
        LogAction::Query(edits) => with_edits("query", "parameter", edits),
        LogAction::Cookie(edits) => with_edits("cookie", "name", edits),
    }
}

fn set_step(object: &mut Object, pattern: &str, replacement: &str) {
    object.set("regexp", pattern);
    object.set("value", escaped(replacement));
}

fn with_edits(filter: &str, key: &str, edits: &[ValueEdit]) -> Object {
    let edit = |ValueEdit { name, action }: &ValueEdit| {
        let (kind, value) = match action {
            ValueAction::Delete => ("delete", None),
            ValueAction::Hash => ("hash", None),
            ValueAction::Replace(value) => ("replace", Some(escaped(value))),
        };
        let mut object = Object::of_kind("type", kind);
        object.set(key, escaped(name));
        object.set_some("value", value);
        object
    };
    let mut object = Object::of_kind("filter", filter);
    object.set_list("actions", edits.iter().map(edit));
    object
}
