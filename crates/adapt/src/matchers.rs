//! Conditions on requests.

mod expression;

use crate::Writer;
use crate::object::Object;
use crate::server::ranges;
use crate::text::{text, texts};
use crate::words::Line;
use regent_config::{FileMatcher, Matcher, TryPolicy};
use serde_json::{Map, Value};
use std::collections::HashSet;

impl Writer<'_> {
    /// All of these must match. What would be there under one key twice is put into `not` of `not`, which is the same.
    pub(crate) fn matcher_set(&self, matchers: &[Matcher]) -> Value {
        let mut set = Map::new();
        let mut taken = HashSet::new();
        let mut nots = Vec::new();
        let mut own = Vec::new();
        for matcher in matchers {
            if let Matcher::Not(sets) = matcher {
                match any_header(sets) {
                    Some((name, values)) if taken.insert(("header", name.to_ascii_lowercase())) => {
                        entry(&mut set, "header").insert(name, values.into());
                    }
                    _ => nots.extend(sets.iter().map(|set| self.matcher_set(set))),
                }
                continue;
            }
            let (kind, key) = place(matcher);
            let is_first = taken.insert((kind, key.unwrap_or_default().to_ascii_lowercase()));
            if is_first && self.set_condition(&mut set, matcher) {
                continue;
            }
            match own_words(matcher) {
                Some(line) => own.push(line.build()),
                None => nots.push(self.negated(matcher)),
            }
        }
        if !nots.is_empty() {
            set.insert("not".into(), nots.into());
        }
        if !own.is_empty() {
            set.insert("regent".into(), own.into());
        }
        Value::Object(set)
    }

    fn negated(&self, matcher: &Matcher) -> Value {
        let inner = self.matcher_set(std::slice::from_ref(matcher));
        let mut set = Object::new();
        set.set("not", vec![inner]);
        set.build()
    }

    /// Whether Caddy's JSON can have it.
    fn set_condition(&self, set: &mut Map<String, Value>, matcher: &Matcher) -> bool {
        match matcher {
            Matcher::Path(paths) => set.insert("path".into(), texts(paths).into()),
            Matcher::Host(hosts) => set.insert("host".into(), texts(hosts).into()),
            Matcher::Method(methods) => set.insert("method".into(), methods.clone().into()),
            Matcher::RemoteIp(found) => set.insert("remote_ip".into(), within(ranges(found))),
            Matcher::ClientIp(found) => set.insert("client_ip".into(), within(ranges(found))),
            Matcher::Protocol(name) => set.insert("protocol".into(), name.clone().into()),
            Matcher::PathRegexp { name, pattern } => {
                set.insert("path_regexp".into(), regexp(name.as_deref(), pattern).build())
            }
            Matcher::Header { name, value, absent } => {
                let values = match (value, absent) {
                    (_, true) => Value::Null,
                    (Some(value), false) => vec![text(value)].into(),
                    (None, false) => Value::Array(Vec::new()),
                };
                entry(set, "header").insert(name.clone(), values)
            }
            Matcher::HeaderRegexp { name, field, pattern } => {
                entry(set, "header_regexp").insert(field.clone(), regexp(name.as_deref(), pattern).build())
            }
            Matcher::Query(pairs) => {
                let Some((key, _)) = pairs.first() else { return true };
                let values: Vec<_> = pairs.iter().map(|(_, value)| text(value)).collect();
                entry(set, "query").insert(key.clone(), values.into())
            }
            Matcher::File(files) => set.insert("file".into(), file(files).build()),
            Matcher::Vars(pairs) => {
                let mut names = HashSet::new();
                if !pairs.iter().all(|(name, _)| names.insert(text(name))) {
                    return false;
                }
                for (name, values) in pairs {
                    entry(set, "vars").insert(text(name), texts(values).into());
                }
                None
            }
            Matcher::VarsRegexp { name, value, pattern } => {
                entry(set, "vars_regexp").insert(text(value), regexp(name.as_deref(), pattern).build())
            }
            Matcher::Expression(expression) => {
                set.insert("expression".into(), expression::written(expression).into())
            }
            Matcher::ErrorStatus(statuses) => {
                set.insert("expression".into(), error_statuses(statuses).into())
            }
            Matcher::Not(_) => return false,
        };
        true
    }
}

/// The values of a field, one of which it must have: not (not A and not B), as the model has it.
fn any_header(sets: &[Vec<Matcher>]) -> Option<(String, Vec<String>)> {
    let [set] = sets else { return None };
    let mut found: Option<(String, Vec<String>)> = None;
    for matcher in set {
        let Matcher::Not(inner) = matcher else { return None };
        let [inner] = &inner[..] else { return None };
        let [Matcher::Header { name, value: Some(value), absent: false }] = &inner[..] else { return None };
        let (known, values) = found.get_or_insert_with(|| (name.clone(), Vec::new()));
        if !known.eq_ignore_ascii_case(name) {
            return None;
        }
        values.push(text(value));
    }
    found.filter(|(_, values)| values.len() > 1)
}

/// The key of the condition in a set, and what it is about within that.
fn place(matcher: &Matcher) -> (&'static str, Option<String>) {
    match matcher {
        Matcher::Path(_) => ("path", None),
        Matcher::PathRegexp { .. } => ("path_regexp", None),
        Matcher::Host(_) => ("host", None),
        Matcher::Method(_) => ("method", None),
        Matcher::Header { name, .. } => ("header", Some(name.clone())),
        Matcher::HeaderRegexp { field, .. } => ("header_regexp", Some(field.clone())),
        Matcher::Query(pairs) => ("query", pairs.first().map(|(key, _)| key.clone())),
        Matcher::RemoteIp(_) => ("remote_ip", None),
        Matcher::ClientIp(_) => ("client_ip", None),
        Matcher::Protocol(_) => ("protocol", None),
        Matcher::File(_) => ("file", None),
        Matcher::Not(_) => ("not", None),
        Matcher::Vars(_) => ("vars", None),
        Matcher::VarsRegexp { value, .. } => ("vars_regexp", Some(text(value))),
        Matcher::Expression(_) | Matcher::ErrorStatus(_) => ("expression", None),
    }
}

/// The words of a Caddyfile for what an object of JSON cannot have.
fn own_words(matcher: &Matcher) -> Option<Line> {
    match matcher {
        Matcher::Vars(pairs) => {
            let [(name, values)] = &pairs[..] else { return None };
            Some(Line::new(["vars".to_owned(), text(name)].into_iter().chain(texts(values))))
        }
        _ => None,
    }
}

fn entry<'a>(set: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let value = set.entry(key).or_insert_with(|| Value::Object(Map::new()));
    value.as_object_mut().expect("invariant: conditions with keys of their own are objects")
}

fn within(ranges: Vec<String>) -> Value {
    let mut object = Object::new();
    object.set("ranges", ranges);
    object.build()
}

fn regexp(name: Option<&str>, pattern: &str) -> Object {
    let mut object = Object::new();
    object.set_some("name", name);
    object.set("pattern", pattern);
    object
}

pub(crate) fn file(matcher: &FileMatcher) -> Object {
    let FileMatcher { root, try_files, split_path, policy } = matcher;
    let mut object = Object::new();
    object.set_some("root", root.as_ref().map(text));
    object.set_list("try_files", texts(try_files));
    object.set_some("try_policy", try_policy(*policy));
    object.set_list("split_path", split_path.iter().cloned());
    object
}

fn try_policy(policy: TryPolicy) -> Option<&'static str> {
    match policy {
        TryPolicy::FirstExist => None,
        TryPolicy::FirstExistFallback => Some("first_exist_fallback"),
        TryPolicy::SmallestSize => Some("smallest_size"),
        TryPolicy::LargestSize => Some("largest_size"),
        TryPolicy::MostRecentlyModified => Some("most_recently_modified"),
    }
}

/// As Caddy writes what `handle_errors` asks for (httpcaddyfile/builtins.go, parseHandleErrors).
fn error_statuses(statuses: &[(u16, u16)]) -> String {
    const STATUS: &str = "{http.error.status_code}";
    let mut parts: Vec<String> = Vec::new();
    for alike in statuses.chunk_by(|one, other| is_single(one) && is_single(other)) {
        if is_single(&alike[0]) {
            let list: Vec<_> = alike.iter().map(|(status, _)| status.to_string()).collect();
            parts.push(format!("{STATUS} in [{}]", list.join(", ")));
        } else {
            let ranges =
                alike.iter().map(|(least, most)| format!("{STATUS} >= {least} && {STATUS} <= {most}"));
            parts.extend(ranges);
        }
    }
    parts.join(" || ")
}

fn is_single((least, most): &(u16, u16)) -> bool {
    least == most
}
