//! Conditions on responses.

use crate::object::Object;
use regent_config::{FieldMatcher, FieldTest, ResponseMatcher};
use serde_json::Value;

/// As `match` of handlers has it.
pub(crate) fn response_matcher(matcher: &ResponseMatcher) -> Object {
    let ResponseMatcher { statuses, fields } = matcher;
    let mut object = Object::new();
    object.set_list("status_code", statuses.iter().map(|range| Value::from(status_range(*range))));
    let mut headers = Object::new();
    for FieldMatcher { name, test } in fields {
        match test {
            FieldTest::Present => headers.set(name, Vec::<Value>::new()),
            FieldTest::Absent => headers.set(name, Value::Null),
            FieldTest::Like(values) => headers.set(name, values.clone()),
        }
    }
    object.non_empty("headers", headers);
    object
}

/// A status, or its first digit for all that begin with it.
pub(crate) fn status_range((least, most): (u16, u16)) -> u16 {
    if least == most { least } else { least / 100 }
}
