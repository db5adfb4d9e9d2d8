//! Maps, and what is made of values whatever they are, as sprig has it.

use super::Function;
use crate::arguments::{Call, Map, string};
use gotmpl::{Result, Value};
use std::sync::Arc;

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("dict", |call| call.new_map(pairs(call, call.args)?)),
    ("get", |call| Ok(call.map(0)?.get(&*call.text(1)?).cloned().unwrap_or(string("")))),
    // Go changes the map in place; here it is the changed copy that counts.
    ("set", |call| {
        let mut map = call.map(0)?.clone();
        map.insert(call.text(1)?.into(), call.value(2)?.clone());
        call.new_map(map)
    }),
    ("unset", |call| {
        let mut map = call.map(0)?.clone();
        map.remove(&*call.text(1)?);
        call.new_map(map)
    }),
    ("hasKey", |call| Ok(Value::Bool(call.map(0)?.contains_key(&*call.text(1)?)))),
    ("keys", |call| {
        let maps: Result<Vec<_>> = (0..call.args.len()).map(|index| call.map(index)).collect();
        call.new_list(
            maps?.into_iter().flat_map(|map| map.keys().map(|key| Value::String(Arc::clone(key)))).collect(),
        )
    }),
    ("values", |call| call.new_list(call.map(0)?.values().cloned().collect())),
    ("pick", |call| chosen(call, true)),
    ("omit", |call| chosen(call, false)),
    ("merge", |call| merged(call, false)),
    ("mergeOverwrite", |call| merged(call, true)),
    ("pluck", pluck),
    ("dig", dig),
    ("default", |call| {
        let value = call.args.get(1).filter(|value| value.is_truthy());
        Ok(value.unwrap_or(call.value(0)?).clone())
    }),
    ("empty", |call| Ok(Value::Bool(!call.value(0)?.is_truthy()))),
    ("coalesce", |call| Ok(call.args.iter().find(|value| value.is_truthy()).cloned().unwrap_or(Value::Nil))),
    ("all", |call| Ok(Value::Bool(call.args.iter().all(Value::is_truthy)))),
    ("any", |call| Ok(Value::Bool(call.args.iter().any(Value::is_truthy)))),
    ("ternary", |call| call.value(if call.value(2)?.is_truthy() { 0 } else { 1 }).cloned()),
    ("fail", |call| call.fail(call.text(0)?)),
    ("kindOf", |call| Ok(string(kind(call.value(0)?)))),
    ("typeOf", |call| Ok(string(kind(call.value(0)?)))),
    ("kindIs", |call| Ok(Value::Bool(kind(call.value(1)?) == call.text(0)?))),
    ("typeIs", |call| Ok(Value::Bool(kind(call.value(1)?) == call.text(0)?))),
    ("deepCopy", |call| call.value(0).cloned()),
];

fn pairs(call: &Call<'_>, args: &[Value]) -> Result<Map> {
    let mut map = Map::new();
    for (index, pair) in args.chunks(2).enumerate() {
        map.insert(call.text(index * 2)?.into(), pair.get(1).cloned().unwrap_or(string("")));
    }
    Ok(map)
}

/// `pick MAP KEY…`
fn chosen(call: &Call<'_>, named: bool) -> Result<Value> {
    let names: Result<Vec<_>> = (1..call.args.len()).map(|index| call.text(index)).collect();
    let names = names?;
    let is_named = |key: &Arc<str>| names.iter().any(|name| **name == **key);
    let map = call.map(0)?.iter().filter(|(key, _)| is_named(key) == named);
    call.new_map(map.map(|(key, value)| (Arc::clone(key), value.clone())).collect())
}

fn merged(call: &Call<'_>, later_wins: bool) -> Result<Value> {
    let mut all = call.map(0)?.clone();
    for index in 1..call.args.len() {
        for (key, value) in call.map(index)? {
            if later_wins || !all.contains_key(key) {
                all.insert(Arc::clone(key), value.clone());
            }
        }
    }
    call.new_map(all)
}

/// `pluck KEY MAP…`: what each has under the key.
fn pluck(call: &Call<'_>) -> Result<Value> {
    let key = call.text(0)?;
    let maps: Result<Vec<_>> = (1..call.args.len()).map(|index| call.map(index)).collect();
    call.new_list(maps?.into_iter().filter_map(|map| map.get(&*key).cloned()).collect())
}

/// `dig KEY… DEFAULT MAP`
fn dig(call: &Call<'_>) -> Result<Value> {
    let Some(keys) = call.args.len().checked_sub(2) else {
        return call.fail("it needs keys, a default and a map");
    };
    let mut found = call.value(keys + 1)?;
    for index in 0..keys {
        match found.field(&call.text(index)?) {
            Some(value) => found = value,
            None => return call.value(keys).cloned(),
        }
    }
    Ok(found.clone())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Uint(_) => "uint64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::List(_) => "slice",
        Value::Map(_) => "map",
        Value::Function(_) => "func",
    }
}

#[cfg(test)]
mod tests {
    use crate::run::tests::print;

    #[test]
    fn maps() {
        for (template, text) in [
            (r#"{{$d := dict "a" 1 "b" (dict "c" 2)}}{{$d.b.c}} {{get $d "a"}} {{keys $d}}"#, "2 1 [a b]"),
            (r#"{{set (dict "a" 1) "b" 2}} {{unset (dict "a" 1) "a"}}"#, "map[a:1 b:2] map[]"),
            (r#"{{merge (dict "a" 1) (dict "a" 2 "b" 3)}} {{hasKey (dict "a" 1) "a"}}"#, "map[a:1 b:3] true"),
            (r#"{{dig "a" "b" "none" (dict "a" (dict "b" 7))}} {{dig "x" "none" (dict)}}"#, "7 none"),
            (
                r#"{{default "x" ""}} {{"" | default "y"}} {{coalesce "" 0 "z"}} {{ternary 1 2 false}}"#,
                "x y z 2",
            ),
            (r#"{{pick (dict "a" 1 "b" 2) "a"}} {{kindOf 1.5}} {{empty 0}}"#, "map[a:1] float64 true"),
        ] {
            assert_eq!(print(template), text, "{template}");
        }
    }
}
