//! `output …`.

mod net;

use crate::call::Call;
use crate::context::Context;
use crate::model::{LogCompression, LogDirectoryMode, LogFile, LogOutput, LogRolling};
use crate::problems::{error, unknown, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};
use std::path::Path;
use std::time::Duration;

const OPTIONS: &[&str] = &[
    "dir_mode",
    "mode",
    "roll_at",
    "roll_compression",
    "roll_disabled",
    "roll_interval",
    "roll_keep",
    "roll_keep_for",
    "roll_local_time",
    "roll_minutes",
    "roll_size",
    "roll_uncompressed",
];
const UNBUILT: &[&str] = &["backup_time_format"];

const MINUTES_OF_DAY: u16 = 24 * 60;

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>) -> Result<LogOutput, Error> {
    let syntax = "output stderr | stdout | discard | file PATH | net ADDRESS";
    let Some((kind, rest)) = call.args.split_first() else { return Err(call.wrong_arguments(1, syntax)) };
    let output = match (kind.text.as_str(), rest) {
        ("file", [path]) => return file(cx, call, path).map(LogOutput::File),
        ("stderr", []) => LogOutput::Stderr,
        ("stdout", []) => LogOutput::Stdout,
        ("discard", []) => LogOutput::Discard,
        ("net", [address]) => return net::parse(cx, call, address).map(LogOutput::Net),
        ("stderr" | "stdout" | "discard", _) => return Err(call.wrong_arguments(1, syntax)),
        ("file" | "net", _) => return Err(call.wrong_arguments(2, syntax)),
        _ => return Err(unknown(kind, "output", &["stderr", "stdout", "discard", "file", "net"])),
    };
    match call.options().next() {
        Some(option) => Err(error(option.name, format!("`output {}` has no options", kind.text))),
        None => Ok(output),
    }
}

fn file(cx: &mut Context<'_>, call: &Call<'_>, path: &Token) -> Result<LogFile, Error> {
    let path = cx.environment.absolute(Path::new(&cx.fixed_text(path)?));
    let mut file = LogFile { path, mode: None, directory_mode: None, rolling: None };
    let mut rolling = LogRolling::default();
    let (mut grows, mut of_directories) = (false, None);
    for option in call.options() {
        let result = match option.name() {
            "roll_disabled" => option.exactly::<0>("roll_disabled").map(|_| grows = true),
            "mode" => option.one("mode MODE").and_then(mode).map(|mode| file.mode = Some(mode)),
            "dir_mode" => option
                .one("dir_mode MODE | inherit | from_file")
                .and_then(directory_mode)
                .map(|mode| of_directories = Some(mode)),
            "roll_local_time" => {
                cx.warn(option.name, "`roll_local_time` has no effect: the names of old files are in UTC");
                Ok(())
            }
            _ => roll(&option, &mut rolling),
        };
        cx.check(result);
    }
    file.directory_mode = match of_directories {
        None => None,
        Some(DirectoryMode::OfLog(mode)) => Some(mode),
        // As Caddy has it: who can read the file can go through its directory. Files are made with 0600 there.
        Some(DirectoryMode::FromFile) => {
            let mode = file.mode.unwrap_or(0o600);
            Some(LogDirectoryMode::Fixed(mode | (mode & 0o444) >> 2))
        }
    };
    file.rolling = (!grows).then_some(rolling);
    Ok(file)
}

/// As it is written.
enum DirectoryMode {
    OfLog(LogDirectoryMode),
    /// That of the file, with a way through for those who can read.
    FromFile,
}

fn directory_mode(token: &Token) -> Result<DirectoryMode, Error> {
    match token.text.as_str() {
        "inherit" => Ok(DirectoryMode::OfLog(LogDirectoryMode::Inherited)),
        "from_file" => Ok(DirectoryMode::FromFile),
        text => u32::from_str_radix(text, 8)
            .ok()
            .filter(|mode| *mode <= 0o777 && mode & 0o300 == 0o300)
            .map(|mode| DirectoryMode::OfLog(LogDirectoryMode::Fixed(mode)))
            .ok_or_else(|| {
                error(token, format!("`{text}` is no mode of a directory; write `inherit`, `from_file`, or an octal number such as 0750"))
            }),
    }
}

fn roll(option: &Call<'_>, rolling: &mut LogRolling) -> Result<(), Error> {
    let default = LogRolling::default();
    match option.name() {
        "roll_size" => {
            let token = option.one("roll_size SIZE")?;
            rolling.size = values::size(token)?;
            if rolling.size == 0 {
                return Err(error(
                    token,
                    "`roll_size` must be more than 0; to let the file grow: roll_disabled",
                ));
            }
        }
        // 0 is the default, as in Caddy.
        "roll_keep" => {
            let keep = values::integer(option.one("roll_keep N")?, 0..=u32::MAX, "roll_keep")?;
            rolling.keep = Some(keep).filter(|keep| *keep > 0).or(default.keep);
        }
        "roll_keep_for" => {
            let keep = values::duration(option.one("roll_keep_for DURATION")?)?;
            rolling.keep_for = Some(keep).filter(|keep| *keep > Duration::ZERO).or(default.keep_for);
        }
        "roll_uncompressed" => rolling.compress = option.exactly::<0>("roll_uncompressed").map(|_| false)?,
        "roll_compression" => {
            let token = option.one("roll_compression gzip | zstd | none")?;
            (rolling.compress, rolling.compression) = match token.text.to_ascii_lowercase().as_str() {
                "gzip" => (true, LogCompression::Gzip),
                "zstd" => (true, LogCompression::Zstd),
                "none" => (false, LogCompression::Gzip),
                _ => return Err(unknown(token, "compression", &["gzip", "zstd", "none"])),
            };
        }
        // 0 is none, as in Caddy.
        "roll_interval" => {
            let interval = values::duration(option.one("roll_interval DURATION")?)?;
            rolling.interval = Some(interval).filter(|interval| !interval.is_zero());
        }
        "roll_at" => {
            let times = list(option, "roll_at HH:MM…")?;
            let times = times.into_iter().map(|(token, text)| time_of_day(token, text));
            add_times(rolling, times.collect::<Result<_, _>>()?);
        }
        "roll_minutes" => {
            for (token, text) in list(option, "roll_minutes MINUTE…")? {
                let minute =
                    text.parse().ok().filter(|minute: &u16| *minute < 60).ok_or_else(|| {
                        error(token, format!("`{text}` is no minute of an hour, from 0 to 59"))
                    })?;
                add_times(rolling, (0..24).map(|hour| hour * 60 + minute).collect());
            }
        }
        _ => return Err(unknown_option(option.name, "output file", OPTIONS, UNBUILT)),
    }
    Ok(())
}

/// Arguments, which may be several in one, with commas between them.
fn list<'a>(option: &Call<'a>, syntax: &str) -> Result<Vec<(&'a Token, &'a str)>, Error> {
    let parts = |token: &'a Token| token.text.split(',').map(move |part| (token, part.trim()));
    Ok(option.some(syntax)?.iter().flat_map(parts).collect())
}

/// `7:05` or `07:05`, in minutes.
fn time_of_day(token: &Token, text: &str) -> Result<u16, Error> {
    let parsed = || {
        let (hour, minute) = text.split_once(':')?;
        let is_plain =
            |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let (hour, minute) = (is_plain(hour).then_some(hour)?, is_plain(minute).then_some(minute)?);
        let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
        Some(hour * 60 + minute).filter(|time| *time < MINUTES_OF_DAY && minute < 60)
    };
    parsed().ok_or_else(|| error(token, format!("`{text}` is no time of a day, such as 00:00 or 13:30")))
}

fn add_times(rolling: &mut LogRolling, times: Vec<u16>) {
    rolling.at.extend(times);
    rolling.at.sort_unstable();
    rolling.at.dedup();
}

fn mode(token: &Token) -> Result<u32, Error> {
    let is_octal = token.text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    u32::from_str_radix(&token.text, 8).ok().filter(|mode| is_octal && *mode <= 0o777 && mode & 0o200 != 0).ok_or_else(|| {
        let message = format!("`{}` is no mode of a log; write an octal number with which its owner can write, such as 0640", token.text);
        error(token, message)
    })
}
