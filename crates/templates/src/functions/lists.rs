//! Lists, as sprig has them: never changed in place.

use super::Function;
use crate::arguments::{Call, is_same, string};
use gotmpl::{Result, Value};
use std::cmp::Ordering;
use std::fmt::Write;

/// What can be asked of each of many against each of many.
const MOST_COMPARED: usize = 10_000;

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("list", |call| call.new_list(call.args.to_vec())),
    ("tuple", |call| call.new_list(call.args.to_vec())),
    ("first", |call| Ok(call.list(0)?.first().cloned().unwrap_or(Value::Nil))),
    ("last", |call| Ok(call.list(0)?.last().cloned().unwrap_or(Value::Nil))),
    ("rest", |call| call.new_list(call.list(0)?.iter().skip(1).cloned().collect())),
    ("initial", |call| {
        let list = call.list(0)?;
        call.new_list(list[..list.len().saturating_sub(1)].to_vec())
    }),
    ("append", |call| call.new_list([call.list(0)?, &[call.value(1)?.clone()]].concat())),
    ("push", |call| call.new_list([call.list(0)?, &[call.value(1)?.clone()]].concat())),
    ("prepend", |call| call.new_list([&[call.value(1)?.clone()], call.list(0)?].concat())),
    ("concat", concat),
    ("reverse", |call| call.new_list(call.list(0)?.iter().rev().cloned().collect())),
    ("uniq", uniq),
    ("compact", |call| {
        call.new_list(call.list(0)?.iter().filter(|value| value.is_truthy()).cloned().collect())
    }),
    ("without", without),
    ("has", |call| {
        let value = call.value(0)?;
        Ok(Value::Bool(call.list(1)?.iter().any(|other| is_same(other, value))))
    }),
    ("sortAlpha", sort_alpha),
    ("join", join),
    ("toStrings", |call| {
        let texts: Result<Vec<_>> = (0..call.list(0)?.len()).map(|at| item(call, at).map(string)).collect();
        call.new_list(texts?)
    }),
    ("splitList", |call| {
        let (separator, text) = (call.text(0)?, call.text(1)?);
        call.new_list(text.split(&*separator).map(string).collect())
    }),
    ("split", |call| split(call, usize::MAX)),
    ("splitn", |call| {
        let most = call.count(1)?;
        let call = Call { args: &[call.value(0)?.clone(), call.value(2)?.clone()], ..*call };
        split(&call, most)
    }),
    ("chunk", chunk),
    ("until", |call| numbers(call, 0, call.int(0)?, if call.int(0)? < 0 { -1 } else { 1 })),
    ("untilStep", |call| numbers(call, call.int(0)?, call.int(1)?, call.int(2)?)),
    ("seq", seq),
];

fn concat(call: &Call<'_>) -> Result<Value> {
    let mut all = Vec::new();
    for index in 0..call.args.len() {
        let list = call.list(index)?;
        call.run.budget.bytes(size_of_val(list))?;
        all.extend_from_slice(list);
    }
    call.new_list(all)
}

fn uniq(call: &Call<'_>) -> Result<Value> {
    let mut seen: Vec<Value> = Vec::new();
    for value in compared(call, 0)? {
        if !seen.iter().any(|other| is_same(other, value)) {
            seen.push(value.clone());
        }
    }
    call.new_list(seen)
}

/// `without LIST VALUE…`
fn without(call: &Call<'_>) -> Result<Value> {
    let gone = &call.args[1..];
    let stays = |value: &&Value| !gone.iter().any(|other| is_same(other, value));
    call.new_list(compared(call, 0)?.iter().filter(stays).cloned().collect())
}

/// A list that is small enough for its values to be compared with each other.
fn compared<'a>(call: &Call<'a>, index: usize) -> Result<&'a [Value]> {
    let list = call.list(index)?;
    match list.len() > MOST_COMPARED {
        true => call.fail(format!("a list of more than {MOST_COMPARED} values")),
        false => Ok(list),
    }
}

fn sort_alpha(call: &Call<'_>) -> Result<Value> {
    let texts: Result<Vec<String>> = (0..call.list(0)?.len()).map(|at| item(call, at)).collect();
    let mut texts = texts?;
    texts.sort_unstable();
    call.new_list(texts.into_iter().map(string).collect())
}

/// A value of the list that is the first argument, as text.
fn item(call: &Call<'_>, at: usize) -> Result<String> {
    crate::arguments::text_of(call.run, &call.list(0)?[at]).map(|text| text.into_owned())
}

/// `join SEPARATOR LIST`
fn join(call: &Call<'_>) -> Result<Value> {
    let separator = call.text(0)?;
    if !matches!(call.value(1)?, Value::List(_) | Value::Nil) {
        return Ok(string(call.text(1)?.as_ref()));
    }
    let list = call.list(1)?;
    let text = call.run.budget.text(|out| {
        for (index, value) in list.iter().filter(|value| !matches!(value, Value::Nil)).enumerate() {
            if index > 0 {
                out.write_str(&separator)?;
            }
            write!(out, "{value}")?;
        }
        Ok(())
    })?;
    Ok(string(text))
}

/// `split SEPARATOR TEXT`: a map of `_0`, `_1` and so on.
fn split(call: &Call<'_>, most: usize) -> Result<Value> {
    let (separator, text) = (call.text(0)?, call.text(1)?);
    let parts = text.splitn(most, &*separator).enumerate();
    call.new_map(parts.map(|(index, part)| (format!("_{index}").into(), string(part))).collect())
}

/// `chunk SIZE LIST`
fn chunk(call: &Call<'_>) -> Result<Value> {
    let size = call.count(0)?.max(1);
    let chunks: Result<Vec<_>> =
        call.list(1)?.chunks(size).map(|chunk| call.new_list(chunk.to_vec())).collect();
    call.new_list(chunks?)
}

/// From `start` up to, and without, `end`.
fn numbers(call: &Call<'_>, start: i64, end: i64, step: i64) -> Result<Value> {
    let towards = match end.cmp(&start) {
        Ordering::Greater => step > 0,
        Ordering::Less => step < 0,
        Ordering::Equal => false,
    };
    if !towards {
        return call.new_list(Vec::new());
    }
    let count = end.abs_diff(start).div_ceil(step.unsigned_abs());
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    call.run.budget.bytes(count.saturating_mul(size_of::<Value>()))?;
    let number = |index: usize| Value::Int(start.saturating_add(step.saturating_mul(index as i64)));
    call.new_list((0..count).map(number).collect())
}

/// `seq [FIRST [STEP]] LAST`: a text, as the program of this name prints it in a line.
fn seq(call: &Call<'_>) -> Result<Value> {
    let (first, step, last) = match call.args.len() {
        1 => (1, if call.int(0)? < 1 { -1 } else { 1 }, call.int(0)?),
        2 => (call.int(0)?, if call.int(1)? < call.int(0)? { -1 } else { 1 }, call.int(1)?),
        3 => (call.int(0)?, call.int(1)?, call.int(2)?),
        _ => return Ok(string("")),
    };
    let end = last.saturating_add(step.signum());
    let Value::List(list) = numbers(call, first, end, step)? else { return Ok(string("")) };
    join(&Call { args: &[string(" "), Value::List(list)], ..*call })
}

#[cfg(test)]
mod tests {
    use crate::run::tests::print;

    #[test]
    fn lists_are_made_and_cut() {
        for (template, text) in [
            (r#"{{list 1 "a" true}}"#, "[1 a true]"),
            (
                r#"{{append (list 1) 2 | first}} {{rest (list 1 2 3)}} {{initial (list 1 2 3)}}"#,
                "1 [2 3] [1 2]",
            ),
            (
                r#"{{uniq (list 1 2 1 "1")}} {{has 2 (list 1 2)}} {{without (list 1 2 3) 2}}"#,
                "[1 2 1] true [1 3]",
            ),
            (
                r#"{{join ", " (list 1 "b")}} {{splitList "," "a,b" | last}} {{(split "," "a,b")._1}}"#,
                "1, b b b",
            ),
            (
                r#"{{until 3}} {{untilStep 5 0 -2}} {{seq 0 2 6}} {{chunk 2 (list 1 2 3)}}"#,
                "[0 1 2] [5 3 1] 0 2 4 6 [[1 2] [3]]",
            ),
            (
                r#"{{sortAlpha (list "b" "a")}} {{concat (list 1) (list 2)}} {{reverse (list 1 2)}}"#,
                "[a b] [1 2] [2 1]",
            ),
        ] {
            assert_eq!(print(template), text, "{template}");
        }
    }
}
