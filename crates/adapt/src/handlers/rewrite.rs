//! `rewrite`, `uri`, `method` and `try_files`.

use crate::Writer;
use crate::object::Object;
use crate::text::text;
use crate::words::Line;
use regent_config::{FileMatcher, Matcher, Part, QueryChange, Rewrite, Template};
use serde_json::Value;

/// What a file condition has found.
const FOUND: &str = "{http.matchers.file.relative}";

/// A change of the request.
pub(super) fn handlers(writer: &Writer<'_>, change: &Rewrite) -> Vec<Value> {
    match change {
        Rewrite::TryFiles(files) => vec![Object::subroute(try_files(writer, files)).build()],
        Rewrite::Query(changes) if !is_sorted(changes) => {
            changes.iter().map(|one| with_query(std::slice::from_ref(one)).build()).collect()
        }
        other => {
            let mut handler = Object::handler("rewrite");
            set_keys(&mut handler, other);
            vec![handler.build()]
        }
    }
}

/// The routes of `try_files`: files that change the query have one each, of which the first counts
/// (Caddy's fileserver/caddyfile.go, parseTryFiles).
pub(crate) fn try_files(writer: &Writer<'_>, files: &FileMatcher) -> Vec<Value> {
    let has_query = |file: &Template| text(file).contains('?');
    let alike: Vec<_> = files.try_files.chunk_by(|one, other| !has_query(one) && !has_query(other)).collect();
    let group = (alike.len() > 1).then(|| writer.next_group());
    let route = |tried: &[Template]| {
        let (tried, query) = match tried {
            [only] if has_query(only) => without_query(only),
            _ => (tried.to_vec(), String::new()),
        };
        let files = FileMatcher { try_files: tried, ..files.clone() };
        let mut rewrite = Object::handler("rewrite");
        rewrite.set("uri", format!("{FOUND}{query}"));
        let mut route = Object::new();
        route.set_some("group", group.clone());
        route.set("match", vec![writer.matcher_set(&[Matcher::File(files)])]);
        route.set("handle", vec![rewrite.build()]);
        route.build()
    };
    alike.into_iter().map(route).collect()
}

/// A file, and the query behind it.
fn without_query(file: &Template) -> (Vec<Template>, String) {
    let mut before = Vec::new();
    let mut parts = file.0.iter();
    for part in parts.by_ref() {
        if let Part::Text(text) = part
            && let Some((path, query)) = text.split_once('?')
        {
            before.extend((!path.is_empty()).then(|| Part::Text(path.to_owned())));
            let rest =
                Template(std::iter::once(Part::Text(format!("?{query}"))).chain(parts.cloned()).collect());
            return (vec![Template(before)], crate::text::text(&rest));
        }
        before.push(part.clone());
    }
    (vec![Template(before)], String::new())
}

/// The keys of a rewrite, as `reverse_proxy` has them too.
pub(super) fn set_keys(object: &mut Object, change: &Rewrite) {
    match change {
        Rewrite::To(to) => object.set("uri", text(to)),
        Rewrite::Method(method) => object.set("method", text(method)),
        Rewrite::StripPrefix(prefix) => object.set("strip_path_prefix", text(prefix)),
        Rewrite::StripSuffix(suffix) => object.set("strip_path_suffix", text(suffix)),
        Rewrite::Replace { find, replace, limit } => {
            let mut one = Object::new();
            one.set("find", text(find));
            one.set("replace", text(replace));
            one.set_unless("limit", *limit, 0);
            object.set("uri_substring", vec![one.build()]);
        }
        Rewrite::PathRegexp { find, replace } => {
            let mut one = Object::new();
            one.set("find", find.as_str());
            one.set("replace", text(replace));
            object.set("path_regexp", vec![one.build()]);
        }
        Rewrite::Query(changes) => object.set("query", query(changes)),
        Rewrite::TryFiles(_) => {}
    }
}

/// As an option of `reverse_proxy`, which has these two.
pub(super) fn line(change: &Rewrite) -> Option<Line> {
    match change {
        Rewrite::To(to) => Some(Line::new(["rewrite"]).word(text(to))),
        Rewrite::Method(method) => Some(Line::new(["method"]).word(text(method))),
        _ => None,
    }
}

fn with_query(changes: &[QueryChange]) -> Object {
    let mut handler = Object::handler("rewrite");
    handler.set("query", query(changes));
    handler
}

/// Caddy's kinds of changes, in the order in which it carries them out (modules/caddyhttp/rewrite, queryOps.do).
const KINDS: [&str; 5] = ["rename", "set", "add", "replace", "delete"];

/// Whether the order within one handler is that of the changes.
fn is_sorted(changes: &[QueryChange]) -> bool {
    let rank = |change: &QueryChange| KINDS.iter().position(|name| *name == kind(change));
    changes.is_sorted_by_key(rank)
}

fn kind(change: &QueryChange) -> &'static str {
    match change {
        QueryChange::Rename { .. } => "rename",
        QueryChange::Set { .. } => "set",
        QueryChange::Add { .. } => "add",
        QueryChange::Replace { .. } => "replace",
        QueryChange::Delete { .. } => "delete",
    }
}

fn query(changes: &[QueryChange]) -> Object {
    let mut object = Object::new();
    for name in KINDS {
        object.set_list(name, changes.iter().filter(|change| kind(change) == name).map(query_change));
    }
    object
}

fn query_change(change: &QueryChange) -> Value {
    let mut object = Object::new();
    match change {
        QueryChange::Delete { key } => return text(key).into(),
        QueryChange::Rename { from: key, to: value }
        | QueryChange::Set { key, value }
        | QueryChange::Add { key, value } => {
            object.set("key", text(key));
            object.set("val", text(value));
        }
        QueryChange::Replace { key, find, replace } => {
            object.set("key", text(key));
            object.set("search_regexp", find.as_str());
            object.set("replace", text(replace));
        }
    }
    object.build()
}
