//! `header [MATCHER] FIELD [VALUE | SEARCH REPLACEMENT]`, or a block of such lines: changes the response's header.
//!
//! | written | does |
//! |---|---|
//! | `Field value` | sets |
//! | `+Field value` | adds a field beside those that are there |
//! | `-Field` | deletes; `-Prefix*` all that begin so, `-*suffix` all that end so |
//! | `?Field value` | sets if it is not there |
//! | `>Field value` | sets, deferred |
//! | `Field search replacement` | replaces what a regular expression finds; `>` as above |
//!
//! An operation that is not deferred acts before the handlers that follow, which may change the field again. `-`, `?`,
//! `>` and the option `defer` defer all operations of the directive until the response is on its way out.
//!
//! The option `match`, as [encode](#encode) has it, makes it a change of the responses that fit, deferred.
//!
//! Names, values and searches can have placeholders; in a search they stand for text that is found as it is. In values that are
//! deferred, `{http.response.header.FIELD}` is a field of the response.
//!
//! `Content-Length` and `Transfer-Encoding` cannot be set: the server says itself how long a response is.
//!
//! ```caddyfile
//! header /assets/* {
//!     Cache-Control "public, max-age=31536000"
//!     -Server
//! }
//! ```

use super::Directive;
use super::encode::response_matcher;
use crate::call::Call;
use crate::conditions::{check_pattern, regexp};
use crate::context::{Context, Notation};
use crate::matchers::Scope;
use crate::model::{Handler, HeaderOp, HeaderOpKind, Part, Template};
use crate::problems::error;
use crate::template;
use regent_caddyfile::{Error, Token};

pub(super) const DIRECTIVE: Directive = super::handler("header", parse);

const SYNTAX: &str = "header [MATCHER] [+|-|?|>]FIELD [VALUE | SEARCH REPLACEMENT]";

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let mut ops = Vec::new();
    let (mut defer, mut at_once) = (false, false);
    let mut matcher = None;
    match call.args.split_first() {
        Some((field, values)) => {
            call.without_block(SYNTAX)?;
            ops.push(response_operation(field, values)?);
        }
        None if call.block.is_none() => return Err(call.wrong_arguments(1, SYNTAX)),
        None => {}
    }
    for option in call.options() {
        match option.name() {
            "defer" => defer |= cx.check(option.exactly::<0>("defer")).is_some(),
            // Caddy's JSON says of all changes whether they wait, where signs do in a Caddyfile.
            "json at once" if cx.notation == Notation::Json => at_once = true,
            "match" => {
                let found = response_matcher(cx, &option);
                matcher = cx.check(found).or(matcher);
            }
            _ => {
                let op =
                    option.without_block(SYNTAX).and_then(|()| response_operation(option.name, option.args));
                ops.extend(cx.check(op));
            }
        }
    }
    let deferred = defer || matcher.is_some() || ops.iter().any(|op: &HeaderOp| op.deferred);
    ops.iter_mut().for_each(|op| op.deferred = deferred && !at_once);
    warn_of_early_copies(cx, call, deferred && !at_once);
    Ok(match matcher {
        Some(matcher) => Handler::HeaderMatch(matcher, ops),
        None => Handler::Header(ops),
    })
}

/// Fields that say where a response ends: one that is wrong would make the client take the rest of it for the next one.
const FRAMING: [&str; 2] = ["content-length", "transfer-encoding"];

fn response_operation(field: &Token, values: &[Token]) -> Result<HeaderOp, Error> {
    let op = operation(field, values, SYNTAX)?;
    let name = op.name.as_text().unwrap_or_default();
    match FRAMING.iter().any(|known| name.eq_ignore_ascii_case(known)) && op.kind != HeaderOpKind::Delete {
        true => Err(error(
            field,
            format!(
                "`header` cannot set `{name}`: the server says itself how long a response is; leave the line out"
            ),
        )),
        false => Ok(op),
    }
}

/// An operation that is carried out before there is a response finds none of its fields.
fn warn_of_early_copies(cx: &mut Context<'_>, call: &Call<'_>, deferred: bool) {
    let within = call.block.unwrap_or_default().iter().flat_map(|line| &line.args);
    for token in call.args.iter().chain(within).filter(|_| !deferred) {
        if token.text.contains(template::OF_THE_RESPONSE) {
            cx.warn(
                token,
                format!("`{}` is what was set before the response is made; write `>FIELD` to have the field of the response", token.text),
            );
        }
    }
}

/// One operation; `deferred` says whether it asks to be.
pub(super) fn operation(field: &Token, values: &[Token], syntax: &str) -> Result<HeaderOp, Error> {
    let (sign, name) = match field.text.chars().next() {
        Some(sign @ ('+' | '-' | '?' | '>')) => (sign, &field.text[1..]),
        _ => (' ', field.text.as_str()),
    };
    // Caddy takes «Field:» as well, as that is how a header looks.
    let name = name.strip_suffix(':').unwrap_or(name);
    let template = Template::parse(name);
    let is_fine = match template.as_text() {
        Some(name) => is_field_name(name, sign),
        None => template.0.iter().all(|part| match part {
            Part::Text(text) => is_name(text),
            Part::Placeholder(_) => true,
        }),
    };
    if !is_fine {
        return Err(error(field, format!("`{name}` is no name of a header field")));
    }
    let (kind, value) = match (sign, values) {
        ('-', []) => (HeaderOpKind::Delete, Template::default()),
        ('+', [value]) => (HeaderOpKind::Add, Template::parse(&value.text)),
        ('?', [value]) => (HeaderOpKind::Default, Template::parse(&value.text)),
        (' ' | '>', [value]) => (HeaderOpKind::Set, Template::parse(&value.text)),
        (' ' | '>', [search, replacement]) => {
            (HeaderOpKind::Replace { search: self::search(search)? }, Template::parse(&replacement.text))
        }
        (' ' | '>', []) => {
            return Err(error(field, format!("`{name}` needs a value; to delete the field, write: -{name}")));
        }
        _ => return Err(error(values.last().unwrap_or(field), format!("write: {syntax}"))),
    };
    Ok(HeaderOp { kind, name: template, value, deferred: matches!(sign, '-' | '?' | '>') })
}

/// A regular expression, in which a backslash before a brace is its own.
fn search(token: &Token) -> Result<Template, Error> {
    let template = Template::parse(&token.text);
    if template.as_text().is_some() {
        return regexp(token).map(Template::text);
    }
    // With letters where values will be.
    let pattern: String = template
        .0
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Placeholder(_) => "x",
        })
        .collect();
    check_pattern(&pattern).map(|()| template).map_err(|_| {
        error(
            token,
            format!("`{}` is no regular expression, whatever its placeholders stand for", token.text),
        )
    })
}

/// A name; to be deleted, with a `*` at one of its ends.
fn is_field_name(name: &str, sign: char) -> bool {
    is_name(if sign == '-' { name.trim_start_matches('*').trim_end_matches('*') } else { name })
}

/// RFC 9110 §5.1: a token.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, load};
    use crate::model::{Handler, HeaderOp, HeaderOpKind, Template};

    fn ops(text: &str) -> Vec<HeaderOp> {
        match handler(text) {
            Handler::Header(ops) => ops,
            other => panic!("{other:?}"),
        }
    }

    fn op(kind: HeaderOpKind, name: &str, value: &str, deferred: bool) -> HeaderOp {
        HeaderOp { kind, name: Template::parse(name), value: Template::parse(value), deferred }
    }

    #[test]
    fn all_forms() {
        use HeaderOpKind::{Add, Default, Delete, Replace, Set};
        assert_eq!(ops("header A 1"), [op(Set, "A", "1", false)]);
        assert_eq!(ops("header /x* A: {path}"), [op(Set, "A", "{path}", false)]);
        assert_eq!(ops("header +A 1"), [op(Add, "A", "1", false)]);
        assert_eq!(ops("header -A*"), [op(Delete, "A*", "", true)]);
        assert_eq!(ops("header ?A 1"), [op(Default, "A", "1", true)]);
        assert_eq!(ops("header >A 1"), [op(Set, "A", "1", true)]);
        assert_eq!(ops("header A a+ $1b"), [op(Replace { search: Template::text("a+") }, "A", "$1b", false)]);
    }

    #[test]
    fn one_deferred_line_defers_the_block() {
        use HeaderOpKind::{Delete, Set};
        assert_eq!(ops("header {\nA 1\n-B\n}"), [op(Set, "A", "1", true), op(Delete, "B", "", true)]);
        assert_eq!(ops("header {\nA 1\ndefer\n}"), [op(Set, "A", "1", true)]);
        assert_eq!(ops("header {\nA 1\nB 2\n}"), [op(Set, "A", "1", false), op(Set, "B", "2", false)]);
    }

    #[test]
    fn a_response_s_length_could_be_set_to_a_wrong_one() {
        let found =
            errors("header Content-Length 5\nheader {\n>transfer-encoding chunked\nContent-length a b\n}");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("cannot set `Content-Length`"), "{found:?}");
        assert_eq!(ops("header -Content-Length").len(), 1);
    }

    #[test]
    fn only_of_responses_that_fit() {
        let Handler::HeaderMatch(matcher, ops) = handler("header {\nA 1\nmatch status 2xx 404\n}") else {
            panic!()
        };
        assert_eq!(matcher.statuses, [(200, 299), (404, 404)]);
        assert_eq!(ops, [op(HeaderOpKind::Set, "A", "1", true)]);
    }

    #[test]
    fn placeholders_stand_in_names_and_searches_too() {
        use HeaderOpKind::{Delete, Replace, Set};
        assert_eq!(ops("header X-{vars.a} 1"), [op(Set, "X-{vars.a}", "1", false)]);
        assert_eq!(ops("header -{vars.a}*"), [op(Delete, "{vars.a}*", "", true)]);
        let search = Template::parse(":{http.request.local.port}$");
        assert_eq!(
            ops("header F `:{http.request.local.port}$` x"),
            [op(Replace { search }, "F", "x", false)]
        );
        let search = Template::text(r"\{a\}{2}");
        assert_eq!(ops(r"header F `\{a\}{2}` x"), [op(Replace { search }, "F", "x", false)]);
        let found = errors("header `a b{vars.a}` 1\nheader F `({path}` x");
        assert!(found[0].contains("no name of a header field"), "{found:?}");
        assert!(found[1].contains("is no regular expression, whatever"), "{found:?}");
    }

    #[test]
    fn a_field_of_the_response_is_known_where_the_response_is() {
        let value = "{http.response.header.X-B}";
        assert_eq!(ops(&format!("header >X-A {value}")), [op(HeaderOpKind::Set, "X-A", value, true)]);
        let warned = |text: &str| load(&format!(":80 {{\n{text}\n}}")).unwrap().warnings.len();
        assert_eq!(warned(&format!("header >X-A {value}")), 0);
        assert_eq!(warned(&format!("header {{\nX-A {value}\ndefer\n}}")), 0);
        assert_eq!(warned(&format!("header X-A {value}")), 1);
        let found = errors(&format!(
            "respond {value}\nrequest_header X {value}\nintercept {{\nhandle_response {{\nheader >X {value}\n}}\n}}"
        ));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn mistakes() {
        let found = errors("header {\nA\n\"B C\" 1\n-D x\nE ( x\nmatch stats 404\n}\nheader");
        assert_eq!(found.len(), 6, "{found:?}");
        assert_eq!(found[0], "`A` needs a value; to delete the field, write: -A");
        assert!(found[4].starts_with("unknown condition on a response `stats`"), "{found:?}");
    }
}
