//! Lists of routes, which become directives that are carried out in the order in which they are written.

use crate::document::Node;
use crate::handlers;
use crate::matchers;
use crate::reader::{Reader, block, line, word};
use regent_caddyfile::Line;

/// A route of JSON as the tree has it; no Caddyfile has a directive of this name. In its block are `match { CONDITION… }`, of
/// which one must match, and `handle { DIRECTIVE… }`. An argument is the number of its group.
const ROUTE: &str = "json route";

/// Handlers that answer in any case, so that a route which ends with one is its end.
const ANSWERING: &[&str] = &["abort", "error", "redir", "respond", "reverse_proxy"];

/// The lines that a list of routes becomes.
pub(crate) fn lines(r: &mut Reader, list: &Node) -> Vec<Line> {
    let mut groups = Groups::default();
    let mut lines = Vec::new();
    for route in r.list(list) {
        lines.append(&mut of_route(r, route, &mut groups));
    }
    lines
}

/// The lines of a route that has a name and no conditions.
pub(crate) fn of_named(r: &mut Reader, route: &Node) -> Vec<Line> {
    of_route(r, route, &mut Groups::default())
}

/// The groups of a list, by the order in which they come.
#[derive(Default)]
struct Groups(Vec<String>);

impl Groups {
    fn number(&mut self, name: &str) -> usize {
        let known = self.0.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        })
    }
}

fn of_route(r: &mut Reader, route: &Node, groups: &mut Groups) -> Vec<Line> {
    let fields = r.object(route);
    let sets = fields.take("match").map(|node| matchers::sets(r, node)).unwrap_or_default();
    let mut lines = fields.take("handle").map(|node| handlers::lines(r, node)).unwrap_or_default();
    let group = fields.take("group").and_then(|node| r.text(node)).filter(|group| !group.text.is_empty());
    if fields.take("terminal").is_some_and(|node| r.bool(node)) {
        end(route, &mut lines);
    }
    fields.finish(r, "a route");
    if sets.is_empty() && group.is_none() {
        return lines;
    }
    let group = group.map(|name| word(route, &groups.number(&name.text).to_string()));
    let inner = sets.into_iter().chain([block(route, "handle", Vec::new(), lines)]).collect();
    vec![block(route, ROUTE, group.into_iter().collect(), inner)]
}

/// Nothing follows a terminal route: what has not been answered by then is answered with nothing.
fn end(route: &Node, lines: &mut Vec<Line>) {
    let answers = lines.last().is_some_and(|line| ANSWERING.contains(&line.name.text.as_str()));
    if !answers {
        lines.push(line(route, "respond", vec![word(route, "*")]));
    }
}
