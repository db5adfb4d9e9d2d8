//! Words to a tree, by the precedence of CEL: `? :`, `||`, `&&`, relations, `+` and `-`, `*`, `/` and `%`, `!`, calls.

use super::Mistake;
use super::lexer::{Kind, Word};
use crate::model::Sign;

/// Brackets and signs within each other: beyond that nobody reads it, and the stack has an end.
const DEEPEST: usize = 64;

/// A part of an expression, and the byte that it begins at.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub at: usize,
    pub kind: NodeKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeKind {
    Text(String),
    Number(i64),
    Boolean(bool),
    Placeholder(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// `name(…)`, or `target.name(…)`.
    Call {
        target: Option<Box<Node>>,
        name: String,
        args: Vec<Node>,
    },
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
    /// `condition ? node : node`
    Choice(Box<[Node; 3]>),
    /// Of two values, by a sign.
    Arithmetic(Box<Node>, Sign, Box<Node>),
    /// With one of [`RELATIONS`].
    Relation(Box<Node>, &'static str, Box<Node>),
}

const RELATIONS: &[&str] = &["==", "!=", "<=", ">=", "<", ">"];

/// The tree of a whole text.
pub(super) fn parse(words: Vec<Word>) -> Result<Node, Mistake> {
    let mut parser = Parser { words, next: 0, depth: 0, sums: 0 };
    let node = parser.choice()?;
    match parser.peek() {
        Kind::End => Ok(node),
        Kind::Sign("[") => Err(parser.mistake("`[` behind a value is not built yet in Regent".into())),
        _ => Err(parser.unexpected("the end, `&&` or `||`")),
    }
}

struct Parser {
    /// The last one is [`Kind::End`], which nobody goes past.
    words: Vec<Word>,
    next: usize,
    depth: usize,
    /// Signs of arithmetic so far, each of which is a level of the tree.
    sums: usize,
}

impl Parser {
    fn peek(&self) -> &Kind {
        &self.words[self.next].kind
    }

    fn at(&self) -> usize {
        self.words[self.next].at
    }

    fn take(&mut self) -> Kind {
        let kind = self.words[self.next].kind.clone();
        self.next = (self.next + 1).min(self.words.len() - 1);
        kind
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Kind::Sign(next) if *next == sign);
        if found {
            self.take();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Mistake> {
        if self.takes(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn mistake(&self, message: String) -> Mistake {
        Mistake::new(self.at(), message)
    }

    fn unexpected(&self, wanted: &str) -> Mistake {
        let found = match self.peek() {
            Kind::End => "the end".to_owned(),
            Kind::Sign(sign) => format!("`{sign}`"),
            Kind::Name(name) => format!("`{name}`"),
            Kind::Number(number) => format!("`{number}`"),
            Kind::Text(_) => "a text".to_owned(),
            Kind::Placeholder(_) => "a placeholder".to_owned(),
        };
        self.mistake(format!("expected {wanted}, not {found}"))
    }

    fn choice(&mut self) -> Result<Node, Mistake> {
        let condition = self.any()?;
        if !self.takes("?") {
            return Ok(condition);
        }
        let at = condition.at;
        let then = self.deeper(Self::any)?;
        self.expect(":")?;
        let otherwise = self.deeper(Self::choice)?;
        Ok(Node { at, kind: NodeKind::Choice(Box::new([condition, then, otherwise])) })
    }

    fn any(&mut self) -> Result<Node, Mistake> {
        let first = self.all()?;
        self.chain(first, "||", Self::all, NodeKind::Any)
    }

    fn all(&mut self) -> Result<Node, Mistake> {
        let first = self.relation()?;
        self.chain(first, "&&", Self::relation, NodeKind::All)
    }

    fn chain(
        &mut self,
        first: Node,
        sign: &str,
        next: fn(&mut Self) -> Result<Node, Mistake>,
        kind: fn(Vec<Node>) -> NodeKind,
    ) -> Result<Node, Mistake> {
        let at = first.at;
        let mut nodes = vec![first];
        while self.takes(sign) {
            nodes.push(next(self)?);
        }
        Ok(match nodes.len() {
            1 => nodes.remove(0),
            _ => Node { at, kind: kind(nodes) },
        })
    }

    fn relation(&mut self) -> Result<Node, Mistake> {
        let left = self.sum()?;
        let relation = match self.peek() {
            Kind::Sign(sign) => RELATIONS.iter().find(|relation| *relation == sign).copied(),
            Kind::Name(name) if name == "in" => Some("in"),
            _ => None,
        };
        let Some(relation) = relation else { return Ok(left) };
        self.take();
        let right = self.sum()?;
        Ok(Node { at: left.at, kind: NodeKind::Relation(Box::new(left), relation, Box::new(right)) })
    }

    fn sum(&mut self) -> Result<Node, Mistake> {
        self.arithmetic(Self::product, &[("+", Sign::Plus), ("-", Sign::Minus)])
    }

    fn product(&mut self) -> Result<Node, Mistake> {
        self.arithmetic(Self::unary, &[("*", Sign::Times), ("/", Sign::Divided), ("%", Sign::Remainder)])
    }

    /// From left to right. Each sign is one level of the tree.
    fn arithmetic(
        &mut self,
        next: fn(&mut Self) -> Result<Node, Mistake>,
        signs: &[(&str, Sign)],
    ) -> Result<Node, Mistake> {
        let mut node = next(self)?;
        while let Some((_, sign)) = signs.iter().find(|(text, _)| self.takes(text)) {
            self.sums += 1;
            if self.sums > DEEPEST {
                return Err(self.mistake(format!("there are more than {DEEPEST} signs of arithmetic")));
            }
            let right = next(self)?;
            node = Node { at: node.at, kind: NodeKind::Arithmetic(Box::new(node), *sign, Box::new(right)) };
        }
        Ok(node)
    }

    fn unary(&mut self) -> Result<Node, Mistake> {
        let at = self.at();
        if self.takes("!") {
            let node = self.deeper(Self::unary)?;
            return Ok(Node { at, kind: NodeKind::Not(Box::new(node)) });
        }
        if self.takes("-") {
            let node = self.deeper(Self::unary)?;
            let zero = Node { at, kind: NodeKind::Number(0) };
            return Ok(Node { at, kind: NodeKind::Arithmetic(Box::new(zero), Sign::Minus, Box::new(node)) });
        }
        let mut node = self.deeper(Self::primary)?;
        while self.takes(".") {
            let at = self.at();
            let Kind::Name(name) = self.take() else {
                return Err(Mistake::new(at, "expected the name of a method behind `.`"));
            };
            self.expect("(")?;
            let args = self.list(")")?;
            node = Node { at, kind: NodeKind::Call { target: Some(Box::new(node)), name, args } };
        }
        Ok(node)
    }

    fn primary(&mut self) -> Result<Node, Mistake> {
        let at = self.at();
        let kind = match self.peek().clone() {
            Kind::Text(text) => NodeKind::Text(text),
            Kind::Number(number) => NodeKind::Number(number),
            Kind::Placeholder(name) => NodeKind::Placeholder(name),
            Kind::Name(name) => return self.named(at, name),
            Kind::Sign("(") => {
                self.take();
                let node = self.choice()?;
                self.expect(")")?;
                return Ok(node);
            }
            Kind::Sign("[") => {
                self.take();
                return Ok(Node { at, kind: NodeKind::List(self.list("]")?) });
            }
            Kind::Sign("{") => {
                self.take();
                return Ok(Node { at, kind: NodeKind::Map(self.map()?) });
            }
            Kind::Sign(_) | Kind::End => return Err(self.unexpected("a condition or a value")),
        };
        self.take();
        Ok(Node { at, kind })
    }

    fn named(&mut self, at: usize, name: String) -> Result<Node, Mistake> {
        self.take();
        let kind = match name.as_str() {
            "true" => NodeKind::Boolean(true),
            "false" => NodeKind::Boolean(false),
            _ if self.takes("(") => NodeKind::Call { target: None, name, args: self.list(")")? },
            _ => {
                return Err(Mistake::new(
                    at,
                    format!(
                        "`{name}` is no value; write `'{name}'` for a text, or `{{{name}}}` for a placeholder"
                    ),
                ));
            }
        };
        Ok(Node { at, kind })
    }

    /// Up to the closing bracket; a comma may stand before that.
    fn list(&mut self, end: &str) -> Result<Vec<Node>, Mistake> {
        let mut nodes = Vec::new();
        loop {
            if self.takes(end) {
                return Ok(nodes);
            }
            nodes.push(self.deeper(Self::choice)?);
            if !self.takes(",") {
                self.expect(end)?;
                return Ok(nodes);
            }
        }
    }

    fn map(&mut self) -> Result<Vec<(Node, Node)>, Mistake> {
        let mut pairs = Vec::new();
        loop {
            if self.takes("}") {
                return Ok(pairs);
            }
            let key = self.deeper(Self::any)?;
            self.expect(":")?;
            pairs.push((key, self.deeper(Self::choice)?));
            if !self.takes(",") {
                self.expect("}")?;
                return Ok(pairs);
            }
        }
    }

    fn deeper(&mut self, parse: fn(&mut Self) -> Result<Node, Mistake>) -> Result<Node, Mistake> {
        if self.depth == DEEPEST {
            return Err(self.mistake(format!("brackets and signs are nested more than {DEEPEST} deep")));
        }
        self.depth += 1;
        let node = parse(self);
        self.depth -= 1;
        node
    }
}
