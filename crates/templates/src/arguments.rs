//! The arguments of a function.

use crate::run::Run;
use gotmpl::{Result, TemplateError, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) type Map = BTreeMap<Arc<str>, Value>;

/// A call: what is called, by which page, with which values. One that is piped in is the last.
pub(crate) struct Call<'a> {
    pub(crate) run: &'a Run,
    pub(crate) name: &'a str,
    pub(crate) args: &'a [Value],
}

impl<'a> Call<'a> {
    pub(crate) fn fail<T>(&self, message: impl AsRef<str>) -> Result<T> {
        Err(TemplateError::Exec(format!("{}: {}", self.name, message.as_ref())))
    }

    pub(crate) fn value(&self, index: usize) -> Result<&'a Value> {
        self.args.get(index).ok_or_else(|| {
            let (name, wanted, got) = (self.name, index + 1, self.args.len());
            TemplateError::Exec(format!("{name}: it has {got} arguments and needs at least {wanted}"))
        })
    }

    /// A text; other values as they are printed, and nothing as the empty one.
    pub(crate) fn text(&self, index: usize) -> Result<Cow<'a, str>> {
        text_of(self.run, self.value(index)?)
    }

    /// The last argument, as text.
    pub(crate) fn last(&self) -> Result<Cow<'a, str>> {
        self.text(self.args.len().saturating_sub(1))
    }

    pub(crate) fn int(&self, index: usize) -> Result<i64> {
        Ok(int_of(self.value(index)?))
    }

    /// A number of things, not less than none.
    pub(crate) fn count(&self, index: usize) -> Result<usize> {
        Ok(usize::try_from(self.int(index)?).unwrap_or(0))
    }

    pub(crate) fn float(&self, index: usize) -> Result<f64> {
        Ok(float_of(self.value(index)?))
    }

    pub(crate) fn list(&self, index: usize) -> Result<&'a [Value]> {
        match self.value(index)? {
            Value::List(list) => Ok(list),
            Value::Nil => Ok(&[]),
            other => self.fail(format!("argument {} is no list but {}", index + 1, other.type_name())),
        }
    }

    pub(crate) fn map(&self, index: usize) -> Result<&'a Map> {
        match self.value(index)? {
            Value::Map(map) => Ok(map),
            other => self.fail(format!("argument {} is no map but {}", index + 1, other.type_name())),
        }
    }

    /// A list that the function makes.
    pub(crate) fn new_list(&self, list: Vec<Value>) -> Result<Value> {
        self.run.budget.container()?;
        self.run.budget.bytes(list.len() * size_of::<Value>())?;
        Ok(Value::List(list.into()))
    }

    pub(crate) fn new_map(&self, map: Map) -> Result<Value> {
        self.run.budget.container()?;
        self.run.budget.bytes(map.len() * 2 * size_of::<Value>())?;
        Ok(Value::Map(Arc::new(map)))
    }
}

pub(crate) fn text_of<'a>(run: &Run, value: &'a Value) -> Result<Cow<'a, str>> {
    use std::fmt::Write;
    match value {
        Value::String(text) => Ok(Cow::Borrowed(text)),
        Value::Nil => Ok(Cow::Borrowed("")),
        other => run.budget.text(|out| write!(out, "{other}")).map(Cow::Owned),
    }
}

pub(crate) fn string(text: impl Into<Arc<str>>) -> Value {
    Value::String(text.into())
}

/// As `cast.ToInt64`, by which sprig takes numbers: what is none counts as 0.
pub(crate) fn int_of(value: &Value) -> i64 {
    match value {
        Value::Int(int) => *int,
        Value::Uint(uint) => i64::try_from(*uint).unwrap_or(i64::MAX),
        Value::Float(float) => *float as i64,
        Value::Bool(flag) => i64::from(*flag),
        Value::String(text) => text.trim().parse().unwrap_or(0),
        _ => 0,
    }
}

pub(crate) fn float_of(value: &Value) -> f64 {
    match value {
        Value::Float(float) => *float,
        Value::String(text) => text.trim().parse().unwrap_or(0.0),
        other => int_of(other) as f64,
    }
}

/// Whether two values are the same: of lists and maps, whether they are one.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Nil, Value::Nil) => true,
        (Value::Float(_), _) | (_, Value::Float(_)) if is_number(left) && is_number(right) => {
            float_of(left) == float_of(right)
        }
        _ if is_number(left) && is_number(right) => int_of(left) == int_of(right),
        (Value::List(left), Value::List(right)) => Arc::ptr_eq(left, right),
        (Value::Map(left), Value::Map(right)) => Arc::ptr_eq(left, right),
        _ => false,
    }
}

pub(crate) fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Float(_))
}
