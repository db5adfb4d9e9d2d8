//! `expression CONDITION`, or `` @name `CONDITION` ``, is a condition in the language CEL, as far as Caddyfiles use it:
//!
//! | part | meaning |
//! |---|---|
//! | `path('/a/*', …)`, `path_regexp(['NAME',] 'PATTERN')`, `host(…)`, `method(…)`, `protocol(…)`, `remote_ip(…)`, `client_ip(…)`, `header_regexp(…)`, `vars_regexp(…)`, `file('FILE', …)` | the conditions of these names |
//! | `header({'FIELD': 'VALUE'})`, `query({'KEY': ['VALUE', …]})`, `vars({…})`, `file({'try_files': […], 'root': '…'})` | the same |
//! | `{placeholder}`, `'text'`, `r'raw text'`, `12` | values |
//! | `==`, `!=`, `<`, `<=`, `>`, `>=`, `in ['a', 'b']` | compare values; with a number, as numbers |
//! | `VALUE.startsWith('…')`, `.endsWith('…')`, `.contains('…')`, `.matches('PATTERN')` | conditions on texts |
//! | `VALUE.size()`, `.lowerAscii()`, `.upperAscii()`, `.trim()`, `int(VALUE)` | values |
//! | `+`, `-`, `*`, `/`, `%` | whole numbers; `+` joins two texts. What cannot be computed is equal to nothing |
//! | `CONDITION ? CONDITION : CONDITION` | the second or the third, by the first |
//! | `&&`, `\|\|`, `!`, `( )`, `true`, `false` | |
//!
//! ```caddyfile
//! @pwa expression `header({'Accept': '*text/html*'}) && !path('/api*', '/docs*')`
//! @write expression {method} in ["POST", "PUT"] && {path}.startsWith("/admin")
//! respond @pwa 200
//! respond @write 403
//! ```

// As Caddy's modules/caddyhttp/celmatcher.go has them. A text becomes words (`lexer`), a tree (`parser`), and then what it means
// (`lower`).

mod lexer;
mod lower;
mod parser;

use crate::call::Call;
use crate::context::Context;
use crate::model::Matcher;
use crate::problems::error;
use regent_caddyfile::{Error, Token};

/// The longest text in bytes: no condition that a person wrote is longer.
const LONGEST: usize = 16 * 1024;

/// A mistake in a text, at a byte of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mistake {
    at: usize,
    message: String,
}

impl Mistake {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// The condition that the arguments of a call are. `owner` is the matcher that it belongs to.
pub(crate) fn parse(cx: &mut Context<'_>, call: &Call<'_>, owner: &str) -> Result<Matcher, Error> {
    let tokens =
        call.some("expression CONDITION, for example: expression `path('/api/*') && method('GET')`")?;
    let text = written(tokens);
    let parsed = tree(&text).and_then(|node| lower::condition(cx, &node, &tokens[0], owner));
    parsed.map(|expression| Matcher::Expression(Box::new(expression))).map_err(|mistake| {
        let token = token_at(tokens, mistake.at);
        let column = text[..mistake.at.min(text.len())].chars().count() + 1;
        error(token, format!("{} (character {column} of the expression)", mistake.message))
    })
}

/// The same for a quoted argument alone: `` @name `CONDITION` ``.
pub(crate) fn parse_quoted(cx: &mut Context<'_>, token: &Token, owner: &str) -> Result<Matcher, Error> {
    let args = std::slice::from_ref(token);
    parse(cx, &Call { name: token, args, block: None }, owner)
}

fn tree(text: &str) -> Result<parser::Node, Mistake> {
    if text.len() > LONGEST {
        return Err(Mistake::new(0, format!("an expression has {LONGEST} bytes at most")));
    }
    parser::parse(lexer::lex(text)?)
}

/// One argument is the text; of several, those in quotes are strings of the expression.
fn written(tokens: &[Token]) -> String {
    match tokens {
        [only] => only.text.clone(),
        _ => tokens.iter().map(as_written).collect::<Vec<_>>().join(" "),
    }
}

fn as_written(token: &Token) -> String {
    match token.quoted {
        true => format!("\"{}\"", token.text.replace('"', "\\\"")),
        false => token.text.clone(),
    }
}

/// The argument that a byte of the text came from.
fn token_at(tokens: &[Token], at: usize) -> &Token {
    let mut end = 0;
    let is_behind = |token: &&Token| {
        end += as_written(token).len() + 1;
        at < end
    };
    tokens.iter().find(is_behind).unwrap_or(&tokens[tokens.len() - 1])
}

#[cfg(test)]
impl crate::model::Expression {
    /// In few words, for tests.
    fn shown(&self) -> String {
        let all = |of: &[Self], word: &str| of.iter().map(Self::shown).collect::<Vec<_>>().join(word);
        match self {
            Self::Constant(value) => value.to_string(),
            Self::Matchers(set) => format!("{}", set.len()),
            Self::Not(of) => format!("!{}", of.shown()),
            Self::All(of) => format!("({})", all(of, " && ")),
            Self::Any(of) => format!("({})", all(of, " || ")),
            Self::Choice { condition, then, otherwise } => {
                format!("({} ? {} : {})", condition.shown(), then.shown(), otherwise.shown())
            }
            Self::Compare { relation, .. } => format!("{relation:?}"),
            Self::In { list, .. } => format!("in{}", list.len()),
            Self::Text { test, .. } => format!("{test:?}"),
        }
    }
}

#[cfg(test)]
mod tests;
