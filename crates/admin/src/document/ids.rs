//! `@id`: names of objects, by which the API finds them wherever they are. Nothing else of the server knows them.

use super::Path;
use serde_json::Value;
use std::collections::BTreeMap;

const KEY: &str = "@id";

/// Why the ids of a document do not name its objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("{place} has an `@id` that is neither a text nor a number")]
    Kind { place: String },
    #[error("two objects have the `@id` \"{id}\": {first} and {second}")]
    Twice { id: String, first: String, second: String },
}

/// Checks that no two objects of a document have the same `@id`.
pub fn check_ids(document: &Value) -> Result<(), IdError> {
    index(document).map(drop)
}

/// Where the object with this id is.
pub(crate) fn find(document: &Value, id: &str) -> Option<Path> {
    // What is in use has been checked.
    index(document).ok()?.remove(id)
}

fn index(document: &Value) -> Result<BTreeMap<String, Path>, IdError> {
    let mut index = BTreeMap::new();
    let mut at = Vec::new();
    visit(document, &mut at, &mut index)?;
    Ok(index)
}

fn visit(value: &Value, at: &mut Vec<String>, index: &mut BTreeMap<String, Path>) -> Result<(), IdError> {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                if key == KEY {
                    note(value, at, index)?;
                    continue;
                }
                at.push(key.clone());
                visit(value, at, index)?;
                at.pop();
            }
        }
        Value::Array(list) => {
            for (place, value) in list.iter().enumerate() {
                at.push(place.to_string());
                visit(value, at, index)?;
                at.pop();
            }
        }
        _ => {}
    }
    Ok(())
}

fn note(id: &Value, at: &[String], index: &mut BTreeMap<String, Path>) -> Result<(), IdError> {
    let path = Path(at.to_vec());
    let id = match id {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(IdError::Kind { place: path.to_string() }),
    };
    match index.get(&id) {
        Some(first) => Err(IdError::Twice { id, first: first.to_string(), second: path.to_string() }),
        None => {
            index.insert(id, path);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_found_by_its_name_wherever_it_is() {
        let document =
            json!({ "a": [{ "b": { "@id": "x/y" } }, { "@id": 7, "c": [{ "@id": "z" }] }], "@id": "root" });
        let found = |id| find(&document, id).map(|path| path.to_string());
        assert_eq!(found("x/y").as_deref(), Some("/config/a/0/b"));
        assert_eq!(found("7").as_deref(), Some("/config/a/1"));
        assert_eq!(found("z").as_deref(), Some("/config/a/1/c/0"));
        assert_eq!(found("root").as_deref(), Some("/config/"));
        assert_eq!(found("@id"), None);
    }

    #[test]
    fn a_name_is_of_one_object() {
        let error = check_ids(&json!({ "a": [{ "@id": "1" }, { "@id": 1 }] })).unwrap_err();
        assert_eq!(error.to_string(), "two objects have the `@id` \"1\": /config/a/0 and /config/a/1");
        let error = check_ids(&json!({ "a": { "@id": {} } })).unwrap_err();
        assert_eq!(error.to_string(), "/config/a has an `@id` that is neither a text nor a number");
        assert_eq!(check_ids(&json!([{ "id": 1 }, { "id": 1 }])), Ok(()));
    }
}
