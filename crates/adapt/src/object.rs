//! Objects of JSON that leave out what says nothing.

use serde_json::{Map, Value};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Object(Map<String, Value>);

impl Object {
    pub fn new() -> Self {
        Self::default()
    }

    /// One that says of what kind it is, such as `"handler": "vars"`.
    pub fn of_kind(key: &str, kind: &str) -> Self {
        let mut object = Self::new();
        object.set(key, kind);
        object
    }

    pub fn handler(name: &str) -> Self {
        Self::of_kind("handler", name)
    }

    /// A list of routes within another.
    pub fn subroute(routes: Vec<Value>) -> Self {
        let mut object = Self::handler("subroute");
        object.set_list("routes", routes);
        object
    }

    pub fn set(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.0.insert(key.into(), value.into());
    }

    pub fn set_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Unless it is what would be there without it.
    pub fn set_unless<T: PartialEq + Into<Value>>(&mut self, key: &str, value: T, default: T) {
        if value != default {
            self.set(key, value);
        }
    }

    pub fn set_if(&mut self, key: &str, is_true: bool) {
        if is_true {
            self.set(key, true);
        }
    }

    pub fn set_duration(&mut self, key: &str, value: Duration, default: Duration) {
        if value != default {
            self.set(key, nanoseconds(value));
        }
    }

    pub fn set_some_duration(&mut self, key: &str, value: Option<Duration>) {
        self.set_some(key, value.map(nanoseconds));
    }

    /// Unless the list is empty.
    pub fn set_list(&mut self, key: &str, values: impl IntoIterator<Item = impl Into<Value>>) {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        if !values.is_empty() {
            self.set(key, values);
        }
    }

    /// Unless the object is empty.
    pub fn non_empty(&mut self, key: &str, object: Self) {
        if !object.is_empty() {
            self.set(key, object);
        }
    }

    /// The key, with a number behind it if it is taken.
    pub fn free_name(&self, key: &str) -> String {
        let numbered = (2_u32..).map(|number| format!("{key}#{number}"));
        let mut names = std::iter::once(key.to_owned()).chain(numbered);
        names.find(|name| !self.0.contains_key(name)).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn build(self) -> Value {
        Value::Object(self.0)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        object.build()
    }
}

/// As Caddy writes durations: a whole number, as far as it fits.
pub(crate) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
