//! Texts, as sprig has them.

use super::Function;
use crate::arguments::{Call, string};
use crate::printf;
use gotmpl::{Result, Value};
use regex::{Regex, RegexBuilder};
use std::fmt::Write;

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("upper", |call| map(call, |text| text.to_uppercase())),
    ("lower", |call| map(call, |text| text.to_lowercase())),
    ("title", |call| map(call, title)),
    ("untitle", |call| map(call, untitle)),
    ("trim", |call| map(call, |text| text.trim().to_owned())),
    ("trimAll", |call| with(call, |cut, text| text.trim_matches(|c| cut.contains(c)).to_owned())),
    ("trimall", |call| with(call, |cut, text| text.trim_matches(|c| cut.contains(c)).to_owned())),
    ("trimPrefix", |call| with(call, |cut, text| text.strip_prefix(cut).unwrap_or(text).to_owned())),
    ("trimSuffix", |call| with(call, |cut, text| text.strip_suffix(cut).unwrap_or(text).to_owned())),
    ("nospace", |call| map(call, |text| text.chars().filter(|c| !c.is_whitespace()).collect())),
    ("swapcase", |call| map(call, swapcase)),
    ("snakecase", |call| map(call, |text| words(text).join("_").to_lowercase())),
    ("kebabcase", |call| map(call, |text| words(text).join("-").to_lowercase())),
    ("camelcase", |call| {
        map(call, |text| words(text).iter().map(|word| title(&word.to_lowercase())).collect())
    }),
    ("initials", |call| {
        map(call, |text| text.split_whitespace().filter_map(|word| word.chars().next()).collect())
    }),
    ("contains", |call| Ok(Value::Bool(call.text(1)?.contains(&*call.text(0)?)))),
    ("hasPrefix", |call| Ok(Value::Bool(call.text(1)?.starts_with(&*call.text(0)?)))),
    ("hasSuffix", |call| Ok(Value::Bool(call.text(1)?.ends_with(&*call.text(0)?)))),
    ("replace", replace),
    ("repeat", repeat),
    ("substr", substr),
    ("trunc", trunc),
    ("abbrev", abbrev),
    ("plural", |call| call.value(if call.int(2)? == 1 { 0 } else { 1 }).cloned()),
    ("quote", |call| each(call, |out, text| printf::quoted(out, text))),
    ("squote", |call| each(call, |out, text| write!(out, "'{text}'"))),
    ("cat", |call| each(call, |out, text| out.write_str(text))),
    ("indent", |call| indent(call, "")),
    ("nindent", |call| indent(call, "\n")),
    ("wrap", |call| wrap(call, "\n")),
    ("toString", |call| Ok(string(call.text(0)?.as_ref()))),
];

pub(super) const PATTERNS: &[(&str, Function)] = &[
    ("regexMatch", |call| Ok(Value::Bool(regex(call)?.is_match(&call.text(1)?)))),
    ("regexFind", |call| Ok(string(regex(call)?.find(&call.text(1)?).map_or("", |found| found.as_str())))),
    ("regexFindAll", |call| {
        let most = usize::try_from(call.int(2)?).unwrap_or(usize::MAX);
        let text = call.text(1)?;
        let found = regex(call)?.find_iter(&text).take(most).map(|found| string(found.as_str())).collect();
        call.new_list(found)
    }),
    ("regexSplit", |call| {
        let most = usize::try_from(call.int(2)?).unwrap_or(usize::MAX);
        let text = call.text(1)?;
        let parts = regex(call)?.splitn(&text, most).map(string).collect();
        call.new_list(parts)
    }),
    ("regexReplaceAll", |call| {
        // Its groups are `${1}`; the text between is copied as often as the pattern fits.
        let (text, by) = (call.text(1)?, call.text(2)?);
        let fits = regex(call)?.find_iter(&text).count();
        call.run.budget.bytes(fits.saturating_mul(by.len() + text.len().min(1024)))?;
        Ok(string(regex(call)?.replace_all(&text, &*by).as_ref()))
    }),
    ("regexReplaceAllLiteral", |call| {
        let (text, by) = (call.text(1)?, call.text(2)?);
        let fits = regex(call)?.find_iter(&text).count();
        call.run.budget.bytes(fits.saturating_mul(by.len()))?;
        Ok(string(regex(call)?.replace_all(&text, regex::NoExpand(&by)).as_ref()))
    }),
    ("regexQuoteMeta", |call| Ok(string(regex::escape(&call.text(0)?)))),
];

fn map(call: &Call<'_>, change: impl FnOnce(&str) -> String) -> Result<Value> {
    Ok(string(change(&call.last()?)))
}

/// `NAME WITH TEXT`.
fn with(call: &Call<'_>, change: impl FnOnce(&str, &str) -> String) -> Result<Value> {
    Ok(string(change(&call.text(0)?, &call.text(1)?)))
}

/// All arguments that are there, with spaces between.
fn each(
    call: &Call<'_>,
    write: impl Fn(&mut crate::budget::Text<'_>, &str) -> std::fmt::Result,
) -> Result<Value> {
    let mut texts = Vec::new();
    for (index, value) in call.args.iter().enumerate() {
        if !matches!(value, Value::Nil) {
            texts.push(call.text(index)?);
        }
    }
    let text = call.run.budget.text(|out| {
        for (index, text) in texts.iter().enumerate() {
            if index > 0 {
                out.write_char(' ')?;
            }
            write(out, text)?;
        }
        Ok(())
    })?;
    Ok(string(text))
}

fn title(text: &str) -> String {
    let mut begins = true;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match begins {
            true => out.extend(c.to_uppercase()),
            false => out.push(c),
        }
        begins = !(c.is_alphanumeric() || matches!(c, '_' | '\''));
    }
    out
}

fn untitle(text: &str) -> String {
    let mut begins = true;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match begins {
            true => out.extend(c.to_lowercase()),
            false => out.push(c),
        }
        begins = c.is_whitespace();
    }
    out
}

fn swapcase(text: &str) -> String {
    let swap = |c: char| match c.is_uppercase() {
        true => c.to_lowercase().collect::<String>(),
        false => c.to_uppercase().collect(),
    };
    text.chars().map(swap).collect()
}

/// The words of `camelCase`, `snake_case`, `kebab-case` and plain text.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in text.chars() {
        let begins = !last.is_alphanumeric() || (c.is_uppercase() && last.is_lowercase());
        match words.last_mut() {
            _ if !c.is_alphanumeric() => {}
            Some(word) if !begins => word.push(c),
            _ => words.push(c.to_string()),
        }
        last = c;
    }
    words
}

/// `replace OLD NEW TEXT`
fn replace(call: &Call<'_>) -> Result<Value> {
    let (old, new, text) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let fits = text.matches(&*old).count();
    call.run.budget.bytes(fits.saturating_mul(new.len()))?;
    Ok(string(text.replace(&*old, &new)))
}

/// `repeat COUNT TEXT`
fn repeat(call: &Call<'_>) -> Result<Value> {
    let (count, text) = (call.count(0)?, call.text(1)?);
    call.run.budget.bytes(count.saturating_mul(text.len()))?;
    Ok(string(text.repeat(count)))
}

/// `substr START END TEXT`, in bytes as in Go, but never within a character; an end below 0 is that of the text.
fn substr(call: &Call<'_>) -> Result<Value> {
    let text = call.text(2)?;
    let start = floor(&text, call.count(0)?);
    let end = match call.int(1)? {
        end if end < 0 => text.len(),
        end => floor(&text, usize::try_from(end).unwrap_or(usize::MAX)),
    };
    Ok(string(text.get(start..end).unwrap_or_default()))
}

/// `trunc LENGTH TEXT`: the first bytes, or the last for a length below 0.
fn trunc(call: &Call<'_>) -> Result<Value> {
    let (length, text) = (call.int(0)?, call.text(1)?);
    let bytes = usize::try_from(length.unsigned_abs()).unwrap_or(usize::MAX);
    Ok(string(match length < 0 {
        true => &text[floor(&text, text.len().saturating_sub(bytes))..],
        false => &text[..floor(&text, bytes)],
    }))
}

/// `abbrev LENGTH TEXT`: with dots for what is too much.
fn abbrev(call: &Call<'_>) -> Result<Value> {
    let (length, text) = (call.count(0)?, call.text(1)?);
    if length < 4 || text.len() <= length {
        return Ok(string(text.as_ref()));
    }
    Ok(string(format!("{}...", &text[..floor(&text, length - 3)])))
}

/// The next smaller place between two characters.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// `indent SPACES TEXT`
fn indent(call: &Call<'_>, before: &str) -> Result<Value> {
    let (spaces, text) = (call.count(0)?, call.text(1)?);
    let lines = text.matches('\n').count() + 1;
    call.run.budget.bytes(lines.saturating_mul(spaces))?;
    let pad = " ".repeat(spaces);
    Ok(string(format!("{before}{pad}{}", text.replace('\n', &format!("\n{pad}")))))
}

/// `wrap COLUMN TEXT`
fn wrap(call: &Call<'_>, end: &str) -> Result<Value> {
    let (column, text) = (call.count(0)?, call.text(1)?);
    let mut out = String::with_capacity(text.len());
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        match width {
            0 => {}
            _ if width + 1 + length > column => {
                out.push_str(end);
                width = 0;
            }
            _ => {
                out.push(' ');
                width += 1;
            }
        }
        out.push_str(word);
        width += length;
    }
    Ok(string(out))
}

/// The first argument, compiled.
fn regex(call: &Call<'_>) -> Result<Regex> {
    let pattern = call.text(0)?;
    // What a pattern may cost is the library's own bound, less for those that come with a page.
    let built = RegexBuilder::new(&pattern).size_limit(1 << 20).dfa_size_limit(1 << 20).build();
    call.run.budget.bytes(pattern.len().saturating_mul(64))?;
    built.or_else(|error| call.fail(error.to_string()))
}
