//! What a tree means: which parts are conditions, and which are values that are compared.

use super::Mistake;
use super::parser::{Node, NodeKind};
use crate::conditions;
use crate::context::Context;
use crate::model::{Expression, Operand, Part, Relation, Template, TextTest};
use regent_caddyfile::{Line, Token};

/// Conditions of Caddyfiles that are functions here.
const FUNCTIONS: &[&str] = &[
    "client_ip",
    "file",
    "header",
    "header_regexp",
    "host",
    "method",
    "path",
    "path_regexp",
    "protocol",
    "query",
    "remote_ip",
    "vars",
    "vars_regexp",
];

const TESTS: &[(&str, TextTest)] = &[
    ("contains", TextTest::Contains),
    ("endsWith", TextTest::EndsWith),
    ("matches", TextTest::Matches),
    ("startsWith", TextTest::StartsWith),
];

/// Who asks: what the conditions of Caddyfiles need, to be made of functions.
struct Asker<'a> {
    /// Whose place is that of all mistakes.
    token: &'a Token,
    owner: &'a str,
}

/// The condition that a tree is.
pub(super) fn condition(
    cx: &mut Context<'_>,
    node: &Node,
    token: &Token,
    owner: &str,
) -> Result<Expression, Mistake> {
    Asker { token, owner }.condition(cx, node)
}

impl Asker<'_> {
    fn condition(&self, cx: &mut Context<'_>, node: &Node) -> Result<Expression, Mistake> {
        match &node.kind {
            NodeKind::Boolean(value) => Ok(Expression::Constant(*value)),
            NodeKind::Not(of) => Ok(Expression::Not(Box::new(self.condition(cx, of)?))),
            NodeKind::All(of) => self.conditions(cx, of).map(Expression::All),
            NodeKind::Any(of) => self.conditions(cx, of).map(Expression::Any),
            NodeKind::Choice(of) => {
                let [condition, then, otherwise] = &**of;
                Ok(Expression::Choice {
                    condition: Box::new(self.condition(cx, condition)?),
                    then: Box::new(self.condition(cx, then)?),
                    otherwise: Box::new(self.condition(cx, otherwise)?),
                })
            }
            NodeKind::Relation(left, "in", list) => is_in(left, list),
            NodeKind::Relation(left, relation, right) => compare(left, relation, right),
            NodeKind::Call { target: Some(target), name, args } => text_test(node.at, target, name, args),
            NodeKind::Call { target: None, name, args } => self.function(cx, node.at, name, args),
            _ => Err(Mistake::new(
                node.at,
                "expected a condition, not a value: compare it, for example with `==`",
            )),
        }
    }

    fn conditions(&self, cx: &mut Context<'_>, nodes: &[Node]) -> Result<Vec<Expression>, Mistake> {
        nodes.iter().map(|node| self.condition(cx, node)).collect()
    }

    fn function(
        &self,
        cx: &mut Context<'_>,
        at: usize,
        name: &str,
        args: &[Node],
    ) -> Result<Expression, Mistake> {
        if !FUNCTIONS.contains(&name) {
            let known = FUNCTIONS.join(", ");
            return Err(Mistake::new(at, format!("`{name}` is no function (there are: {known})")));
        }
        let lines = match args {
            [Node { kind: NodeKind::Map(pairs), .. }] if name == "file" => vec![self.file(pairs)?],
            [Node { kind: NodeKind::Map(pairs), .. }] => self.of_map(at, name, pairs)?,
            _ if matches!(name, "header" | "query" | "vars") => {
                return Err(Mistake::new(at, format!("write: {name}({{'NAME': 'VALUE'}})")));
            }
            _ => vec![self.line(name, words(args)?)],
        };
        let before = cx.errors.len();
        let set = conditions::of_lines(cx, &lines, self.owner);
        // They have the right place already, and this one knows the character.
        match cx.errors.drain(before..).next() {
            Some(error) => Err(Mistake::new(at, error.message)),
            None => Ok(Expression::Matchers(set)),
        }
    }

    fn word(&self, text: impl Into<String>) -> Token {
        Token { text: text.into(), quoted: true, span: self.token.span.clone() }
    }

    fn line(&self, name: &str, args: Vec<String>) -> Line {
        let args = args.into_iter().map(|arg| self.word(arg)).collect();
        Line { name: self.word(name), args, block: None }
    }

    /// `{'NAME': 'VALUE'}` and `{'NAME': ['VALUE', …]}`.
    fn of_map(&self, at: usize, name: &str, pairs: &[(Node, Node)]) -> Result<Vec<Line>, Mistake> {
        if !matches!(name, "header" | "query" | "vars") {
            return Err(Mistake::new(at, format!("`{name}` takes no map; write: {name}('VALUE')")));
        }
        let mut lines = Vec::new();
        for (key, value) in pairs {
            let key = word(key)?;
            for value in list_or_one(value)? {
                lines.push(match name {
                    "query" => self.line(name, vec![format!("{key}={value}")]),
                    _ => self.line(name, vec![key.clone(), value]),
                });
            }
        }
        Ok(lines)
    }

    fn file(&self, pairs: &[(Node, Node)]) -> Result<Line, Mistake> {
        let mut block = Vec::new();
        for (key, value) in pairs {
            block.push(self.line(&word(key)?, list_or_one(value)?));
        }
        Ok(Line { block: Some(block), ..self.line("file", Vec::new()) })
    }
}

fn is_in(left: &Node, list: &Node) -> Result<Expression, Mistake> {
    let NodeKind::List(nodes) = &list.kind else {
        return Err(Mistake::new(list.at, "expected a list behind `in`, such as ['a', 'b']"));
    };
    let list = nodes.iter().map(operand).collect::<Result<_, _>>()?;
    Ok(Expression::In { value: operand(left)?, list })
}

fn compare(left: &Node, relation: &str, right: &Node) -> Result<Expression, Mistake> {
    let relation = match relation {
        "==" => Relation::Equal,
        "!=" => Relation::Unequal,
        "<" => Relation::Less,
        "<=" => Relation::LessOrEqual,
        ">" => Relation::Greater,
        _ => Relation::GreaterOrEqual,
    };
    Ok(Expression::Compare { left: operand(left)?, relation, right: operand(right)? })
}

fn text_test(at: usize, target: &Node, name: &str, args: &[Node]) -> Result<Expression, Mistake> {
    let Some((_, test)) = TESTS.iter().find(|(known, _)| *known == name) else {
        return Err(no_method(at, name));
    };
    let [argument] = args else {
        return Err(Mistake::new(at, format!("`{name}` takes one argument")));
    };
    if *test == TextTest::Matches {
        let NodeKind::Text(pattern) = &argument.kind else {
            return Err(Mistake::new(argument.at, "the pattern has to be a text in quotes"));
        };
        conditions::check_pattern(pattern).map_err(|message| Mistake::new(argument.at, message))?;
    }
    Ok(Expression::Text { value: operand(target)?, test: *test, argument: operand(argument)? })
}

fn no_method(at: usize, name: &str) -> Mistake {
    let tests = TESTS.iter().map(|(name, _)| *name);
    let known: Vec<_> = tests.chain(["lowerAscii", "size", "trim", "upperAscii"]).collect();
    Mistake::new(at, format!("`{name}` is no method that Regent has (there are: {})", known.join(", ")))
}

/// A value that can be compared.
fn operand(node: &Node) -> Result<Operand, Mistake> {
    match &node.kind {
        NodeKind::Text(text) => Ok(Operand::Text(Template::text(text.clone()))),
        NodeKind::Number(number) => Ok(Operand::Number(*number)),
        NodeKind::Arithmetic(left, sign, right) => Ok(Operand::Arithmetic {
            left: Box::new(operand(left)?),
            sign: *sign,
            right: Box::new(operand(right)?),
        }),
        NodeKind::Choice(_) => Err(Mistake::new(
            node.at,
            "`? :` chooses between conditions here, not values; write: CONDITION ? {path} == 'a' : {path} == 'b'",
        )),
        NodeKind::Boolean(value) => Ok(Operand::Text(Template::text(value.to_string()))),
        NodeKind::Placeholder(name) => Ok(Operand::Text(Template(vec![Part::Placeholder(name.clone())]))),
        NodeKind::Call { target: None, name, args } => match (name.as_str(), args.as_slice()) {
            ("size", [of]) => Ok(Operand::Size(Box::new(operand(of)?))),
            ("int", [of]) => Ok(Operand::Integer(Box::new(operand(of)?))),
            ("string", [of]) => operand(of),
            _ => Err(Mistake::new(node.at, format!("`{name}` is no value that can be compared"))),
        },
        NodeKind::Call { target: Some(_), name, args } if !args.is_empty() => Err(no_method(node.at, name)),
        NodeKind::Call { target: Some(target), name, .. } => {
            let of = Box::new(operand(target)?);
            match name.as_str() {
                "size" => Ok(Operand::Size(of)),
                "lowerAscii" => Ok(Operand::Lower(of)),
                "upperAscii" => Ok(Operand::Upper(of)),
                "trim" => Ok(Operand::Trimmed(of)),
                _ => Err(no_method(node.at, name)),
            }
        }
        _ => Err(Mistake::new(node.at, "expected a text, a number or a placeholder")),
    }
}

/// A text of a function's argument, with placeholders as Caddyfiles write them.
fn word(node: &Node) -> Result<String, Mistake> {
    match &node.kind {
        NodeKind::Text(text) => Ok(text.clone()),
        NodeKind::Number(number) => Ok(number.to_string()),
        NodeKind::Placeholder(name) => Ok(format!("{{{name}}}")),
        _ => Err(Mistake::new(node.at, "expected a text, such as 'VALUE'")),
    }
}

fn words(nodes: &[Node]) -> Result<Vec<String>, Mistake> {
    let mut words = Vec::new();
    for node in nodes {
        words.extend(list_or_one(node)?);
    }
    Ok(words)
}

fn list_or_one(node: &Node) -> Result<Vec<String>, Mistake> {
    match &node.kind {
        NodeKind::List(nodes) => nodes.iter().map(word).collect(),
        _ => word(node).map(|word| vec![word]),
    }
}
