//! `uri query`: changes of the parameters in the query.

use crate::context::exchange::Exchange;
use crate::error::BuildError;
use crate::paths::url_path::{self, BadRequest};
use crate::templates::placeholder::query_pairs;
use crate::templates::text::Text;
use regent_config::QueryChange;
use regex::bytes::Regex;

/// Compiled changes, in the order in which Caddy carries them out (`queryOps.do`).
pub(crate) struct QueryChanges(Vec<Change>);

enum Change {
    Rename { from: Text, to: Text },
    Set { key: Text, value: Text },
    Add { key: Text, value: Text },
    Replace { key: Text, find: Regex, replace: Text },
    Delete { key: Text },
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

pub(super) fn regex(pattern: &str) -> Result<Regex, BuildError> {
    Regex::new(pattern).map_err(|source| BuildError::Regex { pattern: pattern.to_owned(), source })
}

impl QueryChanges {
    pub(crate) fn compile(changes: &[QueryChange]) -> Result<Self, BuildError> {
        let mut compiled = changes.iter().map(Change::compile).collect::<Result<Vec<_>, _>>()?;
        compiled.sort_by_key(Change::rank);
        Ok(Self(compiled))
    }

    pub(crate) fn apply(&self, exchange: &mut Exchange) -> Result<(), BadRequest> {
        let mut pairs: Pairs = query_pairs(&exchange.uri).collect();
        for change in &self.0 {
            change.apply(exchange, &mut pairs);
        }
        // Go's `Values.Encode`: by key, and in their order within it.
        pairs.sort_by(|left, right| left.0.cmp(&right.0));
        let query = encoded(&pairs);
        let path = exchange.uri.path().as_bytes().to_vec();
        exchange.rewrite(&path, Some(&query).filter(|query| !query.is_empty()).map(Vec::as_slice))
    }
}

impl Change {
    fn compile(change: &QueryChange) -> Result<Self, BuildError> {
        let text = Text::compile;
        Ok(match change {
            QueryChange::Rename { from, to } => Self::Rename { from: text(from), to: text(to) },
            QueryChange::Set { key, value } => Self::Set { key: text(key), value: text(value) },
            QueryChange::Add { key, value } => Self::Add { key: text(key), value: text(value) },
            QueryChange::Replace { key, find, replace } => {
                Self::Replace { key: text(key), find: regex(find)?, replace: text(replace) }
            }
            QueryChange::Delete { key } => Self::Delete { key: text(key) },
        })
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Rename { .. } => 0,
            Self::Set { .. } => 1,
            Self::Add { .. } => 2,
            Self::Replace { .. } => 3,
            Self::Delete { .. } => 4,
        }
    }

    fn apply(&self, exchange: &Exchange, pairs: &mut Pairs) {
        let render = |text: &Text| text.render(exchange).into_owned();
        match self {
            Self::Rename { from, to } => {
                let (from, to) = (render(from), render(to));
                if from.is_empty() || to.is_empty() {
                    return;
                }
                // What had the new name before is gone, as in Caddy.
                pairs.retain(|(key, _)| *key != to || *key == from);
                pairs.iter_mut().filter(|(key, _)| *key == from).for_each(|(key, _)| key.clone_from(&to));
            }
            Self::Set { key, value } => {
                let key = render(key);
                pairs.retain(|(known, _)| *known != key);
                pairs.push((key, render(value)));
            }
            Self::Add { key, value } => pairs.push((render(key), render(value))),
            Self::Replace { key, find, replace } => {
                let (key, replace) = (render(key), render(replace));
                for (_, value) in pairs.iter_mut().filter(|(known, _)| key == b"*" || *known == key) {
                    *value = find.replace_all(value, &*replace).into_owned();
                }
            }
            Self::Delete { key } => {
                let key = render(key);
                pairs.retain(|(known, _)| *known != key);
            }
        }
    }
}

fn encoded(pairs: &Pairs) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in pairs {
        if !out.is_empty() {
            out.push(b'&');
        }
        encode(key, &mut out);
        out.push(b'=');
        encode(value, &mut out);
    }
    out
}

/// As Go's `url.QueryEscape`.
fn encode(text: &[u8], out: &mut Vec<u8>) {
    for (index, word) in text.split(|byte| *byte == b' ').enumerate() {
        if index > 0 {
            out.push(b'+');
        }
        url_path::encode_query_value(word, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::get;
    use regent_config::Template;

    #[test]
    fn parameters_are_changed() {
        let text = Template::text;
        let set = QueryChange::Set { key: text("s"), value: text("1 2") };
        let add = QueryChange::Add { key: text("a"), value: text("&") };
        let rename = QueryChange::Rename { from: text("old"), to: text("new") };
        let delete = QueryChange::Delete { key: text("gone") };
        let replace = QueryChange::Replace { key: text("*"), find: "x+".into(), replace: text("y") };
        for (change, before, after) in [
            (&set, "/?s=0&s=3&b=1", "/?b=1&s=1+2"),
            (&add, "/", "/?a=%26"),
            (&rename, "/?old=1&new=2", "/?new=1"),
            (&delete, "/?gone=1&gone=2", "/"),
            (&replace, "/?a=xxa&b=bx", "/?a=ya&b=by"),
        ] {
            let mut exchange = get(before);
            QueryChanges::compile(std::slice::from_ref(change)).unwrap().apply(&mut exchange).unwrap();
            assert_eq!(exchange.uri.to_string(), after, "{change:?}");
        }
    }
}
