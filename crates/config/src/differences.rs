//! What a Caddyfile asks for that works, but otherwise than in Caddy: `regent validate` says it. What has no effect at all is a
//! warning where it is parsed.

use crate::problems::Warning;
use regent_caddyfile::{File, Line, Token};

/// Directives and options, each with how it differs. More about it is in `docs/frankenphp.md`.
const DIFFERENCES: &[(&str, &str)] = &[
    ("basic_auth", "`{http.auth.user.id}` is empty where nobody has logged in, and no text"),
    (
        "browse",
        "the page that no template makes is Regent's own; it remembers no order in a cookie, and leaves out links that lead out of the root",
    ),
    (
        "encode",
        "a response of unknown length is compressed whatever its first piece is, and `Accept-Encoding: *` takes any coding",
    ),
    ("error", "without a message, `{err.message}` is the text of the status"),
    (
        "file_server",
        "what begins with a dot is not served, and files of no known type are `application/octet-stream`",
    ),
    ("forward_auth", "no proxy of the environment (`HTTP_PROXY`) is used"),
    ("intercept", "it sees the fields that a response came with, not what `header` adds to it"),
    ("invoke", "a named route has all of its directives, where Caddy 2.11 takes the first of several"),
    ("map", "values are found when it is reached, not when they are used"),
    ("max_conns_per_host", "connections of HTTP/1.1 alone are counted"),
    ("mercure", "the history is a file of its own, which the hub of FrankenPHP does not read"),
    ("metrics", "Go's own metrics (`go_…`) and OpenMetrics are not there"),
    ("network_proxy", "a request that it hands on names the upstream, not the site"),
    (
        "output net",
        "lines wait for a collector that cannot be reached, and are not written to the standard error",
    ),
    (
        "php_fastcgi",
        "a php-fpm gets a request when its body is complete, and is told no length and type of a body that has none",
    ),
    (
        "php_server",
        "threads are scaled, and requests that would wait for longer than `max_wait_time` (3s) are refused",
    ),
    (
        "rate_limit",
        "the log has a line of a key that is refused, not for each request, and what a zone remembers is bounded",
    ),
    ("reverse_proxy", "no proxy of the environment (`HTTP_PROXY`) is used; `network_proxy url` names one"),
    ("rewrite", "what it takes over stays as the client has written it"),
    ("templates", "pages have bounds of time and size, and some of sprig's functions are not there"),
    (
        "timeouts",
        "`read_body` and `write` are about silence, as `read_body_idle` and `write_idle` are in the newest Caddy",
    ),
    ("tracing", "traces are sent by OTLP over HTTP, not gRPC, and a request has one span"),
    ("uri replace", "the path that it has changed is written anew, `%2F` as a slash"),
];

/// Of a `header` that changes responses late.
const LATE: &str =
    "what is changed late (`-`, `?`, `>`, `defer`, `match`) is changed in responses to errors too";

/// Each once, where it is written first.
pub(crate) fn of(file: &File) -> Vec<Warning> {
    let mut found = Found::default();
    found.lines(&file.global);
    file.named_routes.iter().for_each(|route| found.lines(&route.lines));
    file.sites.iter().for_each(|site| found.lines(&site.lines));
    found.0.into_iter().map(|(_, warning)| warning).collect()
}

#[derive(Default)]
struct Found(Vec<(&'static str, Warning)>);

impl Found {
    fn lines(&mut self, lines: &[Line]) {
        // Named matchers are no directives.
        for line in lines.iter().filter(|line| !line.name.text.starts_with('@')) {
            self.line(line);
            self.lines(line.block.as_deref().unwrap_or_default());
        }
    }

    fn line(&mut self, line: &Line) {
        let name = line.name.text.as_str();
        let is = |known: &str| {
            known == name || line.args.iter().any(|arg| known == format!("{name} {}", arg.text))
        };
        for (known, how) in DIFFERENCES.iter().filter(|(known, _)| is(known)) {
            self.add(known, &line.name, how);
        }
        if name == "file_server" && line.args.iter().any(|arg| arg.text == "browse") {
            let how = DIFFERENCES.iter().find(|(known, _)| *known == "browse").map_or("", |(_, how)| how);
            self.add("browse", &line.name, how);
        }
        if name == "header" && changes_late(line) {
            self.add("header", &line.name, LATE);
        }
    }

    fn add(&mut self, known: &'static str, place: &Token, how: &str) {
        if self.0.iter().all(|(name, _)| *name != known) {
            let message = format!("`{known}` is not quite Caddy's: {how}");
            self.0.push((known, Warning { message, span: Some(place.span.clone()) }));
        }
    }
}

fn changes_late(line: &Line) -> bool {
    let is_late = |token: &Token| token.text.starts_with(['-', '?', '>']);
    let within = line.block.as_deref().unwrap_or_default();
    line.args.iter().take(2).any(is_late)
        || within
            .iter()
            .any(|line| is_late(&line.name) || matches!(line.name.text.as_str(), "defer" | "match"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::load;

    fn said(text: &str) -> Vec<String> {
        load(text).unwrap().differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_is_said_once_where_it_is_first() {
        let found = said(
            "{\nservers {\ntimeouts {\nread_body 5s\n}\n}\n}\n:80 {\nroute {\nmap {path} {x} {\n/a b\n}\n}\n\
             map {path} {y} {\n/a b\n}\nheader /x -Server\nfile_server browse\n}",
        );
        let places: Vec<_> = found.iter().map(|text| text.split(" is not").next().unwrap()).collect();
        assert_eq!(
            places,
            [
                "Caddyfile:3:1: `timeouts`",
                "Caddyfile:10:1: `map`",
                "Caddyfile:17:1: `header`",
                "Caddyfile:18:1: `file_server`",
                "Caddyfile:18:1: `browse`"
            ]
        );
    }

    #[test]
    fn what_is_the_same_is_not_mentioned() {
        let text = ":80 {\n@x header X-A -b\nheader @x X-A b\nuri strip_prefix /a\nredir /a /b\nrespond x\n}";
        assert_eq!(said(text), [""; 0]);
        assert!(DIFFERENCES.is_sorted_by_key(|(name, _)| *name), "in order, each once");
    }
}
