//! `log { output …; format …; level … }`: an access log of the site. The global option of the same name and syntax is
//! about the server's own log.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `output stderr` \| `stdout` \| `discard` \| `file PATH { … }` \| `net ADDRESS { … }` | stderr | |
//! | `format json { … }` \| `console { … }` | console on a terminal, else json | |
//! | `format transform [TEMPLATE] { … }` | the format of Apache's access logs | lines with these fields; see below |
//! | `format journald { wrap json }` | | a format with systemd's mark of how bad it is before each line, and, as `console`, without times |
//! | `level DEBUG` \| `INFO` \| `WARN` \| `ERROR` | INFO | |
//! | `format filter { … }` | | changes fields of requests; see below |
//! | `format append { NAME VALUE … }` | | fields that every line has; in its block, `wrap json` is the format itself |
//! | `hostnames NAME…` | all of the site | access logs only: requests for these hosts |
//! | `no_hostname` | | access logs only: requests for which [log_name](#log_name) names it |
//! | `sampling { interval D; first N; thereafter N }` | off; 1s, 100, 100 | of each interval the first lines, and then one in so many; in the server's own log, of lines that say the same |
//!
//! `log NAME { … }` is an access log with a name, which is in its lines. One that says nothing of itself but its name and hosts
//! goes where the server's own log goes, and looks like that.
//!
//! In the global options, `log NAME { … }` is a log of the server beside its own one. It has the lines of all loggers, unless it
//! says whose:
//!
//! | option | meaning |
//! |---|---|
//! | `include LOGGER…` | these loggers only: `php`, `task`, `tls`, `proxy`, …, as the lines name them; `http.log.access` are all access logs, `http.log.access.NAME` is one with a name |
//! | `exclude LOGGER…` | all but these. Of two names that fit, in `include` and here, the longer one counts |
//!
//! The server's own log can have them, too. It has no lines of access logs with an `output`, `format`, `level` or `sampling` of
//! their own.
//!
//! A file that is full is followed by a new one: `access.log` is renamed to `access-2026-05-04T03-02-01.678.log`, and compressed (`.gz`, `.zst`). It
//! is made with its directory if need be.
//!
//! | option of `output file` | default | meaning |
//! |---|---|---|
//! | `roll_size SIZE` | 100MiB | bytes that a file may have |
//! | `roll_interval DURATION` | | how long a file is written to, at most |
//! | `roll_at HH:MM…`, `roll_minutes MINUTE…` | | times of the day, or minutes of each hour, by UTC, at which a new file begins, with the next line |
//! | `roll_keep N` | 10 | old files |
//! | `roll_keep_for DURATION` | 2160h | |
//! | `roll_uncompressed`, or `roll_compression gzip` \| `zstd` \| `none` | gzip | whether old files are compressed |
//! | `roll_disabled` | | the file grows for ever, or is [rotated from outside](logs.md) |
//! | `mode MODE` | as the process makes files | permissions of the file, in octal digits |
//! | `dir_mode MODE` \| `inherit` \| `from_file` | as the process makes directories | those of directories that are made: in octal digits, as the directory above them has, or as the file's with a way through for those who can read |
//!
//! `output net` sends lines to a collector: over TCP (`HOST:PORT`, or `tcp/HOST:PORT`), a Unix socket (`unix/PATH`), or UDP
//! (`udp/HOST:PORT`), each line a datagram. No request waits for it: see [Logs](logs.md#logs-over-the-network).
//!
//! | option of `output net` | default | meaning |
//! |---|---|---|
//! | `dial_timeout DURATION` | 10s | how long a try to connect may take |
//! | `soft_start` | | the server starts, or loads its configuration, although the collector cannot be reached |
//!
//! | option of `format json` and `console` | default | meaning |
//! |---|---|---|
//! | `time_format FORMAT` | unix_seconds_float in JSON, else wall_milli | unix_seconds_float, unix_milli_float, unix_nano, iso8601, rfc3339, rfc3339_nano, wall, wall_milli, wall_nano, common_log, or a layout of Go's such as `2006-01-02 15:04:05` |
//! | `level_format lower` \| `upper` \| `color` | lower in JSON, else upper | `color`: upper, with the codes of terminals |
//! | `level_key`, `time_key`, `name_key`, `message_key NAME` | level, ts, logger, msg | what these are called in JSON; `""` leaves them out |
//! | `duration_format FORMAT` | seconds | access logs only: seconds, ms, ns, or string for `1.5ms` |
//! | `caller_key`, `stacktrace_key NAME` | | taken and not needed: no line has them |
//!
//! `format transform "{common_log}"` writes what nginx and Apache call the common log format, and `{combined_log}` the combined one,
//! for programs that read those. Any other template is text with the names of fields in braces, as the lines in JSON have them:
//! `{status}`, `{request>uri}`, `{request>headers>User-Agent>[0]}`; of `{request>headers>X-Request-Id>[0]:request>remote_ip}` the
//! first that is there. `{env.NAME}`, `{file./PATH}` and `{system.hostname}` are possible too.
//!
//! | option of `format transform` | default | meaning |
//! |---|---|---|
//! | `placeholder TEXT` | `-` | stands for what is not there or empty |
//! | `unescape_strings` | | texts as they were, with plain quotes; what would end the line is escaped all the same |
//! | those of `format json` | | `time_format` is common_log with `{common_log}` and `{combined_log}` |
//!
//! `format filter` keeps secrets out of an access log. In its block, `wrap json`, `wrap console` or `wrap transform` is the format itself, and every
//! other line names a field and what becomes of it. These lines can stand in a block `fields { … }`.
//!
//! | line | meaning |
//! |---|---|
//! | `FIELD delete` | the field is left out |
//! | `FIELD replace TEXT` | it is this text |
//! | `FIELD hash` | it is the first eight digits of its SHA-256, so that equal values can still be told |
//! | `FIELD query { replace PARAMETER TEXT; hash PARAMETER; delete PARAMETER }` | so are parameters in the query of a URL |
//! | `FIELD cookie { replace NAME TEXT; hash NAME; delete NAME }` | so are cookies; they are in the log with [log_credentials](#servers) alone |
//! | `FIELD ip_mask [BITS [BITS6]]`, or a block of `ipv4 BITS` and `ipv6 BITS` | addresses are cut to so many bits; without a number, to none |
//! | `FIELD regexp PATTERN TEXT` | what the pattern finds is this text, in which `$1` is a group |
//! | `FIELD multi_regexp { regexp PATTERN TEXT }` | the same for several, one after the other; several lines of `regexp` for a field are that too |
//! | `FIELD rename NAME` | it has another name |
//!
//! A field is named as in the JSON, with `>` for each step inwards: `status`, `request>uri`, `request>headers>Referer`. `uri` alone
//! is `request>uri` too; in Caddy it is no field, so that the filter has no effect.
//!
//! ```caddyfile
//! log {
//!     output file /var/log/access.log
//!     format json
//! }
//! log shop
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
mod format;
mod output;
mod transform;

use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::context::Context;
use crate::host_names;
use crate::matchers::Scope;
use crate::model::{Global, LogConfig, LogLevel, LogSampling, LogScope, Route, ServerLog};
use crate::problems::{error, not_built_as, unknown, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};
use std::time::Duration;

pub(super) const DIRECTIVE: Directive =
    Directive { name: "log", sorts_as: "log", matchers: Matchers::None, parse: Parse::Routes(misplaced) };

const OPTIONS: &[&str] = &["format", "hostnames", "level", "no_hostname", "output", "sampling"];
const UNBUILT: &[&str] = &["core"];

/// Parses the block of an access log: as it is, unless it says nothing of itself, and as logs of the server that have its
/// lines. Mistakes are noted in `cx`.
pub(crate) fn access_logs(cx: &mut Context<'_>, call: &Call<'_>, global: &Global) -> Vec<LogConfig> {
    let own = access_log(cx, call);
    let is_bare = call.options().all(|option| matches!(option.name(), "hostnames" | "no_hostname"));
    let logger =
        own.name.as_ref().map_or("http.log.access".to_owned(), |name| format!("http.log.access.{name}"));
    let within =
        |log: ServerLog| LogConfig { name: own.name.clone(), scope: own.scope.clone(), ..log.config };
    // What goes its own way is not in the default log too, as in Caddy.
    let logs = global.server_logs().into_iter().skip(usize::from(!is_bare));
    let others = logs.filter(|log| log.selection.allows(&logger)).map(within);
    let mut found: Vec<_> = others.collect();
    if !is_bare {
        found.insert(0, own);
    }
    found
}

fn access_log(cx: &mut Context<'_>, call: &Call<'_>) -> LogConfig {
    let mut config = LogConfig::default();
    match call.args {
        [] => {}
        [name] => config.name = Some(name.text.clone()),
        _ => cx.errors.push(call.wrong_arguments(1, "log [NAME] { OPTION… }")),
    }
    for option in call.options() {
        let result = match option.name() {
            "hostnames" => option
                .some("hostnames NAME…")
                .and_then(|names| names.iter().map(host_names::host).collect())
                .map(|names| config.scope = LogScope::Hosts(names)),
            "no_hostname" => option.exactly::<0>("no_hostname").map(|_| config.scope = LogScope::Named),
            "sampling" => sampling(cx, &option).map(|sampling| config.sampling = Some(sampling)),
            "format" if is_format(&option, "filter") => {
                filter::apply(cx, &option, &mut config);
                Ok(())
            }
            "format" if is_format(&option, "append") => append(cx, &option, &mut config),
            _ => common(cx, &option, &mut config),
        };
        cx.check(result);
    }
    config
}

/// Parses the block of a log of the server; what it does not say is as in `base`. Mistakes are noted in `cx`.
pub(crate) fn server_log(cx: &mut Context<'_>, call: &Call<'_>, base: LogConfig) -> LogConfig {
    let mut config = base;
    for option in call.options() {
        let of_access_logs = ["hostnames", "no_hostname"];
        let result = match option.name() {
            name if of_access_logs.contains(&name) => {
                Err(not_built_as(option.name, &format!("log {{ {name} }} in the global options")))
            }
            "sampling" => sampling(cx, &option).map(|sampling| config.sampling = Some(sampling)),
            // Of the lines that access logs have there.
            "format" if is_format(&option, "filter") => {
                filter::apply(cx, &option, &mut config);
                Ok(())
            }
            "format" if is_format(&option, "append") => append(cx, &option, &mut config),
            // Whose lines it has is nothing of how it looks.
            "include" | "exclude" => Ok(()),
            _ => common(cx, &option, &mut config),
        };
        cx.check(result);
    }
    config
}

fn common(cx: &mut Context<'_>, option: &Call<'_>, config: &mut LogConfig) -> Result<(), Error> {
    match option.name() {
        "output" => config.output = output::parse(cx, option)?,
        "format" => format::apply(cx, option, config)?,
        "level" => config.level = level(cx, option.one("level LEVEL")?)?,
        "include" | "exclude" => {
            let message = format!(
                "`{}` chooses among the lines of the whole server: write it in a `log NAME {{ … }}` of the global options",
                option.name()
            );
            return Err(error(option.name, message));
        }
        _ => return Err(unknown_option(option.name, "log", OPTIONS, UNBUILT)),
    }
    Ok(())
}

fn is_format(option: &Call<'_>, kind: &str) -> bool {
    option.args.first().is_some_and(|token| token.text == kind)
}

/// `format append { wrap …; fields { NAME VALUE } }` or `{ NAME VALUE }`.
fn append(cx: &mut Context<'_>, call: &Call<'_>, config: &mut LogConfig) -> Result<(), Error> {
    if call.args.len() > 1 {
        return Err(call.wrong_arguments(1, "format append { NAME VALUE … }"));
    }
    for option in call.options() {
        match option.name() {
            "wrap" => format::apply(cx, &option, config)?,
            "fields" => {
                option.no_arguments("fields { NAME VALUE … }")?;
                for field in option.options() {
                    append_field(cx, &field, config)?;
                }
            }
            _ => append_field(cx, &option, config)?,
        }
    }
    Ok(())
}

fn append_field(cx: &Context<'_>, call: &Call<'_>, config: &mut LogConfig) -> Result<(), Error> {
    let value = cx.fixed_text(call.one("NAME VALUE")?)?;
    config.append.push((call.name().to_owned(), value));
    Ok(())
}

fn sampling(cx: &mut Context<'_>, call: &Call<'_>) -> Result<LogSampling, Error> {
    call.no_arguments("sampling { interval DURATION; first N; thereafter N }")?;
    // As in Caddy (logging.go).
    let mut found = LogSampling { interval: Duration::from_secs(1), first: 100, thereafter: 100 };
    for option in call.options() {
        let result = match option.name() {
            "interval" => option
                .one("interval DURATION")
                .and_then(values::positive_duration)
                .map(|interval| found.interval = interval),
            "first" => option.one("first N").and_then(|token| {
                found.first = values::integer(token, 0..=u64::MAX, "first")?;
                Ok(())
            }),
            "thereafter" => option.one("thereafter N").and_then(|token| {
                found.thereafter = values::integer(token, 0..=u64::MAX, "thereafter")?;
                Ok(())
            }),
            _ => Err(unknown_option(option.name, "sampling", &["first", "interval", "thereafter"], &[])),
        };
        cx.check(result);
    }
    Ok(found)
}

/// A `log` at its place is taken out before the routes of a site are parsed.
fn misplaced(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Vec<Route>, Error> {
    Err(error(call.name, "`log` has to stand directly in a site block"))
}

fn level(cx: &Context<'_>, token: &Token) -> Result<LogLevel, Error> {
    match cx.fixed_text(token)?.to_ascii_uppercase().as_str() {
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
    use crate::directives::testing::{config, errors, file_errors};
    use crate::model::{
        LogCompression, LogConfig, LogDirectoryMode, LogDuration, LogFile, LogFormat, LogKeys, LogLevel,
        LogLevelFormat, LogOutput, LogPrefix, LogRolling, LogSampling, LogScope, LogTime,
    };
    use std::time::Duration;

    fn logs(directives: &str) -> Vec<LogConfig> {
        config(&format!(":80 {{\n{directives}\n}}")).servers.remove(0).sites.remove(0).access_logs
    }

    #[test]
    fn options() {
        let text = "log {\noutput file logs/a.log {\nroll_disabled\n}\nformat json\nlevel warn\n}\nlog";
        let file =
            LogFile { path: "/srv/logs/a.log".into(), mode: None, directory_mode: None, rolling: None };
        let first = LogConfig {
            output: LogOutput::File(file),
            format: LogFormat::Json,
            level: LogLevel::Warn,
            ..LogConfig::default()
        };
        assert_eq!(logs(text), [first, LogConfig::default()]);
        assert_eq!(logs("respond x"), []);
    }

    #[test]
    fn directories_of_files_may_have_a_mode() {
        let mode = |options: &str| match logs(&format!("log {{\noutput file a {{\n{options}\n}}\n}}"))
            .remove(0)
            .output
        {
            LogOutput::File(file) => file.directory_mode,
            other => panic!("{other:?}"),
        };
        assert_eq!(mode(""), None);
        assert_eq!(mode("dir_mode 0750"), Some(LogDirectoryMode::Fixed(0o750)));
        assert_eq!(mode("dir_mode inherit"), Some(LogDirectoryMode::Inherited));
        assert_eq!(mode("mode 0640\ndir_mode from_file"), Some(LogDirectoryMode::Fixed(0o750)));
        assert_eq!(mode("dir_mode from_file"), Some(LogDirectoryMode::Fixed(0o700)));
        let found = errors("log {\noutput file a {\ndir_mode 0600\n}\n}");
        assert!(found[0].contains("no mode of a directory"), "{found:?}");
    }

    #[test]
    fn files_roll_as_in_caddy() {
        let file = |options: &str| match logs(&format!("log {{\noutput file a {{\n{options}\n}}\n}}"))
            .remove(0)
            .output
        {
            LogOutput::File(file) => file,
            other => panic!("{other:?}"),
        };
        assert_eq!(file("").rolling, Some(LogRolling::default()));
        let found = file("roll_size 10MiB\nroll_keep 3\nroll_keep_for 48h\nroll_uncompressed\nmode 0640");
        let expected = LogRolling {
            size: 10 << 20,
            keep: Some(3),
            keep_for: Some(Duration::from_secs(48 * 3600)),
            compress: false,
            ..LogRolling::default()
        };
        assert_eq!((found.rolling, found.mode), (Some(expected), Some(0o640)));
        let times = file("roll_at 13:30,0:05\nroll_at 00:05\nroll_interval 24h\nroll_compression none")
            .rolling
            .unwrap();
        assert_eq!((&times.at[..], times.compress), (&[5, 13 * 60 + 30][..], false));
        assert_eq!(times.interval, Some(Duration::from_secs(24 * 3600)));
        let zstd = file("roll_compression zstd").rolling.unwrap();
        assert_eq!((zstd.compress, zstd.compression), (true, LogCompression::Zstd));
        let hourly = file("roll_minutes 0 30").rolling.unwrap().at;
        assert_eq!((hourly.len(), &hourly[..3]), (48, &[0, 30, 60][..]));
        assert_eq!(file("roll_keep 0").rolling, Some(LogRolling::default()));
        let found = errors(
            "log {\noutput file a {\nroll_size 0\nroll_kep 1\nmode 9\ndir_mode 9\nroll_at 24:00\nroll_minutes 60\n}\noutput stderr {\nroll_keep 1\n}\n}",
        );
        assert_eq!(found.len(), 7, "{found:?}");
        assert!(found[3].contains("no mode of a directory"), "{found:?}");
    }

    #[test]
    fn formats_names_and_what_is_logged() {
        let text = "log app {\nformat json {\ntime_format iso8601\nlevel_format upper\ntime_key time\nname_key \"\"\n\
                    message_key message\nlevel_key severity\ncaller_key at\nduration_format ms\n}\nhostnames A.com *.b.com\n\
                    sampling {\ninterval 2s\nfirst 5\nthereafter 0\n}\n}\n\
                    log {\nno_hostname\nformat append {\nwrap console\nfields {\nregion eu\n}\nnode 1\n}\n}";
        let [first, second] = &logs(text)[..] else { panic!() };
        assert_eq!((first.name.as_deref(), first.format), (Some("app"), LogFormat::Json));
        assert_eq!(
            (first.time_format.clone(), first.level_format),
            (Some(LogTime::Iso8601), LogLevelFormat::Upper)
        );
        let LogKeys { level, time, name, message } = &first.keys;
        assert_eq!([level, time, name, message], ["severity", "time", "", "message"]);
        assert_eq!(first.duration_format, LogDuration::Milliseconds);
        let time = |format: &str| {
            logs(&format!("log {{\nformat json {{\ntime_format {format}\n}}\n}}")).remove(0).time_format
        };
        assert_eq!(
            time("2006-01-02T15:04:05Z07:00"),
            Some(LogTime::Layout("2006-01-02T15:04:05Z07:00".into()))
        );
        for mistake in ["iso8602", "`2006 \"`", "yyyy-mm-dd"] {
            assert_eq!(
                errors(&format!("log {{\nformat json {{\ntime_format {mistake}\n}}\n}}")).len(),
                1,
                "{mistake}"
            );
        }
        let journald = |text: &str| {
            let log = logs(&format!("log {{\nformat journald{text}\n}}")).remove(0);
            (log.prefix, log.format)
        };
        assert_eq!(journald(""), (LogPrefix::Journald, LogFormat::Auto));
        assert_eq!(journald(" {\nwrap console\n}"), (LogPrefix::Journald, LogFormat::Console));
        assert_eq!(first.scope, LogScope::Hosts(vec!["a.com".into(), "*.b.com".into()]));
        let sampling = LogSampling { interval: Duration::from_secs(2), first: 5, thereafter: 0 };
        assert_eq!(first.sampling, Some(sampling));
        assert_eq!((&second.scope, second.format), (&LogScope::Named, LogFormat::Console));
        assert_eq!(second.append, [("region".into(), "eu".into()), ("node".into(), "1".into())]);
    }

    #[test]
    fn mistakes() {
        let text = "log {\noutput net unixgram//x\nformat single_field {\nwrap json\n}\nlevel loud\ninclude a\noutput fil x\n\
                    format json {\ntime_format x\nline_ending m\n}\n}\nhandle {\nlog\n}\nlog a b";
        let found = errors(text);
        assert!(found[0].starts_with("`output net unixgram/…` is not built yet in Regent; "), "{found:?}");
        assert!(found[1].starts_with("`format single_field` is not built yet in Regent; "), "{found:?}");
        assert_eq!(found.len(), 9, "{found:?}");
        let global = file_errors("{\nlog x {\nhostnames a\nformat append {\na b\n}\n}\n}\n:80 {\n}");
        assert_eq!(global.len(), 1, "{global:?}");
        assert!(global[0].contains("is not built yet"), "{global:?}");
    }

    #[test]
    fn what_a_log_of_the_server_leaves_out_access_logs_leave_out_there_too() {
        let text = "{\nlog {\nformat filter {\nwrap json\nrequest>headers>X-Key delete\n}\nsampling {\nfirst 5\n}\n}\n\
                    log b {\nformat append {\nplace here\n}\n}\n}\n:80 {\nlog\n}";
        let loaded = config(text);
        let found = &loaded.servers[0].sites[0].access_logs;
        assert_eq!((found[0].filters.len(), found[0].format), (1, LogFormat::Json));
        assert_eq!(found[0].sampling.as_ref().map(|sampling| sampling.first), Some(5));
        assert_eq!(found[1].append, [("place".to_owned(), "here".to_owned())]);
        assert_eq!(loaded.global.log.filters.len(), 1);
    }
}
