//! `order DIRECTIVE first | last`, or `order DIRECTIVE before | after DIRECTIVE`: another place for a directive in the order in which
//! those of a block are carried out.
//!
//! Whatever their order in the file, the directives of a block are carried out in this one:
//!
//! `tracing`, `server_timing`, `map`, `vars`, `root`, `log_append`, `skip_log`, `log_skip`, `log_name`, `log_level`, `header`,
//! `copy_response_headers`, `request_body`, `timeouts`, `deadline`, `retry`, `lane`, `run_departed`, `redir`, `method`,
//! `rewrite`, `uri`, `try_files`, `rate_limit`, `basicauth`, `basic_auth`, `forward_auth`, `request_header`, `encode`,
//! `cache`, `mercure`, `intercept`, `templates`, `invoke`, `handle`, `handle_path`, `route`, `abort`, `error`, `copy_response`,
//! `respond`, `metrics`, `reverse_proxy`, `php_fastcgi`, `native`, `php`, `php_server`, `file_server`.
//!
//! Of several of one name, the one with the most specific path goes first, then those with another matcher, then those without (of
//! `vars` and `log_level` last, so that it wins). `handle`, `respond`, `php_server` and the like end the way of a request: what
//! comes after them is not reached, so a `respond /ping pong` goes before `php_server` wherever it stands. In `route` the order is
//! that of the file.
//!
//! ```caddyfile
//! {
//!     order rate_limit before rewrite
//! }
//! ```

use crate::call::Call;
use crate::directives;
use crate::model::{Handler, Matcher, Part, Route, Template};
use crate::problems::{error, unknown};
use regent_caddyfile::{Error, Token};

const SYNTAX: &str = "order DIRECTIVE first | last | before DIRECTIVE | after DIRECTIVE";

/// The names of all directives, first to be carried out first.
pub(crate) struct Order(Vec<&'static str>);

/// Directives of modules that others have written for Caddy. A Caddyfile that is for several builds may order them.
const OF_OTHERS: &[&str] =
    &["coraza_waf", "crowdsec", "geoip2_vars", "jwtauth", "replace", "teapot", "webdav", "websocket"];

/// What came of an `order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    Order,
    /// The directive is of another module for Caddy, which is not here.
    Nothing,
}

/// What one directive became, and what it is sorted by.
pub(crate) struct Entry {
    pub directive: &'static str,
    pub routes: Vec<Route>,
}

impl Default for Order {
    fn default() -> Self {
        Self(directives::names().collect())
    }
}

impl Order {
    /// The global option `order`.
    pub fn change(&mut self, call: &Call<'_>) -> Result<Changed, Error> {
        call.without_block(SYNTAX)?;
        let (name, position, other) = match call.args {
            [name, position] => (name, position, None),
            [name, position, other] => (name, position, Some(other)),
            args => return Err(call.wrong_arguments(if args.len() > 3 { 3 } else { 2 }, SYNTAX)),
        };
        if OF_OTHERS.contains(&name.text.as_str()) {
            return Ok(Changed::Nothing);
        }
        let name = self.known(name)?;
        let rest: Vec<_> = self.0.iter().copied().filter(|other| *other != name).collect();
        let place = |other: &Token| -> Result<usize, Error> {
            let other_name = self.known(other)?;
            rest.iter()
                .position(|candidate| *candidate == other_name)
                .ok_or_else(|| error(other, format!("`{other_name}` cannot come before or after itself")))
        };
        let index = match (position.text.as_str(), other) {
            ("first", None) => 0,
            ("last", None) => rest.len(),
            ("before", Some(other)) => place(other)?,
            ("after", Some(other)) => place(other)? + 1,
            _ => return Err(error(position, format!("this is no position; write: {SYNTAX}"))),
        };
        self.0 = rest;
        self.0.insert(index, name);
        Ok(Changed::Order)
    }

    /// Sorts as Caddy does: by this order, then the most specific path first (for `vars` and `log_level` last, so that it wins).
    pub fn sort(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut sorted: Vec<(usize, Entry)> = Vec::with_capacity(entries.len());
        for entry in entries {
            let rank = self.0.iter().position(|name| *name == entry.directive).unwrap_or(self.0.len());
            // An insertion sort: what Caddy compares by is no total order, and this is how it deals with that.
            let later = sorted.iter().rev().take_while(|(other_rank, other)| {
                rank < *other_rank || (rank == *other_rank && goes_before(&entry, other))
            });
            let index = sorted.len() - later.count();
            sorted.insert(index, (rank, entry));
        }
        sorted.into_iter().map(|(_, entry)| entry).collect()
    }

    fn known(&self, token: &Token) -> Result<&'static str, Error> {
        let found = self.0.iter().copied().find(|name| *name == token.text);
        found.ok_or_else(|| unknown(token, "directive", &self.0))
    }
}

/// Whether `a` goes before `b`, both of the same directive.
fn goes_before(a: &Entry, b: &Entry) -> bool {
    if matches!(a.directive, "vars" | "log_level") { more_specific(b, a) } else { more_specific(a, b) }
}

/// Whether two `vars` set the same variable and neither is more specific, so that their order in the file decides.
pub(crate) fn are_equal_vars(a: &Entry, b: &Entry) -> bool {
    let is_vars = |entry: &Entry| entry.directive == "vars";
    let names = |entry: &Entry| -> Vec<String> {
        match entry.routes.first().map(|route| &route.handler) {
            Some(Handler::Vars(pairs)) => pairs.iter().map(|(name, _)| name.clone()).collect(),
            _ => Vec::new(),
        }
    };
    let (own, others) = (names(a), names(b));
    is_vars(a)
        && is_vars(b)
        && !more_specific(a, b)
        && !more_specific(b, a)
        && own.iter().any(|name| others.contains(name))
}

fn more_specific(a: &Entry, b: &Entry) -> bool {
    let (Some(path), Some(other)) = (a.path(), b.path()) else {
        return a.has_matcher() && !b.has_matcher();
    };
    let (stem, other_stem) = (path.trim_end_matches('*'), other.trim_end_matches('*'));
    if stem == other_stem {
        return path.len() < other.len();
    }
    if stem.len() == other_stem.len() { stem < other_stem } else { stem.len() > other_stem.len() }
}

impl Entry {
    fn has_matcher(&self) -> bool {
        self.routes.first().is_some_and(|route| !route.matchers.is_empty())
    }

    /// The path if the only condition set has exactly one.
    fn path(&self) -> Option<String> {
        let [matchers] = self.routes.first()?.matchers.as_slice() else { return None };
        let paths = matchers.iter().find_map(|matcher| match matcher {
            Matcher::Path(paths) => Some(paths),
            _ => None,
        });
        match paths?.as_slice() {
            [path] => Some(written(path)),
            _ => None,
        }
    }
}

fn written(template: &Template) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Placeholder(name) => format!("{{{name}}}"),
    };
    template.0.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(directive: &'static str, path: &str) -> Entry {
        let matchers =
            if path.is_empty() { vec![] } else { vec![vec![Matcher::Path(vec![Template::text(path)])]] };
        let handler = Handler::Subroute(Vec::new());
        Entry { directive, routes: vec![Route { group: None, matchers, handler }] }
    }

    fn sorted(entries: &[(&'static str, &str)]) -> Vec<String> {
        let entries = entries.iter().map(|(directive, path)| entry(directive, path)).collect();
        let show = |entry: &Entry| format!("{} {}", entry.directive, entry.path().unwrap_or_default());
        Order::default().sort(entries).iter().map(show).collect()
    }

    #[test]
    fn the_page_has_the_order() {
        let page: String =
            include_str!("order.rs").lines().map_while(|line| line.strip_prefix("//!")).collect();
        let (ordered, last) = (directives::working(), "file_server");
        let mut list: Vec<_> =
            ordered.take_while(|name| *name != last).map(|name| format!("`{name}`")).collect();
        list.push(format!("`{last}`."));
        let list = list.join(", ");
        assert!(page.contains(&list), "the documentation at the top has to have: {list}");
    }

    #[test]
    fn by_directive_then_by_path() {
        let entries = [
            ("file_server", ""),
            ("respond", ""),
            ("respond", "/a*"),
            ("respond", "/a"),
            ("respond", "/abc*"),
            ("root", ""),
        ];
        let expected = ["root ", "respond /abc*", "respond /a", "respond /a*", "respond ", "file_server "];
        assert_eq!(sorted(&entries), expected);
    }

    #[test]
    fn equal_ones_stay_in_order_and_vars_are_the_other_way_round() {
        assert_eq!(sorted(&[("respond", "/b"), ("respond", "/a")]), ["respond /a", "respond /b"]);
        assert_eq!(
            sorted(&[("vars", "/abc"), ("vars", "/a"), ("vars", "")]),
            ["vars ", "vars /a", "vars /abc"]
        );
    }
}
