//! Go's `fmt`, as far as templates print values with it.

use crate::arguments::int_of;
use crate::budget::Text;
use gotmpl::Value;
use std::fmt::{self, Write};

/// Characters that a value is filled up to.
const MOST_WIDTH: usize = 65_535;

#[derive(Default, Clone, Copy)]
struct Flags {
    left: bool,
    plus: bool,
    space: bool,
    sharp: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

/// `fmt.Sprintf`.
pub(crate) fn printf(out: &mut Text<'_>, format: &str, args: &[Value]) -> fmt::Result {
    let mut rest = format;
    let mut next = 0;
    let mut reordered = false;
    while let Some((before, behind)) = rest.split_once('%') {
        out.write_str(before)?;
        let mut chars = Chars(behind);
        let flags = chars.flags(args, &mut next);
        if let Some(index) = chars.index() {
            next = index;
            reordered = true;
        }
        let Some(verb) = chars.next() else { return out.write_str("%!(NOVERB)") };
        rest = chars.0;
        match (verb, args.get(next)) {
            ('%', _) => out.write_char('%')?,
            (_, None) => write!(out, "%!{verb}(MISSING)")?,
            (_, Some(value)) => {
                next += 1;
                write_value(out, verb, flags, value)?;
            }
        }
    }
    out.write_str(rest)?;
    if !reordered && next < args.len() {
        for (index, value) in args[next..].iter().enumerate() {
            let start = if index == 0 { "%!(EXTRA " } else { ", " };
            write!(out, "{start}{}={value}", go_type(value))?;
        }
        out.write_char(')')?;
    }
    Ok(())
}

/// What is left of a format.
struct Chars<'a>(&'a str);

impl Chars<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.0.chars().next()?;
        self.0 = &self.0[c.len_utf8()..];
        Some(c)
    }

    fn flags(&mut self, args: &[Value], next: &mut usize) -> Flags {
        let mut flags = Flags::default();
        loop {
            match self.0.as_bytes().first() {
                Some(b'-') => flags.left = true,
                Some(b'+') => flags.plus = true,
                Some(b' ') => flags.space = true,
                Some(b'#') => flags.sharp = true,
                Some(b'0') => flags.zero = true,
                _ => break,
            }
            self.0 = &self.0[1..];
        }
        flags.width = self.number(args, next).unwrap_or(0);
        if let Some(rest) = self.0.strip_prefix('.') {
            self.0 = rest;
            flags.precision = Some(self.number(args, next).unwrap_or(0));
        }
        flags
    }

    /// Digits, or `*` for an argument.
    fn number(&mut self, args: &[Value], next: &mut usize) -> Option<usize> {
        if let Some(rest) = self.0.strip_prefix('*') {
            self.0 = rest;
            let value = args.get(*next).map_or(0, int_of);
            *next += 1;
            return Some(usize::try_from(value).unwrap_or(0).min(MOST_WIDTH));
        }
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let number = self.0[..digits].parse::<usize>().ok();
        self.0 = &self.0[digits..];
        number.map(|number| number.min(MOST_WIDTH))
    }

    /// `[2]`: the argument that is meant, counted from 0.
    fn index(&mut self) -> Option<usize> {
        let (number, rest) = self.0.strip_prefix('[')?.split_once(']')?;
        let index = number.parse::<usize>().ok()?.checked_sub(1)?;
        self.0 = rest;
        Some(index)
    }
}

fn write_value(out: &mut Text<'_>, verb: char, flags: Flags, value: &Value) -> fmt::Result {
    let is_whole = matches!(value, Value::Int(_) | Value::Uint(_));
    match (verb, value) {
        ('d', _) if is_whole => number(out, flags, int_of(value), |n| n.to_string()),
        ('x', _) if is_whole => number(out, flags, int_of(value), |n| format!("{n:x}")),
        ('X', _) if is_whole => number(out, flags, int_of(value), |n| format!("{n:X}")),
        ('o', _) if is_whole => number(out, flags, int_of(value), |n| format!("{n:o}")),
        ('b', _) if is_whole => number(out, flags, int_of(value), |n| format!("{n:b}")),
        ('c', _) if is_whole => {
            let c = u32::try_from(int_of(value)).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
            padded(out, flags, &c.to_string())
        }
        ('f' | 'F' | 'e' | 'g', Value::Float(float)) => padded_number(out, flags, *float, verb),
        ('t', Value::Bool(flag)) => padded(out, flags, &flag.to_string()),
        ('q', Value::String(text)) => quoted(out, text),
        ('x', Value::String(text)) => text.bytes().try_for_each(|byte| write!(out, "{byte:02x}")),
        ('X', Value::String(text)) => text.bytes().try_for_each(|byte| write!(out, "{byte:02X}")),
        ('T', _) => out.write_str(go_type(value)),
        ('s' | 'v', Value::String(text)) => {
            let shown = match flags.precision {
                Some(most) => text.char_indices().nth(most).map_or(&**text, |(at, _)| &text[..at]),
                None => text,
            };
            padded(out, flags, shown)
        }
        ('v', _) if flags.width == 0 => write!(out, "{value}"),
        ('v', Value::Bool(_) | Value::Nil | Value::Float(_)) => padded(out, flags, &value.to_string()),
        ('v', _) if is_whole => padded(out, flags, &value.to_string()),
        ('v' | 's', Value::List(_) | Value::Map(_)) => write!(out, "{value}"),
        ('s', Value::Nil) => out.write_str("%!s(<nil>)"),
        _ => {
            write!(out, "%!{verb}({}=", go_type(value))?;
            write!(out, "{value})")
        }
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Nil => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Uint(_) => "uint",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
        Value::Function(_) => "func()",
    }
}

fn number(out: &mut Text<'_>, flags: Flags, value: i64, digits: impl Fn(u64) -> String) -> fmt::Result {
    signed(out, flags, value < 0, &digits(value.unsigned_abs()))
}

fn padded_number(out: &mut Text<'_>, flags: Flags, value: f64, verb: char) -> fmt::Result {
    let precision = flags.precision.unwrap_or(6);
    let size = value.abs();
    let digits = match verb {
        'e' => exponent(&format!("{size:.precision$e}")),
        'g' => Value::Float(size).to_string(),
        _ => format!("{size:.precision$}"),
    };
    signed(out, flags, value.is_sign_negative(), &digits)
}

/// Go writes at least two digits of it, and its sign.
fn exponent(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else { return text.to_owned() };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

fn signed(out: &mut Text<'_>, flags: Flags, is_negative: bool, digits: &str) -> fmt::Result {
    let sign = match (is_negative, flags.plus, flags.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    };
    if flags.zero && !flags.left {
        let width = flags.width.saturating_sub(sign.len());
        return write!(out, "{sign}{digits:0>width$}");
    }
    padded(out, flags, &format!("{sign}{digits}"))
}

fn padded(out: &mut Text<'_>, flags: Flags, text: &str) -> fmt::Result {
    let width = flags.width;
    match flags.left {
        true => write!(out, "{text:<width$}"),
        false => write!(out, "{text:>width$}"),
    }
}

/// As Go's `%q`.
pub(crate) fn quoted(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            _ if c.is_control() => write!(out, "\\x{:02x}", u32::from(c))?,
            _ => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

/// `fmt.Sprint`: spaces between neighbours neither of which is a text.
pub(crate) fn print(out: &mut Text<'_>, args: &[Value]) -> fmt::Result {
    let is_text = |value: &Value| matches!(value, Value::String(_));
    for (index, value) in args.iter().enumerate() {
        if index > 0 && !is_text(value) && !is_text(&args[index - 1]) {
            out.write_char(' ')?;
        }
        write!(out, "{value}")?;
    }
    Ok(())
}

/// `fmt.Sprintln`.
pub(crate) fn println(out: &mut Text<'_>, args: &[Value]) -> fmt::Result {
    for (index, value) in args.iter().enumerate() {
        if index > 0 {
            out.write_char(' ')?;
        }
        write!(out, "{value}")?;
    }
    out.write_char('\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn verbs() {
        let text = |text: &str| Value::String(text.into());
        for (format, args, expected) in [
            ("%s and %s", vec![text("a"), text("b")], "a and b"),
            (
                "%5d|%-5d|%05d|%+d",
                vec![Value::Int(42), Value::Int(42), Value::Int(-42), Value::Int(4)],
                "   42|42   |-0042|+4",
            ),
            (
                "%.2f %e %x %q",
                vec![Value::Float(2.5), Value::Float(12.0), Value::Int(255), text("a\"b\n")],
                "2.50 1.200000e+01 ff \"a\\\"b\\n\"",
            ),
            ("%v %t %T %%", vec![Value::Nil, Value::Bool(true), Value::Int(1)], "<nil> true int %"),
            ("%[2]s%[1]s", vec![text("a"), text("b")], "ba"),
            ("%.2s|%6s|%-6s|", vec![text("äöü"), text("x"), text("y")], "äö|     x|y     |"),
            ("%s %d", vec![text("a")], "a %!d(MISSING)"),
            ("%d", vec![text("a")], "%!d(string=a)"),
            ("x", vec![Value::Int(1)], "x%!(EXTRA int=1)"),
            ("%*d", vec![Value::Int(4), Value::Int(1)], "   1"),
        ] {
            let budget = Budget::new();
            assert_eq!(budget.text(|out| printf(out, format, &args)).unwrap(), expected, "{format}");
        }
    }
}
