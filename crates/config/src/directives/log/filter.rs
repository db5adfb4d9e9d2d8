//! `format filter` (modules/logging/filterencoder.go and filters.go of Caddy).

use super::format;
use crate::call::Call;
use crate::conditions::regexp;
use crate::context::Context;
use crate::model::{LogAction, LogConfig, LogField, LogFilter, ValueAction, ValueEdit};
use crate::problems::{error, unknown, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};

const ACTIONS: &[&str] =
    &["cookie", "delete", "hash", "ip_mask", "multi_regexp", "query", "regexp", "rename", "replace"];

/// Changes format and filters of a log.
pub(super) fn apply(cx: &mut Context<'_>, call: &Call<'_>, config: &mut LogConfig) {
    if call.args.len() > 1 {
        cx.errors.push(call.wrong_arguments(1, "format filter { … }"));
    }
    for option in call.options() {
        match option.name() {
            "wrap" => {
                let wrapped = Call { args: option.args, ..option };
                let result = format::apply(cx, &wrapped, config);
                cx.check(result);
            }
            "fields" => {
                let alone = option.no_arguments("fields { FIELD ACTION … }");
                cx.check(alone);
                option.options().for_each(|field| add(cx, &field, config));
            }
            _ => add(cx, &option, config),
        }
    }
}

fn add(cx: &mut Context<'_>, call: &Call<'_>, config: &mut LogConfig) {
    let action = action(cx, call);
    let Some(action) = cx.check(action) else { return };
    let Some(field) = LogField::named(call.name()) else {
        let message = format!("this filter has no effect: access logs have no field `{}`", call.name());
        return cx.warn(call.name, message);
    };
    if let Some(known) = config.filters.iter_mut().find(|filter| filter.field == field) {
        match (&mut known.action, action) {
            // Several regular expressions for a field come one after the other, as in Caddy.
            (LogAction::MultiRegexp(steps), LogAction::Regexp { pattern, replacement }) => {
                steps.push((pattern, replacement));
            }
            (
                LogAction::Regexp { pattern: first, replacement: before },
                LogAction::Regexp { pattern, replacement },
            ) => {
                let steps = vec![(first.clone(), before.clone()), (pattern, replacement)];
                known.action = LogAction::MultiRegexp(steps);
            }
            _ => cx.errors.push(error(call.name, format!("`{}` has a filter already", call.name()))),
        }
        return;
    }
    let is_for_texts = !matches!(action, LogAction::Delete | LogAction::Replace(_) | LogAction::Rename(_));
    if is_for_texts && !field.is_text() {
        let message = format!("`{}` is for texts, and `{}` is none", call.args[0].text, call.name());
        return cx.errors.push(error(call.name, message));
    }
    config.filters.push(LogFilter { field, action });
}

fn action(cx: &mut Context<'_>, call: &Call<'_>) -> Result<LogAction, Error> {
    let Some((kind, args)) = call.args.split_first() else {
        return Err(call.wrong_arguments(1, "FIELD delete | replace TEXT | query { … }"));
    };
    let rest = Call { name: kind, args, block: call.block };
    match kind.text.as_str() {
        "delete" => rest.exactly::<0>("FIELD delete").map(|_| LogAction::Delete),
        "replace" => Ok(LogAction::Replace(cx.fixed_text(rest.one("FIELD replace TEXT")?)?)),
        "query" => edits(cx, &rest, "PARAMETER").map(LogAction::Query),
        "cookie" => edits(cx, &rest, "NAME").map(LogAction::Cookie),
        "hash" => rest.exactly::<0>("FIELD hash").map(|_| LogAction::Hash),
        "multi_regexp" => multi_regexp(cx, &rest).map(LogAction::MultiRegexp),
        "ip_mask" => ip_mask(cx, &rest),
        "rename" => Ok(LogAction::Rename(rest.one("FIELD rename NAME")?.text.clone())),
        "regexp" => {
            let [pattern, replacement] = rest.exactly("FIELD regexp PATTERN TEXT")?;
            Ok(LogAction::Regexp { pattern: regexp(pattern)?, replacement: cx.fixed_text(replacement)? })
        }
        _ => Err(unknown(kind, "filter", ACTIONS)),
    }
}

fn ip_mask(cx: &mut Context<'_>, call: &Call<'_>) -> Result<LogAction, Error> {
    let bits = |token: &Token, most| values::integer(token, 0..=most, "ip_mask");
    let (mut v4, mut v6) = match call.args {
        [] => (0, 0),
        [four] => (bits(four, 32)?, 0),
        [four, six] => (bits(four, 32)?, bits(six, 128)?),
        _ => return Err(call.wrong_arguments(2, "FIELD ip_mask [BITS [BITS6]]")),
    };
    for option in call.options() {
        match option.name() {
            "ipv4" => v4 = bits(option.one("ipv4 BITS")?, 32)?,
            "ipv6" => v6 = bits(option.one("ipv6 BITS")?, 128)?,
            _ => cx.errors.push(unknown_option(option.name, "ip_mask", &["ipv4", "ipv6"], &[])),
        }
    }
    Ok(LogAction::IpMask { v4, v6 })
}

/// `query { … }` and `cookie { … }`.
fn edits(cx: &mut Context<'_>, call: &Call<'_>, what: &str) -> Result<Vec<ValueEdit>, Error> {
    call.no_arguments(&format!(
        "FIELD {} {{ replace {what} TEXT; hash {what}; delete {what} }}",
        call.name()
    ))?;
    let mut edits = Vec::new();
    for option in call.options() {
        let (name, action): (&Token, _) = match option.name() {
            "replace" => {
                let [name, value] = option.exactly(&format!("replace {what} TEXT"))?;
                (name, ValueAction::Replace(cx.fixed_text(value)?))
            }
            "hash" => (option.one(&format!("hash {what}"))?, ValueAction::Hash),
            "delete" => (option.one(&format!("delete {what}"))?, ValueAction::Delete),
            _ => return Err(unknown_option(option.name, call.name(), &["delete", "hash", "replace"], &[])),
        };
        edits.push(ValueEdit { name: cx.fixed_text(name)?, action });
    }
    Ok(edits)
}

fn multi_regexp(cx: &mut Context<'_>, call: &Call<'_>) -> Result<Vec<(String, String)>, Error> {
    call.no_arguments("FIELD multi_regexp { regexp PATTERN TEXT }")?;
    let mut steps = Vec::new();
    for option in call.options() {
        match option.name() {
            "regexp" => {
                let [pattern, replacement] = option.exactly("regexp PATTERN TEXT")?;
                steps.push((regexp(pattern)?, cx.fixed_text(replacement)?));
            }
            _ => return Err(unknown_option(option.name, "multi_regexp", &["regexp"], &[])),
        }
    }
    Ok(steps)
}

impl LogField {
    /// By its name in a Caddyfile; `None` if access logs have no such field.
    fn named(name: &str) -> Option<Self> {
        if let Some(header) = name.strip_prefix("request>headers>") {
            return Some(Self::RequestHeader(header.to_ascii_lowercase()));
        }
        if let Some(header) = name.strip_prefix("resp_headers>") {
            return Some(Self::ResponseHeader(header.to_ascii_lowercase()));
        }
        Some(match name {
            "request>remote_ip" => Self::RemoteIp,
            "request>remote_port" => Self::RemotePort,
            "request>client_ip" => Self::ClientIp,
            "request>proto" => Self::Proto,
            "request>method" => Self::Method,
            "request>host" => Self::Host,
            // Laravel Octane writes the second, and means the first.
            "request>uri" | "uri" => Self::Uri,
            "request>headers" => Self::RequestHeaders,
            "bytes_read" => Self::BytesRead,
            "user_id" => Self::UserId,
            "duration" => Self::Duration,
            "size" => Self::Size,
            "status" => Self::Status,
            "resp_headers" => Self::ResponseHeaders,
            _ => return None,
        })
    }

    fn is_text(&self) -> bool {
        !matches!(
            self,
            Self::RequestHeaders
                | Self::ResponseHeaders
                | Self::BytesRead
                | Self::Duration
                | Self::Size
                | Self::Status
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, load};
    use crate::model::{LogAction, LogConfig, LogField, LogFilter, LogFormat, ValueAction, ValueEdit};

    fn log(directive: &str) -> (LogConfig, Vec<String>) {
        let loaded = load(&format!(":80 {{\n{directive}\n}}")).unwrap_or_else(|errors| panic!("{errors}"));
        let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
        (loaded.config.servers[0].sites[0].access_logs[0].clone(), warnings)
    }

    fn filter(field: LogField, action: LogAction) -> LogFilter {
        LogFilter { field, action }
    }

    #[test]
    fn fields_and_what_becomes_of_them() {
        let (config, warnings) = log(
            "log {\nformat filter {\nwrap json\nrequest>uri query {\nreplace token X\ndelete secret\n}\n\
             fields {\nrequest>headers>Referer delete\nrequest>remote_ip replace hidden\n}\n}\n}",
        );
        assert_eq!(config.format, LogFormat::Json);
        let edits = vec![
            ValueEdit { name: "token".into(), action: ValueAction::Replace("X".into()) },
            ValueEdit { name: "secret".into(), action: ValueAction::Delete },
        ];
        let expected = [
            filter(LogField::Uri, LogAction::Query(edits)),
            filter(LogField::RequestHeader("referer".into()), LogAction::Delete),
            filter(LogField::RemoteIp, LogAction::Replace("hidden".into())),
        ];
        assert_eq!(config.filters, expected);
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn that_of_laravel_octane_and_of_a_field_that_is_not_there() {
        let (config, warnings) = log(
            "log {\nformat filter {\nfields {\nuri query {\nreplace authorization REDACTED\n}\nrequest>tls>x delete\n}\n}\n}",
        );
        assert_eq!(config.format, LogFormat::Auto);
        assert!(matches!(config.filters.as_slice(), [LogFilter { field: LogField::Uri, .. }]));
        assert!(warnings[0].contains("no field `request>tls>x`"), "{warnings:?}");
    }

    #[test]
    fn addresses_are_cut_and_texts_changed() {
        let (config, _) = log(
            "log {\nformat filter {\nrequest>remote_ip ip_mask 16 32\nrequest>client_ip ip_mask {\nipv4 24\n}\n\
             request>uri regexp a+ b\nstatus rename code\n}\n}",
        );
        let expected = [
            filter(LogField::RemoteIp, LogAction::IpMask { v4: 16, v6: 32 }),
            filter(LogField::ClientIp, LogAction::IpMask { v4: 24, v6: 0 }),
            filter(LogField::Uri, LogAction::Regexp { pattern: "a+".into(), replacement: "b".into() }),
            filter(LogField::Status, LogAction::Rename("code".into())),
        ];
        assert_eq!(config.filters, expected);
        let found = errors(
            "log {\nformat filter {\nrequest>uri ip_mask 33\nrequest>host regexp ( x\nstatus ip_mask\n}\n}",
        );
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn regular_expressions_for_a_field_add_up() {
        let (config, _) = log(
            "log {\nformat filter {\nrequest>uri regexp a+ b\nrequest>uri regexp c d\nrequest>uri regexp e f\n}\n}",
        );
        let steps = [("a+", "b"), ("c", "d"), ("e", "f")];
        let steps = steps.map(|(from, to)| (from.to_owned(), to.to_owned())).to_vec();
        assert_eq!(config.filters, [filter(LogField::Uri, LogAction::MultiRegexp(steps))]);
    }

    #[test]
    fn secrets_are_hashed_or_taken_out() {
        let (config, _) = log(
            "log {\nformat filter {\nrequest>headers>Cookie cookie {\nhash session\ndelete ad\n}\nuser_id hash\n\
             request>uri multi_regexp {\nregexp a+ b\nregexp c d\n}\n}\n}",
        );
        let edit = |name: &str, action| ValueEdit { name: name.into(), action };
        let cookies = vec![edit("session", ValueAction::Hash), edit("ad", ValueAction::Delete)];
        let steps = [("a+", "b"), ("c", "d")].map(|(from, to)| (from.to_owned(), to.to_owned())).to_vec();
        let expected = [
            filter(LogField::RequestHeader("cookie".into()), LogAction::Cookie(cookies)),
            filter(LogField::UserId, LogAction::Hash),
            filter(LogField::Uri, LogAction::MultiRegexp(steps)),
        ];
        assert_eq!(config.filters, expected);
    }

    #[test]
    fn mistakes() {
        let found = errors(
            "log {\nformat filter x {\nwrap xml\nrequest>uri hash x\nrequest>uri delet\nstatus query {\n}\nrequest>uri\n\
             request>host delete\nrequest>host delete\nrequest>uri query {\nhide a\n}\n}\n}",
        );
        for (index, part) in [
            "too many arguments for `format`",
            "unknown format `xml`",
            "too many arguments for `hash`",
            "did you mean `delete`?",
            "`query` is for texts, and `status` is none",
            "too few arguments for `request>uri`",
            "`request>host` has a filter already",
            "unknown option `hide` of `query`",
        ]
        .into_iter()
        .enumerate()
        {
            assert!(found[index].contains(part), "{part}: {found:#?}");
        }
        assert_eq!(found.len(), 8);
    }
}
