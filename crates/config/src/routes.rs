//! The lines of a block to routes.

use crate::call::Call;
use crate::context::{Context, Notation};
use crate::directives::{self, Directive, Matchers, Parse};
use crate::matchers::{self, Scope};
use crate::model::{MatcherSet, Route};
use crate::order::{self, Entry};
use crate::problems::{not_built, unknown_name};
use regent_caddyfile::{Error, Line};

/// Directives of which only the first that matches is carried out, within one block. (Caddy: a second `rewrite` or
/// `root` would otherwise undo the first.)
const EXCLUSIVE: &[&str] = &["cache", "deadline", "handle", "lane", "retry", "rewrite", "root"];

/// Whether the directives of a block are sorted.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sorting {
    ByDirective,
    /// In a `route` block.
    AsWritten,
}

/// Parses the directives of a block. Mistakes are noted in `cx`, and what has one is left out.
pub(crate) fn parse(
    cx: &mut Context<'_>,
    outer: Option<&Scope<'_>>,
    lines: &[Line],
    sorting: Sorting,
) -> Vec<Route> {
    let scope = Scope::new(cx, outer, lines);
    parse_within(cx, &scope, lines, sorting)
}

/// The same for a block whose matchers are in `scope` already.
pub(crate) fn parse_within(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    lines: &[Line],
    sorting: Sorting,
) -> Vec<Route> {
    let mut entries = Vec::new();
    for line in lines.iter().filter(|line| !matchers::is_definition(line)) {
        let result = entry(cx, scope, line);
        let Some(entry) = cx.check(result) else { continue };
        if sorting == Sorting::ByDirective
            && entries.iter().any(|earlier| order::are_equal_vars(earlier, &entry))
        {
            cx.differ(
                &line.name,
                "of two `vars` for one variable that are equally specific the one that is written last counts; in Caddy the first does",
            );
        }
        entries.push(entry);
    }
    if cx.notation == Notation::Json {
        return entries.into_iter().flat_map(|entry| entry.routes).collect();
    }
    if sorting == Sorting::ByDirective {
        entries = cx.order.sort(entries);
    }
    group(entries)
}

fn entry(cx: &mut Context<'_>, scope: &Scope<'_>, line: &Line) -> Result<Entry, Error> {
    let of_json =
        (cx.notation == Notation::Json).then(|| directives::find_of_json(&line.name.text)).flatten();
    let Some(directive) = of_json.or_else(|| directives::find(&line.name.text)) else {
        let names: Vec<_> = directives::names().collect();
        return Err(unknown_name(&line.name, "directive", &names));
    };
    let (matchers, call) = split_matcher(scope, directive, line)?;
    let routes = match directive.parse {
        Parse::Ignored(why) => {
            cx.warn(&line.name, format!("`{}` has no effect: {why}", directive.name));
            Vec::new()
        }
        Parse::NotBuilt => return Err(not_built(&line.name)),
        Parse::Handler(parse) => vec![Route { group: None, matchers, handler: parse(cx, scope, &call)? }],
        Parse::Routes(parse) => parse(cx, scope, &call)?,
    };
    Ok(Entry { directive: directive.sorts_as, routes })
}

/// Takes the matcher off the arguments, if the directive can have one and it is there.
fn split_matcher<'a>(
    scope: &Scope<'_>,
    directive: &Directive,
    line: &'a Line,
) -> Result<(Vec<MatcherSet>, Call<'a>), Error> {
    let call = Call::new(line);
    let possible = match directive.matchers {
        Matchers::First => !call.args.is_empty(),
        Matchers::FirstOfTwo => call.args.len() > 1,
        Matchers::None => false,
    };
    if possible && let Some(matchers) = scope.matcher(&call.args[0])? {
        return Ok((matchers, Call { args: &call.args[1..], ..call }));
    }
    Ok((Vec::new(), call))
}

/// Numbers the groups and puts the routes of all entries into one list.
fn group(entries: Vec<Entry>) -> Vec<Route> {
    let count = |name: &str| entries.iter().filter(|entry| entry.directive == name).count();
    let exclusive: Vec<_> = EXCLUSIVE.iter().filter(|name| count(name) > 1).copied().zip(0..).collect();
    let mut routes = Vec::new();
    for entry in entries {
        let group = exclusive.iter().find(|(name, _)| *name == entry.directive).map(|(_, group)| *group);
        routes.extend(entry.routes.into_iter().map(|route| Route { group, ..route }));
    }
    routes
}
