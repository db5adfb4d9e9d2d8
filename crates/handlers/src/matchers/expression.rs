//! `expression`: conditions that are put together of others, and of values that are compared.

use crate::context::exchange::Exchange;
use crate::error::BuildError;
use crate::matchers::matcher::{self, Matcher};
use crate::templates::text::Text;
use http::StatusCode;
use regent_config::{self as config, Relation, Sign, TextTest};
use regex::bytes::Regex;
use std::borrow::Cow;
use std::cmp::Ordering;

/// A compiled condition.
pub(crate) enum Expression {
    Constant(bool),
    Matchers(Vec<Matcher>),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Choice(Box<[Expression; 3]>),
    Compare { left: Operand, relation: Relation, right: Operand },
    In { value: Operand, list: Vec<Operand> },
    Text { value: Operand, test: Test },
}

pub(crate) enum Test {
    StartsWith(Operand),
    EndsWith(Operand),
    Contains(Operand),
    Matches(Regex),
}

/// A compiled value.
pub(crate) enum Operand {
    Text(Text),
    Number(i64),
    Size(Box<Operand>),
    Lower(Box<Operand>),
    Upper(Box<Operand>),
    Trimmed(Box<Operand>),
    Integer(Box<Operand>),
    Arithmetic(Box<Operand>, Sign, Box<Operand>),
}

/// A value as a request has it.
enum Value<'a> {
    Text(Cow<'a, [u8]>),
    Number(i64),
    /// Of a sum that there is not. No condition on it holds.
    Nothing,
}

impl Expression {
    pub(crate) fn compile(expression: &config::Expression) -> Result<Self, BuildError> {
        use config::Expression as E;
        let compile_all = |of: &[E]| of.iter().map(Self::compile).collect::<Result<Vec<_>, _>>();
        Ok(match expression {
            E::Constant(value) => Self::Constant(*value),
            E::Matchers(set) => Self::Matchers(matcher::compile_set(set)?),
            E::Not(of) => Self::Not(Box::new(Self::compile(of)?)),
            E::All(of) => Self::All(compile_all(of)?),
            E::Any(of) => Self::Any(compile_all(of)?),
            E::Choice { condition, then, otherwise } => Self::Choice(Box::new([
                Self::compile(condition)?,
                Self::compile(then)?,
                Self::compile(otherwise)?,
            ])),
            E::Compare { left, relation, right } => Self::Compare {
                left: Operand::compile(left),
                relation: *relation,
                right: Operand::compile(right),
            },
            E::In { value, list } => {
                Self::In { value: Operand::compile(value), list: list.iter().map(Operand::compile).collect() }
            }
            E::Text { value, test, argument } => {
                Self::Text { value: Operand::compile(value), test: Test::compile(*test, argument)? }
            }
        })
    }

    /// An error status ends the request, as that of a matcher does.
    pub(crate) fn holds(&self, exchange: &mut Exchange) -> Result<bool, StatusCode> {
        Ok(match self {
            Self::Constant(value) => *value,
            Self::Matchers(set) => matcher::all(set, exchange)?,
            Self::Not(of) => !of.holds(exchange)?,
            Self::All(of) => {
                for each in of {
                    if !each.holds(exchange)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Any(of) => {
                for each in of {
                    if each.holds(exchange)? {
                        return Ok(true);
                    }
                }
                false
            }
            Self::Choice(of) => {
                let [condition, then, otherwise] = &**of;
                let chosen = if condition.holds(exchange)? { then } else { otherwise };
                chosen.holds(exchange)?
            }
            Self::Compare { left, relation, right } => {
                fits(*relation, left.value(exchange).compare(&right.value(exchange)))
            }
            Self::In { value, list } => {
                let value = value.value(exchange);
                list.iter().any(|each| value.compare(&each.value(exchange)) == Some(Ordering::Equal))
            }
            Self::Text { value, test } => test.holds(&value.value(exchange).into_text(), exchange),
        })
    }
}

/// `order`: `None` for a text that is no number, beside a number.
fn fits(relation: Relation, order: Option<Ordering>) -> bool {
    match relation {
        Relation::Equal => order == Some(Ordering::Equal),
        Relation::Unequal => order != Some(Ordering::Equal),
        Relation::Less => order == Some(Ordering::Less),
        Relation::LessOrEqual => order.is_some_and(Ordering::is_le),
        Relation::Greater => order == Some(Ordering::Greater),
        Relation::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
    }
}

impl Test {
    fn compile(test: TextTest, argument: &config::Operand) -> Result<Self, BuildError> {
        let operand = Operand::compile(argument);
        Ok(match test {
            TextTest::StartsWith => Self::StartsWith(operand),
            TextTest::EndsWith => Self::EndsWith(operand),
            TextTest::Contains => Self::Contains(operand),
            TextTest::Matches => {
                let config::Operand::Text(pattern) = argument else { return Ok(Self::Contains(operand)) };
                let pattern = pattern.as_text().unwrap_or_default();
                let regex = Regex::new(pattern)
                    .map_err(|source| BuildError::Regex { pattern: pattern.to_owned(), source })?;
                Self::Matches(regex)
            }
        })
    }

    fn holds(&self, text: &[u8], exchange: &Exchange) -> bool {
        match self {
            Self::StartsWith(start) => text.starts_with(&start.value(exchange).into_text()),
            Self::EndsWith(end) => text.ends_with(&end.value(exchange).into_text()),
            Self::Contains(part) => {
                let part = part.value(exchange).into_text();
                part.is_empty() || text.windows(part.len()).any(|window| window == &*part)
            }
            Self::Matches(regex) => regex.is_match(text),
        }
    }
}

impl Operand {
    fn compile(operand: &config::Operand) -> Self {
        use config::Operand as O;
        let boxed = |of: &O| Box::new(Self::compile(of));
        match operand {
            O::Text(template) => Self::Text(Text::compile(template)),
            O::Number(number) => Self::Number(*number),
            O::Size(of) => Self::Size(boxed(of)),
            O::Lower(of) => Self::Lower(boxed(of)),
            O::Upper(of) => Self::Upper(boxed(of)),
            O::Trimmed(of) => Self::Trimmed(boxed(of)),
            O::Integer(of) => Self::Integer(boxed(of)),
            O::Arithmetic { left, sign, right } => Self::Arithmetic(boxed(left), *sign, boxed(right)),
        }
    }

    fn value(&self, exchange: &Exchange) -> Value<'_> {
        match self {
            Self::Text(text) => Value::Text(text.render(exchange)),
            Self::Number(number) => Value::Number(*number),
            Self::Size(of) => {
                let text = of.value(exchange).into_text();
                Value::Number(String::from_utf8_lossy(&text).chars().count() as i64)
            }
            Self::Lower(of) => Value::Text(of.value(exchange).into_text().to_ascii_lowercase().into()),
            Self::Upper(of) => Value::Text(of.value(exchange).into_text().to_ascii_uppercase().into()),
            Self::Trimmed(of) => Value::Text(of.value(exchange).into_text().trim_ascii().to_vec().into()),
            Self::Integer(of) => of.value(exchange).number().map_or(Value::Nothing, Value::Number),
            Self::Arithmetic(left, sign, right) => {
                left.value(exchange).with(*sign, right.value(exchange)).unwrap_or(Value::Nothing)
            }
        }
    }
}

impl<'a> Value<'a> {
    fn into_text(self) -> Cow<'a, [u8]> {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string().into_bytes().into(),
            Self::Nothing => Cow::Borrowed(b""),
        }
    }

    fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => Some(one.cmp(other)),
            _ => Some(self.number()?.cmp(&other.number()?)),
        }
    }

    fn number(&self) -> Option<i64> {
        match self {
            Self::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            Self::Number(number) => Some(*number),
            Self::Nothing => None,
        }
    }

    /// `None`: there is no such value, as behind a division by 0.
    fn with(self, sign: Sign, right: Self) -> Option<Self> {
        if let (Self::Text(one), Self::Text(other), Sign::Plus) = (&self, &right, sign) {
            return Some(Self::Text([&one[..], &other[..]].concat().into()));
        }
        let (left, right) = (self.number()?, right.number()?);
        let number = match sign {
            Sign::Plus => left.checked_add(right),
            Sign::Minus => left.checked_sub(right),
            Sign::Times => left.checked_mul(right),
            Sign::Divided => left.checked_div(right),
            Sign::Remainder => left.checked_rem(right),
        };
        number.map(Self::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::request;
    use config::{Expression as E, Matcher as M, Operand as O, Part, Template};

    fn holds(expression: &E) -> bool {
        let mut exchange = request("GET", "/Admin/x?page=7", &[("x-a", " abc ")]);
        Expression::compile(expression).unwrap().holds(&mut exchange).unwrap()
    }

    fn of(name: &str) -> O {
        O::Text(Template(vec![Part::Placeholder(name.into())]))
    }

    fn text(text: &str) -> O {
        O::Text(Template::text(text))
    }

    fn compare(left: O, relation: Relation, right: O) -> bool {
        holds(&E::Compare { left, relation, right })
    }

    #[test]
    fn texts_and_numbers_are_compared() {
        use Relation::{Equal, Greater, Less, LessOrEqual, Unequal};
        let page = || of("http.request.uri.query.page");
        assert!(compare(page(), Equal, O::Number(7)) && compare(page(), Equal, text("7")));
        assert!(compare(page(), Less, O::Number(10)) && !compare(page(), Less, text("10")));
        assert!(compare(O::Number(8), Greater, page()) && compare(page(), LessOrEqual, O::Number(7)));
        let path = || of("http.request.uri.path");
        assert!(!compare(path(), Equal, O::Number(7)) && compare(path(), Unequal, O::Number(7)));
        assert!(!compare(path(), Less, O::Number(7)) && !compare(path(), Greater, O::Number(7)));
        assert!(compare(O::Size(Box::new(path())), Equal, O::Number(8)));
        let trimmed = O::Trimmed(Box::new(O::Upper(Box::new(of("http.request.header.x-a")))));
        assert!(compare(trimmed, Equal, text("ABC")));
        let list = vec![text("POST"), text("GET")];
        assert!(holds(&E::In { value: of("http.request.method"), list: list.clone() }));
        assert!(!holds(&E::In { value: path(), list }));
    }

    #[test]
    fn values_are_put_together() {
        use Relation::{Equal, Unequal};
        let page = || of("http.request.uri.query.page");
        let sum = |left, sign, right| O::Arithmetic { left: Box::new(left), sign, right: Box::new(right) };
        for (sign, number) in
            [(Sign::Plus, 9), (Sign::Minus, 5), (Sign::Times, 14), (Sign::Divided, 3), (Sign::Remainder, 1)]
        {
            assert!(compare(sum(page(), sign, O::Number(2)), Equal, O::Number(number)), "{sign:?}");
        }
        assert!(compare(sum(page(), Sign::Plus, text("x")), Equal, text("7x")));
        let two = sum(O::Integer(Box::new(page())), Sign::Plus, O::Integer(Box::new(page())));
        assert!(compare(two, Equal, O::Number(14)));
        let path = of("http.request.uri.path");
        for nothing in [
            sum(page(), Sign::Divided, O::Number(0)),
            sum(O::Number(i64::MAX), Sign::Times, page()),
            sum(path.clone(), Sign::Minus, O::Number(1)),
            O::Integer(Box::new(path)),
        ] {
            assert!(
                !compare(nothing.clone(), Equal, O::Number(0)) && !compare(nothing.clone(), Equal, text(""))
            );
            assert!(compare(nothing, Unequal, O::Number(0)));
        }
    }

    #[test]
    fn tests_of_texts() {
        let test = |test, argument: &str| {
            holds(&E::Text { value: of("http.request.uri.path"), test, argument: text(argument) })
        };
        assert!(test(TextTest::StartsWith, "/Ad") && !test(TextTest::StartsWith, "/ad"));
        assert!(test(TextTest::EndsWith, "/x") && !test(TextTest::EndsWith, "/y"));
        assert!(
            test(TextTest::Contains, "min")
                && test(TextTest::Contains, "")
                && !test(TextTest::Contains, "MIN")
        );
        assert!(test(TextTest::Matches, "^/[A-Z]") && !test(TextTest::Matches, "^[A-Z]"));
    }

    #[test]
    fn conditions_are_put_together() {
        let path = |pattern: &str| E::Matchers(vec![M::Path(vec![Template::text(pattern)])]);
        let not = |of| E::Not(Box::new(of));
        assert!(holds(&E::All(vec![path("/admin/*"), not(path("/b"))])));
        assert!(!holds(&E::All(vec![path("/admin/*"), path("/b")])));
        assert!(holds(&E::Any(vec![path("/b"), path("/admin/x")])));
        let choice = |condition: E| E::Choice {
            condition: Box::new(condition),
            then: Box::new(E::Constant(true)),
            otherwise: Box::new(path("/b")),
        };
        assert!(holds(&choice(path("/admin/*"))) && !holds(&choice(path("/b"))));
        assert!(!holds(&E::Any(vec![])) && holds(&E::All(vec![])) && !holds(&E::Constant(false)));
    }
}
