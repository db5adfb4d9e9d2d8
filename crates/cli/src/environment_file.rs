//! Files of environment variables: `run --envfile FILE`.
//!
//! A program of many threads cannot change its own environment safely (setenv(3) is not thread-safe), so this one starts
//! itself again, in the same process, with the environment that it is to have.

use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const OPTION: &str = "--envfile";

/// Starts this program again with what the files say, unless there are none. Variables that exist keep their values; of
/// several files the first that names a variable counts.
pub fn become_with(files: &[PathBuf]) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let mut variables = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        variables.extend(parse(&text).map_err(|error| anyhow::anyhow!("{}:{error}", file.display()))?);
    }
    let program = std::env::current_exe().context("this program's own path is unknown")?;
    let mut arguments = std::env::args_os();
    let mut command = Command::new(&program);
    arguments.next().into_iter().for_each(|name| {
        command.arg0(name);
    });
    command.args(without_option(arguments));
    for (name, value) in variables.into_iter().rev() {
        if std::env::var_os(&name).is_none() {
            command.env(name, value);
        }
    }
    Err(command.exec()).with_context(|| format!("starting {} again", Path::new(&program).display()))
}

fn without_option(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = arguments.peekable();
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        if argument == OPTION {
            arguments.next();
        } else if !is_option_with_value(&argument) {
            kept.push(argument);
        }
    }
    kept
}

fn is_option_with_value(argument: &OsStr) -> bool {
    argument.as_bytes().strip_prefix(OPTION.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
}

/// Lines `NAME=value`, also with `export` before them; empty lines and those that begin with `#` are nothing. A value may
/// be in quotes, over several lines; in double quotes `\n`, `\"`, `\\` and so on are what they are in C. Outside of quotes
/// a ` #` begins a comment.
///
/// # Errors
/// The number of the line that is none of this, and why.
fn parse(text: &str) -> Result<Vec<(String, String)>> {
    let mut variables = Vec::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    while !rest.is_empty() {
        let line = text[..text.len() - rest.len()].matches('\n').count() + 1;
        let (statement, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let trimmed = statement.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            rest = after;
            continue;
        }
        let Some((name, _)) = statement.split_once('=') else {
            bail!("{line}: `{trimmed}` is no NAME=value");
        };
        let value_start = &rest[name.len() + 1..];
        let name = name.trim();
        let name = name.strip_prefix("export ").unwrap_or(name).trim();
        if !is_name(name) {
            bail!("{line}: `{name}` is no name of a variable: letters, digits and _, a digit not first");
        }
        let (value, after) = value(value_start).with_context(|| format!("{line}: the value of {name}"))?;
        variables.push((name.to_owned(), value));
        rest = after;
    }
    Ok(variables)
}

fn is_name(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_of_name)
}

/// The value at the beginning of the text, and what follows its line.
fn value(text: &str) -> Result<(String, &str)> {
    let text = text.trim_start_matches([' ', '\t']);
    let (value, after) = match text.chars().next() {
        Some('"') => double_quoted(&text[1..])?,
        Some('\'') => {
            let (value, after) = text[1..].split_once('\'').context("its quote is not closed")?;
            (value.to_owned(), after)
        }
        _ => {
            let end = text.find('\n').unwrap_or(text.len());
            let line = &text[..end];
            let value = line.split_once(" #").map_or(line, |(value, _)| value);
            return Ok((value.trim().to_owned(), text[end..].strip_prefix('\n').unwrap_or("")));
        }
    };
    let (rest, next) = after.split_once('\n').unwrap_or((after, ""));
    if !(rest.trim().is_empty() || rest.trim_start().starts_with('#')) {
        bail!("`{}` stands behind its closing quote", rest.trim());
    }
    Ok((value, next))
}

fn double_quoted(text: &str) -> Result<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match characters.next().context("its quote is not closed")?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    bail!("its quote is not closed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn lines_are_variables_and_comments_are_nothing() {
        let text =
            "# of the site\n\nAPP_ENV=prod\nexport APP_KEY = a b # the key\r\nEMPTY=\nURL=http://x/#top";
        let expected = [("APP_ENV", "prod"), ("APP_KEY", "a b"), ("EMPTY", ""), ("URL", "http://x/#top")];
        assert_eq!(parsed(text), pairs(&expected));
    }

    #[test]
    fn quoted_values_may_have_everything_in_them() {
        let text = "A=\"one\\ntwo \\\"x\\\" # no comment\"\nB='\\n $C' # a comment\nC=\"two\nlines\"\nD=end";
        let expected =
            [("A", "one\ntwo \"x\" # no comment"), ("B", "\\n $C"), ("C", "two\nlines"), ("D", "end")];
        assert_eq!(parsed(text), pairs(&expected));
    }

    #[test]
    fn what_is_no_variable_is_named_with_its_line() {
        for (text, message) in [
            ("A=1\nhello\n", "2: `hello` is no NAME=value"),
            ("\n\n1A=2", "3: `1A` is no name of a variable"),
            ("A=\"x\nB=1", "1: the value of A"),
            ("A='x' y", "1: the value of A"),
            ("=x", "1: `` is no name"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn the_option_is_gone_when_the_program_starts_again() {
        let arguments = ["run", "--envfile", "a", "--watch", "--envfile=b", "--config", "c"];
        let kept = without_option(arguments.into_iter().map(OsString::from));
        assert_eq!(kept, ["run", "--watch", "--config", "c"]);
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in ".{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_quoted_is_read_back(value in "[^']{0,40}") {
            prop_assert_eq!(parsed(&format!("X='{value}'")), pairs(&[("X", &value)]));
        }
    }
}
