//! `log { output …; format …; level … }`: an access log of the site. The global option of the same name and syntax is
//! about the server's own log.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `output stderr` \| `stdout` \| `discard` \| `file PATH` | stderr | |
//! | `format json` \| `console` | console on a terminal, else json | |
//! | `level DEBUG` \| `INFO` \| `WARN` \| `ERROR` | INFO | |
//! | `format filter { … }` | | access logs only; see below |
//!
//! `format filter` keeps secrets out of an access log. In its block, `wrap json` or `wrap console` is the format itself, and every
//! other line names a field and what becomes of it. These lines can stand in a block `fields { … }`.
//!
//! | line | meaning |
//! |---|---|
//! | `FIELD delete` | the field is left out |
//! | `FIELD replace TEXT` | it is this text |
//! | `FIELD query { replace PARAMETER TEXT; delete PARAMETER }` | so are parameters in the query of a URL |
//!
//! A field is named as in the JSON, with `>` for each step inwards: `status`, `request>uri`, `request>headers>Referer`. `uri` alone
//! is `request>uri` too; in Caddy it is no field, so that the filter has no effect.
//!
//! ```caddyfile
//! log {
//!     output file /var/log/access.log
//!     format json
//! }
//! log {
//!     format filter {
//!         wrap json
//!         request>uri query {
//!             replace token REDACTED
//!         }
//!         request>headers>Referer delete
//!     }
//! }
//! ```

mod filter;

use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{LogConfig, LogFormat, LogLevel, LogOutput, Route};
use crate::problems::{error, not_built_as, unknown, unknown_option};
use regent_caddyfile::{Error, Token};
use std::path::Path;

pub(super) const DIRECTIVE: Directive =
    Directive { name: "log", sorts_as: "log", matchers: Matchers::None, parse: Parse::Routes(misplaced) };

const UNBUILT: &[&str] = &["core", "exclude", "hostnames", "include", "no_hostname", "sampling"];
const FORMATS_UNBUILT: &[&str] = &["append", "formatted", "single_field", "transform"];
const ROLLING: &[&str] = &[
    "backup_time_format",
    "dir_mode",
    "mode",
    "roll_at",
    "roll_compression",
    "roll_gzip",
    "roll_interval",
    "roll_keep",
    "roll_keep_for",
    "roll_local_time",
    "roll_minutes",
    "roll_size",
    "roll_uncompressed",
];

/// Parses the block of a `log`; what it does not say is as in `base`. Mistakes are noted in `cx`.
pub(crate) fn config(cx: &mut Context<'_>, call: &Call<'_>, base: LogConfig) -> LogConfig {
    let mut config = base;
    match call.args {
        [] => {}
        [name] if name.text == "default" => {}
        [name, ..] => cx.errors.push(not_built_as(name, &format!("log {}", name.text))),
    }
    for option in call.options() {
        match option.name() {
            "output" => config.output = output(cx, &option).unwrap_or(config.output),
            "format" if option.args.first().is_some_and(|kind| kind.text == "filter") => {
                filter::apply(cx, &option, &mut config);
            }
            "format" => config.format = cx.check(format(&option)).unwrap_or(config.format),
            "level" => {
                config.level = cx.check(option.one("level LEVEL").and_then(level)).unwrap_or(config.level)
            }
            _ => cx.errors.push(unknown_option(option.name, "log", &["format", "level", "output"], UNBUILT)),
        }
    }
    config
}

/// A `log` at its place is taken out before the routes of a site are parsed.
fn misplaced(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Vec<Route>, Error> {
    Err(error(call.name, "`log` has to stand directly in a site block"))
}

fn output(cx: &mut Context<'_>, call: &Call<'_>) -> Option<LogOutput> {
    let output = target(cx, call);
    let output = cx.check(output)?;
    for option in call.options() {
        match option.name() {
            "roll_disabled" => {}
            _ => cx.errors.push(unknown_option(option.name, "output file", &["roll_disabled"], ROLLING)),
        }
    }
    Some(output)
}

fn target(cx: &Context<'_>, call: &Call<'_>) -> Result<LogOutput, Error> {
    let syntax = "output stderr | stdout | discard | file PATH";
    let Some((kind, rest)) = call.args.split_first() else { return Err(call.wrong_arguments(1, syntax)) };
    match (kind.text.as_str(), rest) {
        ("stderr", []) => Ok(LogOutput::Stderr),
        ("stdout", []) => Ok(LogOutput::Stdout),
        ("discard", []) => Ok(LogOutput::Discard),
        ("file", [path]) => Ok(LogOutput::File(cx.environment.absolute(Path::new(&cx.fixed_text(path)?)))),
        ("net", _) => Err(not_built_as(kind, "output net")),
        ("stderr" | "stdout" | "discard", _) => Err(call.wrong_arguments(1, syntax)),
        ("file", _) => Err(call.wrong_arguments(2, syntax)),
        _ => Err(unknown(kind, "output", &["stderr", "stdout", "discard", "file"])),
    }
}

fn format(call: &Call<'_>) -> Result<LogFormat, Error> {
    let syntax = "format json | console";
    let Some((kind, rest)) = call.args.split_first() else { return Err(call.wrong_arguments(1, syntax)) };
    let name = kind.text.as_str();
    let format = match name {
        "json" => LogFormat::Json,
        "console" => LogFormat::Console,
        _ if FORMATS_UNBUILT.contains(&name) => return Err(not_built_as(kind, &format!("format {name}"))),
        _ => return Err(unknown(kind, "format", &["json", "console"])),
    };
    if let Some(option) = call.options().next() {
        return Err(not_built_as(option.name, &format!("format {name} {}", option.name())));
    }
    if rest.is_empty() { Ok(format) } else { Err(call.wrong_arguments(1, syntax)) }
}

fn level(token: &Token) -> Result<LogLevel, Error> {
    match token.text.to_ascii_uppercase().as_str() {
        "DEBUG" => Ok(LogLevel::Debug),
        "INFO" => Ok(LogLevel::Info),
        "WARN" => Ok(LogLevel::Warn),
        // Nothing here is worse than an error, so the two above it are the same.
        "ERROR" | "PANIC" | "FATAL" => Ok(LogLevel::Error),
        _ => Err(unknown(token, "level", &["DEBUG", "INFO", "WARN", "ERROR"])),
    }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, errors};
    use crate::model::{LogConfig, LogFormat, LogLevel, LogOutput};

    fn logs(directives: &str) -> Vec<LogConfig> {
        config(&format!(":80 {{\n{directives}\n}}")).servers.remove(0).sites.remove(0).access_logs
    }

    #[test]
    fn options() {
        let text = "log {\noutput file logs/a.log {\nroll_disabled\n}\nformat json\nlevel warn\n}\nlog";
        let first = LogConfig {
            output: LogOutput::File("/srv/logs/a.log".into()),
            format: LogFormat::Json,
            level: LogLevel::Warn,
            filters: Vec::new(),
        };
        assert_eq!(logs(text), [first, LogConfig::default()]);
        assert_eq!(logs("respond x"), []);
    }

    #[test]
    fn mistakes() {
        let text = "log {\noutput net x\nformat formatted {\nwrap json\n}\nlevel loud\nhostnames a\noutput fil x\n\
                    output file x {\nroll_size 1\n}\n}\nhandle {\nlog\n}\nlog other";
        let found = errors(text);
        assert_eq!(found[0], "`output net` is not built yet in Regent");
        assert_eq!(found[1], "`format formatted` is not built yet in Regent");
        assert_eq!(found.len(), 8, "{found:?}");
    }
}
