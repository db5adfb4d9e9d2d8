//! `handle_errors [STATUS…] { … }`: the answer to errors of the site, by the directives in the block.
//!
//! An error is what `error` asks for, a file or script that is not there, and a request that PHP could not answer: too
//! many wait, it took too long, its body is too large, or PHP has died. What a script answers is none, whatever its
//! status. A `STATUS` is a number or `4xx`; of several blocks for one the first counts, and a block without any is for all that the others leave. The answer keeps the
//! status of the error unless a directive sets another, and an error in the block ends in a plain page. A script in the
//! block is not run for an error of PHP itself.
//!
//! | placeholder | value |
//! |---|---|
//! | `{err.status_code}` | 404 |
//! | `{err.status_text}` | Not Found |
//! | `{err.message}` | what `error` says; otherwise the status text |
//! | `{err.id}` | nine characters by which a page and a line of a log (`log_append id {err.id}`) can be found together |
//! | `{http.error}` | all of it in a line |
//!
//! ```caddyfile
//! handle_errors 404 503 {
//!     root errors/
//!     rewrite /{err.status_code}.html
//!     file_server
//! }
//! handle_errors {
//!     respond "{err.status_code} {err.message}"
//! }
//! ```

use super::basic_auth;
use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::context::{Context, Notation};
use crate::matchers::Scope;
use crate::model::{Handler, Matcher, Route};
use crate::problems::{error, unknown_name};
use crate::routes::{self, Sorting};
use crate::values;
use regent_caddyfile::{Error, Line};

pub(super) const DIRECTIVE: Directive = Directive {
    name: "handle_errors",
    sorts_as: "handle_errors",
    matchers: Matchers::None,
    parse: Parse::Routes(misplaced),
};

/// How `regent-caddy-json` writes the routes for errors of a server, in the order in which they stand; no Caddyfile has it.
pub(crate) const OF_JSON: &str = "json errors";

const SYNTAX: &str = "handle_errors [STATUS…] { DIRECTIVE… }";

/// One route for each block, those for all errors last. Mistakes are noted in `cx`.
pub(crate) fn routes(cx: &mut Context<'_>, scope: &Scope<'_>, lines: &[&Line]) -> Vec<Route> {
    let mut routes = Vec::new();
    note_equals(cx, lines);
    for line in lines {
        if line.name.text == OF_JSON {
            return match cx.notation {
                Notation::Json => of_json(cx, scope, line),
                Notation::Caddyfile => {
                    cx.errors.push(unknown_name(&line.name, "directive", &["handle_errors"]));
                    Vec::new()
                }
            };
        }
        let route = route(cx, scope, &Call::new(line));
        routes.extend(cx.check(route));
    }
    routes.sort_by_key(|route: &Route| route.matchers.is_empty());
    routes
}

/// Of two blocks that are for the same error, Caddy takes the later one (httpcaddyfile/httptype.go).
fn note_equals(cx: &mut Context<'_>, lines: &[&Line]) {
    let statuses = |line: &Line| -> Vec<_> {
        line.args.iter().filter_map(|token| values::statuses(token).ok()).collect()
    };
    let meets = |one: &Line, other: &Line| {
        let (one, other) = (statuses(one), statuses(other));
        (one.is_empty() && other.is_empty())
            || one
                .iter()
                .any(|(least, most)| other.iter().any(|(first, last)| least <= last && first <= most))
    };
    for (at, line) in lines.iter().enumerate() {
        if lines[..at].iter().any(|earlier| meets(earlier, line)) {
            cx.differ(
                &line.name,
                "of two `handle_errors` for the same status the one that is written first counts; in Caddy the last does",
            );
        }
    }
}

fn of_json(cx: &mut Context<'_>, scope: &Scope<'_>, line: &Line) -> Vec<Route> {
    let lines = line.block.as_deref().unwrap_or_default();
    basic_auth::refuse_within(cx, lines, "handle_errors");
    routes::parse(cx, Some(scope), lines, Sorting::AsWritten)
}

/// One at its place is taken out before the routes of a site are parsed.
fn misplaced(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Vec<Route>, Error> {
    Err(error(call.name, "`handle_errors` has to stand directly in a site block"))
}

fn route(cx: &mut Context<'_>, scope: &Scope<'_>, call: &Call<'_>) -> Result<Route, Error> {
    let Some(lines) = call.block else {
        return Err(error(call.name, format!("`handle_errors` needs a block; write: {SYNTAX}")));
    };
    basic_auth::refuse_within(cx, lines, "handle_errors");
    let statuses = call.args.iter().filter_map(|token| cx.check(values::statuses(token))).collect::<Vec<_>>();
    let matchers = if call.args.is_empty() { vec![] } else { vec![vec![Matcher::ErrorStatus(statuses)]] };
    let handler = Handler::Subroute(routes::parse(cx, Some(scope), lines, Sorting::ByDirective));
    Ok(Route { group: None, matchers, handler })
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, errors, load};
    use crate::model::{Handler, Matcher, Site};

    fn site(directives: &str) -> Site {
        config(&format!(":80 {{\n{directives}\n}}")).servers.remove(0).sites.remove(0)
    }

    #[test]
    fn the_order_of_equals_is_not_caddy_s() {
        let differs = |directives: &str| {
            let loaded = load(&format!(":80 {{\n{directives}\n}}")).unwrap();
            loaded.differences.iter().filter(|one| one.message.contains("of two `handle_errors`")).count()
        };
        assert_eq!(differs("handle_errors 404 {\n}\nhandle_errors 4xx {\n}"), 1);
        assert_eq!(differs("handle_errors {\n}\nhandle_errors {\n}"), 1);
        assert_eq!(differs("handle_errors 404 {\n}\nhandle_errors 5xx {\n}\nhandle_errors {\n}"), 0);
    }

    #[test]
    fn those_for_certain_statuses_go_first() {
        let site = site("handle_errors {\n}\nhandle_errors 404 5xx {\n}\nhandle_errors 410 {\n}\nrespond x");
        let matchers: Vec<_> = site.error_routes.iter().map(|route| route.matchers.as_slice()).collect();
        let one = |ranges: &[(u16, u16)]| [vec![Matcher::ErrorStatus(ranges.to_vec())]];
        assert_eq!(matchers[0], one(&[(404, 404), (500, 599)]));
        assert_eq!(matchers[1], one(&[(410, 410)]));
        assert!(matchers[2].is_empty() && matchers.len() == 3);
        assert_eq!(site.routes.len(), 1);
    }

    #[test]
    fn the_matchers_of_the_site_are_known() {
        let site = site("@api path /api/*\nhandle_errors {\nrespond @api api\nroot /errors\n}");
        let Handler::Subroute(routes) = &site.error_routes[0].handler else { panic!("{site:?}") };
        assert!(matches!(routes[0].handler, Handler::Root(_)));
        assert_eq!(routes[1].matchers.len(), 1);
    }

    #[test]
    fn mistakes() {
        let found = errors(
            "handle_errors\nhandle_errors 40 xx4 0xx xxx +4xx 4xxx {\nrespnd\n}\nhandle {\nhandle_errors {\n}\n}",
        );
        assert_eq!(found[0], "`handle_errors` needs a block; write: handle_errors [STATUS…] { DIRECTIVE… }");
        assert_eq!(found[1], "`40` is no status; write a number such as `404`, or `4xx`");
        assert_eq!(found[8], "`handle_errors` has to stand directly in a site block");
        assert_eq!(found.len(), 9, "{found:?}");
    }
}
