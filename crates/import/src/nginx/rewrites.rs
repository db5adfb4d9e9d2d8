//! `rewrite`, `return` and the few kinds of `if` that have a counterpart.

use super::site::Site;
use super::tree::Directive;
use super::values::{pattern, placeholders};
use crate::writer::{Writer, word};

pub(super) const TAKES: &[&str] = &["if", "return", "rewrite", "rewrite_log"];

/// Writes the rewrites of a server or a location, which come before its content.
pub(super) fn write(site: &mut Site<'_>, lines: &[Directive], writer: &mut Writer) {
    for line in lines {
        match line.name.as_str() {
            "rewrite" => rewrite(site, line, writer),
            "return" => returned(site, line, "*", writer),
            "if" => condition(site, line, writer),
            _ => {}
        }
    }
}

fn rewrite(site: &mut Site<'_>, line: &Directive, writer: &mut Writer) {
    // The front controller, which `php_server` has.
    if matches!(line.arg(0), "^" | "^/(.*)$" | "^(.*)$" | ".*" | "^.*$")
        && line.arg(1).starts_with("/index.php")
        && site.php.is_some()
    {
        return;
    }
    let Some(regexp) = pattern(line.arg(0), false) else {
        return site.leave_out(line, "its regular expression looks around itself", writer);
    };
    let name = site.matcher(line.arg(1));
    let is_whole = line.arg(1).ends_with('?');
    let to = match placeholders(line.arg(1).trim_end_matches('?'), Some(&name[1..])) {
        Ok(to) => to,
        Err(variable) => return site.leave_out(line, &format!("there is no word for {variable}"), writer),
    };
    let is_redirect = matches!(line.arg(2), "permanent" | "redirect")
        || to.starts_with("http://")
        || to.starts_with("https://");
    // nginx appends the query of the request, unless the target ends with `?`.
    let query = match (is_whole, is_redirect, to.contains('?')) {
        (true, false, false) => "?",
        (true, ..) | (false, false, false) => "",
        (false, true, false) => "{?query}",
        (false, _, true) => "&{query}",
    };
    writer.line(&format!("{name} path_regexp {} {}", &name[1..], word(&regexp)));
    if is_redirect {
        let status = if line.arg(2) == "permanent" { 301 } else { 302 };
        writer.line(&format!("redir {name} {} {status}", word(&format!("{to}{query}"))));
    } else {
        writer.line(&format!("rewrite {name} {}", word(&format!("{to}{query}"))));
    }
}

/// `return`, for the requests that `matcher` is for. It is always written: a path that follows would be taken for one.
pub(super) fn returned(site: &mut Site<'_>, line: &Directive, matcher: &str, writer: &mut Writer) {
    let text = |text: &str| placeholders(text, None);
    let (status, target) = match line.args.as_slice() {
        [only] => match only.parse::<u16>() {
            Ok(status) => (status, None),
            Err(_) => (302, Some(only.as_str())),
        },
        [status, target] => (status.parse().unwrap_or(0), Some(target.as_str())),
        _ => (0, None),
    };
    match (status, target.map(text)) {
        (_, Some(Err(variable))) => site.leave_out(line, &format!("there is no word for {variable}"), writer),
        (301 | 302 | 303 | 307 | 308, Some(Ok(to))) => {
            writer.line(&format!("redir {matcher} {} {status}", word(&to)))
        }
        (444, _) => writer.line(&format!("abort {matcher}")),
        (200..=599, Some(Ok(body))) if !body.is_empty() => {
            writer.line(&format!("respond {matcher} {} {status}", word(&body)))
        }
        (400..=599, _) => writer.line(&format!("error {matcher} {status}")),
        (200..=299, _) => writer.line(&format!("respond {matcher} {status}")),
        _ => site.leave_out(line, "this status has no counterpart", writer),
    }
}

/// `if ($host = …) { return … }` and the like.
fn condition(site: &mut Site<'_>, line: &Directive, writer: &mut Writer) {
    let Some(condition) = understood(site, line) else {
        let refuses =
            line.body().iter().any(|inner| inner.name == "return" && inner.arg(0).starts_with(['4', '5']));
        let why = if refuses {
            "write it as a matcher: what it refuses is open until then"
        } else {
            "write it as a matcher"
        };
        return site.leave_out(line, why, writer);
    };
    if condition.is_empty() {
        return;
    }
    for inner in line.body() {
        if inner.name == "return" {
            let name = site.matcher(&format!("if {}", line.args.join(" ")));
            writer.line(&format!("{name} {condition}"));
            returned(site, inner, &name, writer);
        } else if inner.name != "set" && inner.name != "access_log" {
            site.leave_out(inner, "only `return` is, within `if`", writer);
        }
    }
}

/// The condition as a matcher; empty: Regent sees to it by itself.
fn understood(site: &Site<'_>, line: &Directive) -> Option<String> {
    let condition = line.args.join(" ");
    let condition = condition.strip_prefix('(')?.strip_suffix(')')?.trim();
    if matches!(condition, "!-e $request_filename" | "!-f $request_filename" | "!-d $request_filename")
        && site.php.is_some()
    {
        return Some(String::new());
    }
    let (left, sign, right) = ["!~*", "!~", "!=", "~*", "~", "="].iter().find_map(|sign| {
        let (left, right) = condition.split_once(&format!(" {sign} "))?;
        Some((left.trim(), *sign, right.trim().trim_matches(['"', '\''])))
    })?;
    let regexp = |is_insensitive| Some(word(&pattern(right, is_insensitive)?));
    let (is_not, sign) = match sign.strip_prefix('!') {
        Some(sign) => ("not ", sign),
        None => ("", sign),
    };
    let found = match (left, sign) {
        ("$host" | "$http_host" | "$server_name", "=") => format!("host {right}"),
        ("$scheme", "=") => format!("protocol {right}"),
        ("$request_method", "=") => format!("method {right}"),
        ("$request_method", "~" | "~*") => format!("method {}", alternatives(right)?.join(" ")),
        ("$remote_addr", "=") => format!("remote_ip {right}"),
        ("$uri" | "$request_uri", "~" | "~*") => format!("path_regexp {}", regexp(sign == "~*")?),
        (variable, "~" | "~*") if variable.starts_with("$http_") => {
            format!("header_regexp {} {}", variable[6..].replace('_', "-"), regexp(sign == "~*")?)
        }
        (variable, "=") if variable.starts_with("$http_") && !right.is_empty() => {
            format!("header {} {}", variable[6..].replace('_', "-"), word(right))
        }
        (variable, "=") if variable.starts_with("$arg_") => {
            format!("query {}={}", &variable[5..], word(right))
        }
        _ => return None,
    };
    Some(format!("{is_not}{found}"))
}

/// The words of `^(GET|HEAD)$`.
fn alternatives(regexp: &str) -> Option<Vec<&str>> {
    let inner =
        regexp.trim_start_matches('^').trim_end_matches('$').trim_start_matches('(').trim_end_matches(')');
    let words: Vec<&str> = inner.split('|').collect();
    let is_word = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic());
    words.iter().all(is_word).then_some(words)
}
