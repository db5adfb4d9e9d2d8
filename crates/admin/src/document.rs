//! The configuration as a JSON document: its parts, and what a change makes of it. Without I/O, and without knowing what
//! any of it means.
//!
//! Paths and methods are those of Caddy's API (admin.go, `unsyncedConfigAccess`). It differs in that a list within a list
//! has parts too, and in what is an error: a part that is not there is 404.

pub(crate) mod ids;
pub(crate) mod secrets;
#[cfg(test)]
mod tests;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// Objects and lists within each other: as many as the parser of texts takes, with room for what a text has around it.
const MOST_LEVELS: usize = 100;

/// Where a part of the document is: keys, and indices of lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Path(Vec<String>);

/// What is to be done at a path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// `POST`: adds an element to the list that is there, and otherwise sets the key.
    Post(Value),
    /// `POST` to a path that ends in `/...`: adds all elements of this list to the one that is there.
    PostEach(Vec<Value>),
    /// `PUT`: inserts an element into a list, or makes a key, with the objects that lead to it.
    Put(Value),
    /// `PATCH`: replaces what is there.
    Patch(Value),
    Delete,
}

/// Why a part is not shown, or a change not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PartError {
    /// 404.
    #[error("the configuration has no {0}; `GET /config/` prints all of it")]
    Missing(Path),
    /// 409.
    #[error("there is {0} already; `PATCH` replaces it")]
    Exists(Path),
    /// 400.
    #[error("{0} is no list, so that nothing can be added to it")]
    NoList(Path),
    /// 400.
    #[error("{0} names no place in a list: its last part has to be a number from 0, without zeros before it")]
    NoIndex(Path),
    /// 400.
    #[error("a path that ends in `/...` adds all elements of a list: send one")]
    NoElements,
    /// 400.
    #[error("the configuration would have more than {MOST_LEVELS} objects and lists within each other")]
    Deep,
}

impl Path {
    /// Of what is between the slashes of a URL. A key may have `%2F` in it.
    pub fn of_url(text: &str) -> Self {
        let text = text.trim_matches('/');
        if text.is_empty() {
            return Self::default();
        }
        Self(text.split('/').map(|key| percent_decode_str(key).decode_utf8_lossy().into_owned()).collect())
    }

    /// The path of the list, if the text is one that ends in `...`.
    pub fn before_ellipsis(&self) -> Option<Self> {
        let (last, list) = self.0.split_last()?;
        (last == "...").then(|| Self(list.to_vec()))
    }

    /// The last key; of a text without a slash it is the only one.
    pub fn only_key(mut self) -> String {
        self.0.pop().unwrap_or_default()
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these are its keys.
    pub fn is(&self, keys: &[&str]) -> bool {
        self.0 == keys
    }

    /// What follows this one is in it.
    pub fn join(mut self, rest: &Self) -> Self {
        self.0.extend(rest.0.iter().cloned());
        self
    }

    fn up_to(&self, keys: usize) -> Self {
        Self(self.0[..keys].to_vec())
    }
}

/// As the URL of the admin API has it.
impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("/config/")?;
        for (index, key) in self.0.iter().enumerate() {
            let slash = if index == 0 { "" } else { "/" };
            write!(f, "{slash}{}", percent_encoding::utf8_percent_encode(key, KEPT))?;
        }
        Ok(())
    }
}

/// What a URL's path has as it is, but for the slash.
const KEPT: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'@')
    .remove(b':');

/// The part that is there. A key that an object does not have is `null`, as Caddy has it, so that who asks for it gets a
/// tag, by which it can be made without another one's being lost.
pub(crate) fn part<'a>(document: &'a Value, path: &Path) -> Result<&'a Value, PartError> {
    let mut part = document;
    for (index, key) in path.0.iter().enumerate() {
        let is_last = index + 1 == path.0.len();
        part = match part {
            Value::Object(object) => match object.get(key) {
                None if is_last => &Value::Null,
                found => found.ok_or_else(|| PartError::Missing(path.clone()))?,
            },
            Value::Array(list) => {
                let index = place(key, path, index)?;
                list.get(index).ok_or_else(|| PartError::Missing(path.clone()))?
            }
            _ => return Err(PartError::Missing(path.clone())),
        };
    }
    Ok(part)
}

/// The document after a change.
pub(crate) fn changed(document: &Value, path: &Path, change: Change) -> Result<Value, PartError> {
    let added = match &change {
        Change::Post(value) | Change::Put(value) | Change::Patch(value) => levels(value),
        Change::PostEach(values) => values.iter().map(levels).max().unwrap_or(0),
        Change::Delete => 0,
    };
    // One more for the list that something is added to.
    if path.0.len().saturating_add(added) >= MOST_LEVELS {
        return Err(PartError::Deep);
    }
    let mut changed = document.clone();
    apply(&mut changed, path, change)?;
    Ok(changed)
}

fn apply(document: &mut Value, path: &Path, change: Change) -> Result<(), PartError> {
    let Some((last, way)) = path.0.split_last() else { return change_root(document, change) };
    let makes = matches!(change, Change::Put(_));
    let mut parent = document;
    for (index, key) in way.iter().enumerate() {
        if makes {
            make_key(parent, key);
        }
        let there = match parent {
            Value::Object(object) => object.get_mut(key),
            Value::Array(list) => list.get_mut(place(key, path, index)?),
            _ => None,
        };
        parent = there.ok_or_else(|| PartError::Missing(path.up_to(index + 1)))?;
    }
    if makes && parent.is_null() {
        *parent = Value::Object(Map::new());
    }
    match parent {
        Value::Object(object) => change_key(object, last, path, change),
        Value::Array(list) => change_element(list, last, path, change),
        _ => Err(PartError::Missing(path.clone())),
    }
}

/// Where nothing is, an object; where an object is, the key.
fn make_key(parent: &mut Value, key: &str) {
    if parent.is_null() {
        *parent = Value::Object(Map::new());
    }
    if let Value::Object(object) = parent {
        object.entry(key).or_insert(Value::Null);
    }
}

/// The root is there always; `null` is that of a server without a configuration.
fn change_root(document: &mut Value, change: Change) -> Result<(), PartError> {
    match change {
        Change::Post(value) | Change::Patch(value) => *document = value,
        Change::Put(value) if document.is_null() => *document = value,
        Change::Put(_) => return Err(PartError::Exists(Path::default())),
        Change::PostEach(_) => return Err(PartError::NoList(Path::default())),
        Change::Delete => *document = Value::Null,
    }
    Ok(())
}

fn change_key(
    object: &mut Map<String, Value>,
    key: &str,
    path: &Path,
    change: Change,
) -> Result<(), PartError> {
    let there = object.get_mut(key);
    match (change, there) {
        (Change::Post(value), Some(Value::Array(list))) => list.push(value),
        (Change::PostEach(values), Some(Value::Array(list))) => list.extend(values),
        (Change::PostEach(values), None | Some(Value::Null)) => {
            object.insert(key.to_owned(), Value::Array(values));
        }
        (Change::PostEach(_), Some(_)) => return Err(PartError::NoList(path.clone())),
        (Change::Put(_), Some(_)) => return Err(PartError::Exists(path.clone())),
        (Change::Patch(_) | Change::Delete, None) => return Err(PartError::Missing(path.clone())),
        (Change::Delete, Some(_)) => drop(object.remove(key)),
        (Change::Post(value) | Change::Put(value), _) => drop(object.insert(key.to_owned(), value)),
        (Change::Patch(value), Some(there)) => *there = value,
    }
    Ok(())
}

/// `POST` adds to the end whatever the index, as in Caddy.
fn change_element(list: &mut Vec<Value>, key: &str, path: &Path, change: Change) -> Result<(), PartError> {
    let change = match change {
        Change::Post(value) => {
            list.push(value);
            return Ok(());
        }
        Change::PostEach(values) => {
            list.extend(values);
            return Ok(());
        }
        other => other,
    };
    let index = place(key, path, path.0.len() - 1)?;
    // One is inserted behind the last one too.
    let most = list.len() + usize::from(matches!(change, Change::Put(_)));
    if index >= most {
        return Err(PartError::Missing(path.clone()));
    }
    match change {
        Change::Put(value) => list.insert(index, value),
        Change::Patch(value) => list[index] = value,
        _ => drop(list.remove(index)),
    }
    Ok(())
}

/// An index is written in one way only.
fn place(key: &str, path: &Path, at: usize) -> Result<usize, PartError> {
    let index = key.parse::<usize>().ok().filter(|index| index.to_string() == key);
    index.ok_or_else(|| PartError::NoIndex(path.up_to(at + 1)))
}

/// Objects and lists within each other; 0 of what is neither. Texts that are read have 128 at most.
fn levels(value: &Value) -> usize {
    match value {
        Value::Object(object) => 1 + object.values().map(levels).max().unwrap_or(0),
        Value::Array(list) => 1 + list.iter().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}
