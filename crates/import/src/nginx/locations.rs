//! `location`: which requests, and in which order.

use super::content;
use super::site::{Php, Site};
use super::tree::Directive;
use super::values::pattern;
use super::{access, proxy, rewrites, server};
use crate::writer::{Writer, word};

/// The requests that a location is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Exact(String),
    Prefix(String),
    /// `pattern` is `None` where it looks around itself, which no pattern here can.
    Regexp {
        pattern: Option<String>,
        text: String,
    },
    Named,
}

struct Location<'a> {
    kind: Kind,
    /// Regular expressions are not asked any more.
    is_first: bool,
    line: &'a Directive,
}

/// Writes access, rewrites and locations of a server.
pub(super) fn write(site: &mut Site<'_>, lines: &[Directive], writer: &mut Writer) {
    let mut locations = Vec::new();
    gather(lines, &mut locations);
    let root = locations.iter().find(|one| one.kind == Kind::Prefix("/".to_owned())).map(|one| one.line);
    for (index, one) in locations.iter().enumerate() {
        if is_of_scripts(site, &locations, index) {
            of_scripts(site, one.line.body(), writer);
        }
    }
    let written = (0..locations.len()).filter(|index| is_written(site, &locations, *index));
    let mut written: Vec<&Location<'_>> = written.map(|index| &locations[index]).collect();
    written.sort_by_key(|one| order(one));
    let before = |site: &mut Site<'_>, writer: &mut Writer| {
        access::write(site, lines, None, writer);
        rewrites::write(site, lines, writer);
    };
    if written.is_empty() {
        before(site, writer);
        refuse_other_scripts(site, writer);
        if !returns(lines) {
            answer(site, lines, root, writer);
        }
        return;
    }
    // In the order of the lines: otherwise a refusal would come after the `handle` blocks.
    writer.block("route", |writer| {
        before(site, writer);
        writer.space();
        let (first, last) = written.split_at(written.partition_point(|one| order(one).0 < 3));
        let (exact, others) = first.split_at(first.partition_point(|one| order(one).0 < 1));
        exact.iter().for_each(|location| one(site, location, writer));
        scripts_of_directories(site, writer);
        others.iter().for_each(|location| one(site, location, writer));
        refuse_other_scripts(site, writer);
        last.iter().for_each(|location| one(site, location, writer));
        if !returns(lines) {
            writer.block("handle", |writer| answer(site, lines, root, writer));
        }
    });
}

/// The script of a directory (`index index.php`) is refused where its path is, and run where its path is.
fn scripts_of_directories(site: &mut Site<'_>, writer: &mut Writer) {
    if site.php.as_ref().is_none_or(Php::is_front_alone) {
        return;
    }
    let name = site.matcher("directory");
    writer.block(&name, |writer| {
        writer.line("path */");
        writer.line("file {path}index.php");
    });
    writer.line(&format!("rewrite {name} {{path}}index.php"));
    writer.space();
}

/// nginx runs no script that none of its locations is for. It sends their source, if they are there.
fn refuse_other_scripts(site: &mut Site<'_>, writer: &mut Writer) {
    let scripts = site.php.as_ref().map(|php| php.scripts.clone()).unwrap_or_default();
    if scripts.is_empty() {
        return;
    }
    let name = site.matcher("other scripts");
    writer.block(&name, |writer| {
        writer.line(r"path_regexp \.php(/|$)");
        scripts.iter().for_each(|pattern| writer.line(&format!("not path_regexp {}", word(pattern))));
    });
    writer.line(&format!("error {name} 404"));
    writer.space();
}

fn returns(lines: &[Directive]) -> bool {
    lines.iter().any(|line| line.name == "return")
}

/// Writes `location /`, which answers what no other location is for.
fn answer(site: &mut Site<'_>, lines: &[Directive], root: Option<&Directive>, writer: &mut Writer) {
    let body = root.map_or(&[][..], |root| root.body());
    let both: Vec<Directive> = body.iter().chain(lines).cloned().collect();
    limit(body, writer);
    content::write_headers(site, body, writer);
    access::write(site, body, None, writer);
    rewrites::write(site, &without_return(body), writer);
    server::rest(site, &without_proxy(body), writer);
    let has_all = site.php.as_ref().is_some_and(|php| php.scripts.is_empty());
    content::write(site, &both, has_all, writer);
}

fn limit(body: &[Directive], writer: &mut Writer) {
    let limit = body.iter().find(|line| line.name == "client_max_body_size").and_then(server::body_limit);
    if let Some(size) = limit {
        server::write_body_limit(&size, writer);
    }
}

/// The location of the scripts themselves, which `php_server` is for. Where a later one refuses scripts that this one runs, it stands
/// as a location of its own.
fn is_of_scripts(site: &Site<'_>, locations: &[Location<'_>], index: usize) -> bool {
    let one = &locations[index];
    let later_refuses =
        |later: &[Location<'_>]| later.iter().any(|later| of_php(later) && is_refusal(later.line.body()));
    let body = one.line.body();
    let protects =
        body.iter().any(|line| matches!(line.name.as_str(), "allow" | "deny" | "auth_basic" | "limit_req"));
    site.php.as_ref().is_some_and(|php| php.scripts.is_empty() || php.is_front_alone())
        && body.iter().all(|line| line.name != "internal")
        && of_php(one)
        && body.iter().any(|line| line.name == "fastcgi_pass")
        && !protects
        && !later_refuses(&locations[index + 1..])
}

fn of_php(location: &Location<'_>) -> bool {
    matches!(&location.kind, Kind::Regexp { text, .. } if text.contains("php"))
}

/// Lists the lines that `php_server` has no word for.
fn of_scripts(site: &mut Site<'_>, body: &[Directive], writer: &mut Writer) {
    for line in body
        .iter()
        .filter(|line| matches!(line.name.as_str(), "add_header" | "expires" | "rewrite" | "return" | "if"))
    {
        site.leave_out(line, "it is for scripts alone: write it with `@scripts path *.php`", writer);
    }
    server::rest(site, &without_proxy(body), writer);
}

fn gather<'a>(lines: &'a [Directive], found: &mut Vec<Location<'a>>) {
    for line in lines.iter().filter(|line| line.name == "location") {
        let (sign, text) = match line.args.as_slice() {
            [sign, text] => (sign.as_str(), text.as_str()),
            // `location =/x` and `location ~\.php$` need no space.
            [text] => ["=", "~*", "~", "^~"]
                .iter()
                .find_map(|sign| Some((*sign, text.strip_prefix(sign)?)))
                .unwrap_or(("", text.as_str())),
            _ => continue,
        };
        let kind = match sign {
            "=" => Kind::Exact(text.to_owned()),
            "~" | "~*" => Kind::Regexp { pattern: pattern(text, sign == "~*"), text: text.to_owned() },
            _ if text.starts_with('@') => Kind::Named,
            _ => Kind::Prefix(text.to_owned()),
        };
        found.push(Location { kind, is_first: sign == "^~", line });
        gather(line.body(), found);
    }
}

/// Exact ones, prefixes that go before regular expressions, those, and the other prefixes, the longest first.
fn order(location: &Location<'_>) -> (u8, std::cmp::Reverse<usize>) {
    let (class, length) = match &location.kind {
        Kind::Exact(path) => (0, path.len()),
        Kind::Prefix(path) if location.is_first => (1, path.len()),
        Kind::Regexp { .. } | Kind::Named => (2, 0),
        Kind::Prefix(path) => (3, path.len()),
    };
    (class, std::cmp::Reverse(length))
}

/// Whether the location says more than Regent does by itself.
fn is_written(site: &Site<'_>, locations: &[Location<'_>], index: usize) -> bool {
    let body = locations[index].line.body();
    let is_quiet =
        || body.iter().all(|line| matches!(line.name.as_str(), "access_log" | "allow" | "log_not_found"));
    match &locations[index].kind {
        Kind::Named => false,
        Kind::Prefix(path) if path == "/" => false,
        // Icons and robots.txt without a line in the log.
        Kind::Exact(_) if is_quiet() => false,
        // Names that begin with a dot are not served.
        Kind::Regexp { text, .. } if is_of_dot_files(text) && is_refusal(body) => false,
        _ => !is_of_scripts(site, locations, index),
    }
}

fn is_refusal(body: &[Directive]) -> bool {
    body.iter().any(|line| {
        (line.name == "deny" && line.arg(0) == "all")
            || (line.name == "return" && line.arg(0).starts_with('4'))
    })
}

/// Whether the pattern is for names that begin with a dot, and for nothing else.
fn is_of_dot_files(text: &str) -> bool {
    let begins = ["/\\.", "^/\\.", "\\/\\.", "(^|/)\\."].iter().find_map(|begin| text.strip_prefix(begin));
    let Some(rest) = begins else { return false };
    let mut depth = 0;
    rest.chars().all(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c != '|' || depth > 0
    })
}

fn one(site: &mut Site<'_>, location: &Location<'_>, writer: &mut Writer) {
    let body = location.line.body();
    let strips = body
        .iter()
        .find(|line| line.name == "alias" || (line.name == "proxy_pass" && proxy::path(line).is_some()));
    let head = match (&location.kind, strips) {
        (Kind::Exact(path), _) => format!("handle {}", word(path)),
        (Kind::Prefix(path), Some(_)) => format!("handle_path {}", word(&prefix(path))),
        (Kind::Prefix(path), None) => format!("handle {}", word(&prefix(path))),
        (Kind::Regexp { pattern: Some(pattern), text }, _) => {
            let name = site.matcher(text);
            writer.line(&format!("{name} path_regexp {} {}", &name[1..], word(pattern)));
            format!("handle {name}")
        }
        (Kind::Regexp { .. } | Kind::Named, _) => {
            let why = if is_refusal(body) {
                "its regular expression looks around itself: what it refuses is open until you write it as a matcher"
            } else {
                "its regular expression looks around itself"
            };
            return site.leave_out(location.line, why, writer);
        }
    };
    writer.block(&head, |writer| inner(site, location, writer));
    writer.space();
}

/// A path, with all that is below it.
fn prefix(path: &str) -> String {
    format!("{}*", path.trim_end_matches('*'))
}

fn inner(site: &mut Site<'_>, location: &Location<'_>, writer: &mut Writer) {
    let body = location.line.body();
    if body.iter().any(|line| line.name == "access_log" && line.arg(0) == "off") {
        writer.line("log_skip");
    }
    if let Some(root) = body.iter().find(|line| matches!(line.name.as_str(), "root" | "alias")) {
        writer.line(&format!("root * {}", word(root.arg(0).trim_end_matches('/'))));
    }
    if is_refusal(body) && body.iter().all(|line| !matches!(line.name.as_str(), "allow")) {
        let status = body.iter().find(|line| line.name == "return").map_or("403", |line| line.arg(0));
        return writer.line(&format!("error {status}"));
    }
    if let Some(line) = body.iter().find(|line| line.name == "internal") {
        if !location.line.body().iter().any(|line| line.name == "fastcgi_pass") {
            site.leave_out(line, "there is no X-Accel-Redirect", writer);
        }
        return writer.line("error 404");
    }
    if let (Kind::Regexp { .. }, Some(line)) = (&location.kind, body.iter().find(|line| line.name == "alias"))
    {
        site.leave_out(line, "a regular expression has no prefix that could be taken off", writer);
        return writer.line("error 404");
    }
    limit(body, writer);
    access::write(site, body, location.line.args.last().map(String::as_str), writer);
    content::write_headers(site, body, writer);
    rewrites::write(site, &without_return(body), writer);
    if let Some(path) = body.iter().find(|line| line.name == "proxy_pass").and_then(proxy::path) {
        let path = path.trim_end_matches('/');
        if !path.is_empty() {
            writer.line(&format!("rewrite * {}{{uri}}", word(path)));
        }
    }
    server::rest(site, &without_proxy(body), writer);
    let is_run = |line: &Directive| line.name == "fastcgi_pass" || content::is_of_php(line);
    let has_all = site.php.as_ref().is_some_and(|php| php.scripts.is_empty());
    // Scripts below a prefix are those of the location that is for scripts.
    let is_below = matches!(&location.kind, Kind::Prefix(_)) && !location.is_first && has_all;
    let is_index = matches!(&location.kind, Kind::Exact(path) if path.ends_with('/'));
    content::write(site, body, is_below || is_index || body.iter().any(is_run), writer);
}

fn without_return(body: &[Directive]) -> Vec<Directive> {
    body.iter().filter(|line| line.name != "return").cloned().collect()
}

fn without_proxy(body: &[Directive]) -> Vec<Directive> {
    let taken = |line: &&Directive| {
        !proxy::TAKES.contains(&line.name.as_str()) && !matches!(line.name.as_str(), "alias" | "internal")
    };
    body.iter().filter(taken).cloned().collect()
}
