//! Numbers, as sprig has them: whole, and with an `f` behind the name of the function otherwise.

use super::Function;
use crate::arguments::{Call, float_of, int_of};
use gotmpl::{Result, Value};

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("int", |call| call.int(0).map(Value::Int)),
    ("int64", |call| call.int(0).map(Value::Int)),
    ("atoi", |call| call.int(0).map(Value::Int)),
    ("float64", |call| call.float(0).map(Value::Float)),
    ("add", |call| fold(call, i64::wrapping_add)),
    ("add1", |call| Ok(Value::Int(call.int(0)?.wrapping_add(1)))),
    ("sub", |call| Ok(Value::Int(call.int(0)?.wrapping_sub(call.int(1)?)))),
    ("mul", |call| fold(call, i64::wrapping_mul)),
    ("div", |call| whole(call, i64::checked_div)),
    ("mod", |call| whole(call, i64::checked_rem)),
    ("addf", |call| Ok(Value::Float(call.args.iter().map(float_of).sum()))),
    ("subf", |call| {
        let first = call.float(0)?;
        Ok(Value::Float(call.args[1..].iter().map(float_of).fold(first, |left, right| left - right)))
    }),
    ("mulf", |call| Ok(Value::Float(call.args.iter().map(float_of).product()))),
    ("divf", |call| {
        let first = call.float(0)?;
        Ok(Value::Float(call.args[1..].iter().map(float_of).fold(first, |left, right| left / right)))
    }),
    ("max", |call| fold(call, i64::max)),
    ("biggest", |call| fold(call, i64::max)),
    ("min", |call| fold(call, i64::min)),
    ("maxf", |call| Ok(Value::Float(call.args.iter().map(float_of).fold(call.float(0)?, f64::max)))),
    ("minf", |call| Ok(Value::Float(call.args.iter().map(float_of).fold(call.float(0)?, f64::min)))),
    ("ceil", |call| Ok(Value::Float(call.float(0)?.ceil()))),
    ("floor", |call| Ok(Value::Float(call.float(0)?.floor()))),
    ("round", round),
];

fn fold(call: &Call<'_>, combine: impl Fn(i64, i64) -> i64) -> Result<Value> {
    let first = call.int(0)?;
    Ok(Value::Int(call.args[1..].iter().map(int_of).fold(first, combine)))
}

fn whole(call: &Call<'_>, divide: impl Fn(i64, i64) -> Option<i64>) -> Result<Value> {
    match divide(call.int(0)?, call.int(1)?) {
        Some(number) => Ok(Value::Int(number)),
        None => call.fail("division by zero"),
    }
}

/// `round NUMBER DIGITS`
fn round(call: &Call<'_>) -> Result<Value> {
    let digits = i32::try_from(call.int(1)?.clamp(-300, 300)).unwrap_or(0);
    let factor = 10f64.powi(digits);
    Ok(Value::Float((call.float(0)? * factor).round() / factor))
}

#[cfg(test)]
mod tests {
    use crate::run::tests::{fails, print};

    #[test]
    fn numbers() {
        for (template, text) in [
            ("{{add 1 2 3}} {{sub 5 2}} {{mul 2 3 4}} {{div 7 2}} {{mod 7 2}} {{add1 1}}", "6 3 24 3 1 2"),
            ("{{max 1 3 2}} {{min 3 1 2}} {{round 2.345 2}} {{ceil 1.2}} {{floor 1.8}}", "3 1 2.35 2 1"),
            (r#"{{addf 1.5 2}} {{divf 3 2}} {{int "42"}} {{float64 "1.5"}}"#, "3.5 1.5 42 1.5"),
        ] {
            assert_eq!(print(template), text, "{template}");
        }
        assert!(fails("{{div 1 0}}").contains("division by zero"));
    }
}
