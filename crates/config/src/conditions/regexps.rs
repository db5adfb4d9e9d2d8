//! Conditions that are regular expressions. Their groups are placeholders, by the name of the condition.

use crate::call::Call;
use crate::model::{Matcher, Template};
use crate::problems::error;
use regent_caddyfile::{Error, Token};

pub(super) fn path_regexp(call: &Call<'_>, owner: &str) -> Result<Matcher, Error> {
    let syntax = "path_regexp [NAME] PATTERN";
    call.without_block(syntax)?;
    let (name, pattern) = match call.args {
        [pattern] => (owner, pattern),
        [name, pattern] => (name.text.as_str(), pattern),
        args => return Err(call.wrong_arguments(if args.is_empty() { 1 } else { 2 }, syntax)),
    };
    Ok(Matcher::PathRegexp { name: Some(name.to_owned()), pattern: regexp(pattern)? })
}

pub(super) fn header_regexp(call: &Call<'_>, owner: &str) -> Result<Matcher, Error> {
    let syntax = "header_regexp [NAME] FIELD PATTERN";
    call.without_block(syntax)?;
    let (name, field, pattern) = match call.args {
        [field, pattern] => (owner, field, pattern),
        [name, field, pattern] => (name.text.as_str(), field, pattern),
        args => return Err(call.wrong_arguments(if args.len() < 2 { 2 } else { 3 }, syntax)),
    };
    Ok(Matcher::HeaderRegexp {
        name: Some(name.to_owned()),
        field: field.text.clone(),
        pattern: regexp(pattern)?,
    })
}

/// The pattern, if it is one.
pub(crate) fn regexp(token: &Token) -> Result<String, Error> {
    check_pattern(&token.text).map(|()| token.text.clone()).map_err(|message| error(token, message))
}

/// An error says what is wrong with it.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), String> {
    regex::bytes::Regex::new(pattern).map(|_| ()).map_err(|cause| {
        let cause = cause.to_string();
        let reason = cause.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("`{pattern}` is no regular expression: {reason}")
    })
}

/// Of a variable, or of any text with placeholders.
pub(super) fn vars_regexp(call: &Call<'_>, owner: &str) -> Result<Matcher, Error> {
    let syntax = "vars_regexp [NAME] VARIABLE PATTERN";
    call.without_block(syntax)?;
    let (name, variable, pattern) = match call.args {
        [variable, pattern] => (owner, variable, pattern),
        [name, variable, pattern] => (name.text.as_str(), variable, pattern),
        args => return Err(call.wrong_arguments(if args.len() < 2 { 2 } else { 3 }, syntax)),
    };
    let pattern = regexp(pattern)?;
    Ok(Matcher::VarsRegexp {
        name: Some(name.to_owned()),
        value: Template::variable(&variable.text),
        pattern,
    })
}
