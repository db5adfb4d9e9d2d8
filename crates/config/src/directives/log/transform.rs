//! `format transform TEMPLATE { … }`, after caddyserver/transform-encoder.

use crate::call::Call;
use crate::context::Context;
use crate::model::{LogConfig, LogPart, LogStep, LogStrings, LogTemplate, LogTime, Part, Template};
use crate::problems::error;
use regent_caddyfile::{Error, Token};

/// Shorthands for whole templates: those of Apache's `common` (which is Caddy's word) and `combined`.
const SHORTHANDS: [(&str, &str); 2] = [("{common_log}", COMMON), ("{combined_log}", COMBINED)];

const COMMON: &str = "{request>remote_ip} - {user_id} [{ts}] \"{request>method} {request>uri} {request>proto}\" {status} {size}";
const COMBINED: &str = "{request>remote_ip} - {user_id} [{ts}] \"{request>method} {request>uri} {request>proto}\" {status} {size} \
                        \"{request>headers>Referer>[0]}\" \"{request>headers>User-Agent>[0]}\"";

pub(super) const OPTIONS: [&str; 2] = ["placeholder", "unescape_strings"];

/// What stands behind `transform`, and the usual form of times with it.
pub(super) fn parse(
    cx: &Context<'_>,
    call: &Call<'_>,
    arguments: &[Token],
    config: &mut LogConfig,
) -> Result<(), Error> {
    let given = arguments.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ");
    let text = if arguments.is_empty() { "{common_log}".to_owned() } else { given };
    let place = arguments.first().unwrap_or(call.name);
    let whole =
        SHORTHANDS.iter().find(|(name, whole)| *name == text || *whole == text).map(|(_, whole)| *whole);
    if whole.is_some() {
        config.time_format = Some(LogTime::CommonLog);
    }
    let parts = parts(cx, place, whole.unwrap_or(&text))?;
    if !parts.iter().any(|part| matches!(part, LogPart::Field(_))) {
        let message = "every line would be the same: a template names fields, such as `{request>uri}`";
        return Err(error(place, message));
    }
    let strings = LogStrings::default();
    config.template = Some(LogTemplate { text, parts, placeholder: "-".to_owned(), strings });
    Ok(())
}

/// One of [`OPTIONS`].
pub(super) fn option(option: &Call<'_>, template: &mut LogTemplate) -> Result<(), Error> {
    match option.name() {
        "placeholder" => {
            let token = option.one("placeholder TEXT")?;
            template.placeholder = one_line(token, token.text.clone())?;
        }
        _ => {
            option.exactly::<0>("unescape_strings")?;
            template.strings = LogStrings::Unescaped;
        }
    }
    Ok(())
}

/// All that stands in braces is a field, but for what is the same in all lines.
fn parts(cx: &Context<'_>, token: &Token, text: &str) -> Result<Vec<LogPart>, Error> {
    let any = |text: &str| {
        let (name, _) = text.strip_prefix('{')?.split_once('}')?;
        Some((name.to_owned(), name.len() + 2))
    };
    let parts = Template::parse_by(text, any).0.into_iter().map(|part| match part {
        Part::Text(text) => Ok(LogPart::Text(text)),
        Part::Placeholder(name) => Ok(match fixed(cx, token, &name)? {
            Some(known) => LogPart::Text(known),
            None => LogPart::Field(name.split(':').map(path).collect()),
        }),
    });
    parts.collect()
}

/// What is the same in all lines.
fn fixed(cx: &Context<'_>, token: &Token, name: &str) -> Result<Option<String>, Error> {
    match name.split('.').next() {
        Some("env" | "file" | "system") => {
            let known = cx
                .fixed(&Template::parse(&format!("{{{name}}}")))
                .ok_or_else(|| error(token, format!("`{{{name}}}` is not known when the log is opened")))?;
            one_line(token, known.trim_end().to_owned()).map(Some)
        }
        Some("time") if name.contains('.') => Err(error(
            token,
            format!("`{{{name}}}` is not there; `{{ts}}` is the time of the line, as `time_format` says"),
        )),
        _ => Ok(None),
    }
}

fn one_line(token: &Token, text: String) -> Result<String, Error> {
    match text.contains(char::is_control) {
        true => Err(error(token, "a line has no line breaks nor other control characters in it")),
        false => Ok(text),
    }
}

fn path(text: &str) -> Vec<LogStep> {
    let steps = text.split('>').map(|step| {
        let index = step
            .strip_prefix('[')
            .and_then(|step| step.strip_suffix(']'))
            .and_then(|index| index.parse().ok());
        index.map_or_else(|| LogStep::Key(step.to_owned()), LogStep::Index)
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{errors, load_with};
    use crate::model::LogFormat;

    fn log(format: &str) -> LogConfig {
        let text = format!(":80 {{\nlog {{\nformat {format}\n}}\n}}");
        let loaded = load_with(&text, &[("NODE", "n1")]).unwrap_or_else(|errors| panic!("{errors}"));
        loaded.config.servers[0].sites[0].access_logs[0].clone()
    }

    fn template(format: &str) -> LogTemplate {
        log(format).template.unwrap()
    }

    fn key(name: &str) -> LogStep {
        LogStep::Key(name.into())
    }

    #[test]
    fn formats_of_apache_have_names() {
        let whole = |name: &str| SHORTHANDS.iter().find(|(known, _)| *known == name).unwrap().1;
        for (format, name) in [
            ("transform", "{common_log}"),
            ("transform {common_log}", "{common_log}"),
            ("formatted \"{combined_log}\"", "{combined_log}"),
        ] {
            let log = log(format);
            let spelled_out = template(&format!("transform `{}`", whole(name)));
            assert_eq!(log.template.unwrap().parts, spelled_out.parts, "{format}");
            assert_eq!((log.time_format, log.format), (Some(LogTime::CommonLog), LogFormat::Json));
        }
        let iso = log("transform {combined_log} {\ntime_format iso8601\n}");
        assert_eq!(iso.time_format, Some(LogTime::Iso8601));
    }

    #[test]
    fn fields_are_named_in_braces_and_all_else_is_text() {
        let found = template("transform `\\{x\\} {env.NODE} {request>headers>X-Id>[0]:ts}{ open`");
        let id = vec![key("request"), key("headers"), key("X-Id"), LogStep::Index(0)];
        let expected = [
            LogPart::Text("{x} ".into()),
            LogPart::Text("n1".into()),
            LogPart::Text(" ".into()),
            LogPart::Field(vec![id, vec![key("ts")]]),
            LogPart::Text("{ open".into()),
        ];
        assert_eq!(found.parts, expected);
        assert_eq!((found.placeholder.as_str(), found.strings), ("-", LogStrings::Escaped));
        let found = template("filter {\nwrap transform {status} {\nplaceholder \"\"\nunescape_strings\n}\n}");
        assert_eq!((found.placeholder.as_str(), found.strings), ("", LogStrings::Unescaped));
    }

    #[test]
    fn mistakes() {
        for (format, message) in [
            ("transform plain", "every line would be the same"),
            ("transform {time.now}", "`{ts}` is the time of the line"),
            ("transform {status} {\nwrap json\n}", "unknown option `wrap` of `format transform`"),
            ("transform {status} {\nlevel_format color\n}", "no colours"),
            ("transform {status} {\nplaceholder \"a\nb\"\n}", "no line breaks"),
            ("json {\nplaceholder a\n}", "unknown option `placeholder` of `format json`"),
            ("transform {status} {\nunescape_strings a\n}", "too many arguments"),
        ] {
            let found = errors(&format!("log {{\nformat {format}\n}}"));
            assert!(found.first().is_some_and(|first| first.contains(message)), "{format}: {found:?}");
        }
    }
}
