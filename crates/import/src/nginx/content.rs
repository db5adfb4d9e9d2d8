//! The handler of a request: PHP, files, another server.

use super::proxy;
use super::rewrites;
use super::site::{Php, Site};
use super::tree::Directive;
use super::values::{duration, is_of_all_scripts, pattern, placeholders, seconds};
use crate::writer::{Writer, word};

pub(super) const TAKES: &[&str] =
    &["add_header", "autoindex", "autoindex_exact_size", "autoindex_localtime", "expires", "try_files"];

/// Variables that php-fpm is always told, and Regent's PHP too.
const GIVEN: &[&str] = &[
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "DOCUMENT_ROOT",
    "DOCUMENT_URI",
    "GATEWAY_INTERFACE",
    "HTTPS",
    "HTTP_PROXY",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "QUERY_STRING",
    "REDIRECT_STATUS",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REQUEST_METHOD",
    "REQUEST_SCHEME",
    "REQUEST_URI",
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "SERVER_ADDR",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
];

/// Whether php-fpm answers the requests of this location.
pub(super) fn is_of_php(line: &Directive) -> bool {
    line.name == "location"
        && line.body().iter().any(|inner| inner.name == "fastcgi_pass" || is_of_php(inner))
}

/// The server's `php_server`; `None`: it has no PHP.
pub(super) fn php_of(lines: &[Directive]) -> Option<Php> {
    let mut locations = Vec::new();
    gather(lines, &mut locations);
    let with_php: Vec<&&Directive> =
        locations.iter().filter(|one| one.body().iter().any(|line| line.name == "fastcgi_pass")).collect();
    let first = with_php.first()?;
    let mut php = Php { front: front(lines, &locations), scripts: scripts(&with_php), ..Php::default() };
    for line in first.body().iter().chain(lines) {
        match line.name.as_str() {
            "fastcgi_param" if !GIVEN.contains(&line.arg(0)) && !line.arg(0).starts_with("PHP_") => {
                if let Ok(value) = placeholders(line.arg(1), None) {
                    php.env.push((line.arg(0).to_owned(), word(&value)));
                }
            }
            "fastcgi_read_timeout" => php.request_timeout = duration(line.arg(0)),
            _ => {}
        }
    }
    Some(php)
}

/// Patterns of the only scripts that are run; empty: all scripts are.
fn scripts(with_php: &[&&Directive]) -> Vec<String> {
    let mut named = Vec::new();
    for location in with_php {
        let text = location.args.last().map_or("", String::as_str);
        let is_regexp = location.args.len() == 2 && location.arg(0).starts_with('~');
        match (is_regexp, pattern(text, location.arg(0) == "~*")) {
            (true, Some(pattern)) if !is_of_all_scripts(&pattern) => named.push(pattern),
            (false, _) if location.arg(0) == "=" => named.push(format!("^{}$", regex::escape(text))),
            (false, _) if text.starts_with('/') && text.len() > 1 => {
                named.push(format!("^{}", regex::escape(text)))
            }
            _ => return Vec::new(),
        }
    }
    named
}

fn gather<'a>(lines: &'a [Directive], found: &mut Vec<&'a Directive>) {
    for line in lines.iter().filter(|line| line.name == "location") {
        found.push(line);
        gather(line.body(), found);
    }
}

/// The script of `try_files … /index.php`, of the server, of `location /`, or of the named location that they lead to.
fn front(lines: &[Directive], locations: &[&Directive]) -> Option<String> {
    let root = locations.iter().find(|one| one.args.len() == 1 && one.arg(0) == "/");
    let of_root = root.into_iter().flat_map(|one| one.body());
    let all: Vec<&Directive> = lines.iter().chain(of_root).collect();
    let script = |target: &str| {
        let path = target.split(['?', '$']).next().unwrap_or_default().trim_start_matches('/');
        path.ends_with(".php").then(|| path.to_owned())
    };
    let rewritten = |lines: Vec<&Directive>| {
        lines.into_iter().filter(|line| line.name == "rewrite").find_map(|line| script(line.arg(1)))
    };
    for line in &all {
        if line.name == "try_files" {
            let last = line.args.last().map_or("", String::as_str);
            if let Some(name) = last.strip_prefix('@') {
                let named = locations.iter().find(|one| one.arg(0).strip_prefix('@') == Some(name))?;
                let inner = named
                    .body()
                    .iter()
                    .find(|line| line.name == "fastcgi_param" && line.arg(0) == "SCRIPT_FILENAME");
                return rewritten(named.body().iter().collect())
                    .or_else(|| script(inner?.arg(1).rsplit('/').next()?));
            }
            return script(last);
        }
        if line.name == "error_page" && line.arg(0) == "404" && line.arg(1).contains(".php") {
            return script(line.arg(1));
        }
    }
    // `if (!-e $request_filename) { rewrite … /index.php }`
    let ifs = all.iter().filter(|line| line.name == "if").flat_map(|line| line.body());
    rewritten(ifs.chain(all.iter().copied()).collect())
}

/// `add_header` and `expires`.
pub(super) fn write_headers(site: &mut Site<'_>, lines: &[Directive], writer: &mut Writer) {
    for line in lines {
        match line.name.as_str() {
            "add_header" => match placeholders(line.arg(1), None) {
                Ok(_) if line.arg(0).eq_ignore_ascii_case("alt-svc") => {}
                Ok(value) => writer.line(&format!("header {} {}", line.arg(0), word(&value))),
                Err(variable) => site.leave_out(line, &format!("there is no word for {variable}"), writer),
            },
            "expires" if line.arg(0) == "off" => {}
            "expires" if matches!(line.arg(0), "epoch" | "-1") => {
                writer.line("header Cache-Control no-cache")
            }
            "expires" => match seconds(line.arg(0)) {
                Some(age) => writer.line(&format!("header Cache-Control max-age={age}")),
                None => site.leave_out(line, "it has no counterpart", writer),
            },
            _ => {}
        }
    }
}

/// The last word of a location, or of a server: what answers. nginx runs scripts only in locations that say so.
pub(super) fn write(site: &mut Site<'_>, lines: &[Directive], runs_scripts: bool, writer: &mut Writer) {
    let named = |name: &str| lines.iter().find(|line| line.name == name);
    if let Some(line) = named("return") {
        return rewrites::returned(site, line, "*", writer);
    }
    if let Some(line) = named("proxy_pass") {
        return proxy::write(site, line, lines, writer);
    }
    for name in ["uwsgi_pass", "scgi_pass", "grpc_pass", "memcached_pass"] {
        if let Some(line) = named(name) {
            site.leave_out(line, "Regent does not speak this protocol", writer);
            return writer.line("error 502");
        }
    }
    let fallback = named("try_files").and_then(|line| line.args.last()).map_or("", String::as_str);
    let browses = named("autoindex").is_some_and(|line| line.arg(0) == "on");
    match site.php.clone() {
        Some(php) if runs_scripts || leads_to_php(fallback) || rewrites_to_php(lines) => {
            within(php, fallback).write(writer)
        }
        _ => {
            if fallback.starts_with('/') {
                let target = fallback.split(['?', '$']).next().unwrap_or_default();
                writer.line(&format!("try_files {{path}} {{path}}/ {}", word(target)));
            }
            writer.line(if browses { "file_server browse" } else { "file_server" });
        }
    }
}

/// A script, or a named location: that of the front controller, in nearly all files.
fn leads_to_php(fallback: &str) -> bool {
    fallback.starts_with('@') || fallback.split(['?', '$']).next().is_some_and(|path| path.ends_with(".php"))
}

fn rewrites_to_php(lines: &[Directive]) -> bool {
    let is_script =
        |line: &Directive| line.arg(1).split(['?', '$']).next().is_some_and(|path| path.ends_with(".php"));
    lines.iter().any(|line| line.name == "rewrite" && is_script(line))
}

/// A location's own front controller goes before the server's.
fn within(mut php: Php, fallback: &str) -> Php {
    let path = fallback.split(['?', '$']).next().unwrap_or_default().trim_start_matches('/');
    if path.ends_with(".php") {
        php.front = Some(path.to_owned());
    } else if fallback == "=404" {
        php.front = None;
    }
    php
}
