//! `expression`: conditions that are put together of others, and of values that are compared.

use super::{MatcherSet, Template};
use serde::Serialize;

/// A condition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Expression {
    Constant(bool),
    /// A function such as `path(…)`.
    Matchers(MatcherSet),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Choice {
        condition: Box<Expression>,
        then: Box<Expression>,
        otherwise: Box<Expression>,
    },
    Compare {
        left: Operand,
        relation: Relation,
        right: Operand,
    },
    /// The value is one of the list.
    In {
        value: Operand,
        list: Vec<Operand>,
    },
    Text {
        value: Operand,
        test: TextTest,
        /// Of [`TextTest::Matches`], a constant regular expression.
        argument: Operand,
    },
}

/// A value. One that is compared with a number is a number, or else it is not equal, nor less, nor greater.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Operand {
    Text(Template),
    Number(i64),
    /// In characters.
    Size(Box<Operand>),
    /// ASCII letters become small.
    Lower(Box<Operand>),
    /// ASCII letters become capital.
    Upper(Box<Operand>),
    /// Without white space at the ends.
    Trimmed(Box<Operand>),
    /// A number, or else nothing that anything is equal to.
    Integer(Box<Operand>),
    /// Two texts, or two numbers; of a number and a text, the text is taken for a number.
    Arithmetic {
        left: Box<Operand>,
        sign: Sign,
        right: Box<Operand>,
    },
}

/// Of arithmetic. Texts have [`Sign::Plus`] alone, which joins them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Sign {
    Plus,
    Minus,
    Times,
    Divided,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Relation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
    /// A regular expression finds something in it.
    Matches,
}
