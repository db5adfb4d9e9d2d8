//! `uri [MATCHER] …`: changes a part of the URI that later handlers see.
//!
//! | written | does |
//! |---|---|
//! | `strip_prefix PREFIX`, `strip_suffix SUFFIX` | cuts the path |
//! | `replace TEXT REPLACEMENT [LIMIT]` | in path and query, so often at most |
//! | `path_regexp PATTERN REPLACEMENT` | in the path; `$1` is a group |
//! | `query CHANGE`, or a block of changes | of the parameters: `KEY VALUE` sets, `+KEY VALUE` adds, `-KEY` deletes, `OLD>NEW` renames, `KEY PATTERN REPLACEMENT` replaces in the values (of all, for `*`) |
//!
//! ```caddyfile
//! uri /api/* strip_prefix /api
//! uri query {
//!     -token
//!     page>p
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::conditions::regexp;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, QueryChange, Rewrite, Template};
use crate::problems::{error, unknown};
use crate::values;
use regent_caddyfile::{Error, Token};

pub(super) const DIRECTIVE: Directive = super::handler("uri", parse);

const SYNTAX: &str = "uri [MATCHER] strip_prefix PREFIX | strip_suffix SUFFIX | replace TEXT REPLACEMENT | path_regexp PATTERN REPLACEMENT | query …";
const CHANGES: &[&str] = &["strip_prefix", "strip_suffix", "replace", "path_regexp", "query"];

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    if call.args.first().is_some_and(|token| token.text == "query") {
        return query(cx, call).map(|changes| Handler::Rewrite(Rewrite::Query(changes)));
    }
    let args = call.some(SYNTAX)?;
    let rewrite = match (args[0].text.as_str(), &args[1..]) {
        ("strip_prefix", [prefix]) => Rewrite::StripPrefix(Template::parse(&prefix.text)),
        ("strip_suffix", [suffix]) => Rewrite::StripSuffix(Template::parse(&suffix.text)),
        ("replace", [find, replace, limit @ ..]) if limit.len() < 2 => Rewrite::Replace {
            find: Template::parse(&find.text),
            replace: Template::parse(&replace.text),
            limit: match limit {
                [limit] => values::integer(limit, 0..=u32::MAX, "uri replace … LIMIT")?,
                _ => 0,
            },
        },
        ("path_regexp", [find, replace]) => {
            Rewrite::PathRegexp { find: regexp(find)?, replace: Template::parse(&replace.text) }
        }
        ("strip_prefix" | "strip_suffix", _) => return Err(call.wrong_arguments(2, SYNTAX)),
        ("replace", _) => return Err(call.wrong_arguments(if args.len() < 3 { 3 } else { 4 }, SYNTAX)),
        ("path_regexp", _) => return Err(call.wrong_arguments(3, SYNTAX)),
        _ => return Err(unknown(&args[0], "change of a URI", CHANGES)),
    };
    Ok(Handler::Rewrite(rewrite))
}

fn query(cx: &mut Context<'_>, call: &Call<'_>) -> Result<Vec<QueryChange>, Error> {
    match (&call.args[1..], call.block) {
        ([], Some(_)) => Ok(call
            .options()
            .filter_map(|option| {
                let change = option.without_block(SYNTAX).and_then(|()| change(option.name, option.args));
                cx.check(change)
            })
            .collect()),
        ([key, values @ ..], None) => change(key, values).map(|change| vec![change]),
        ([], None) => Err(call.wrong_arguments(2, SYNTAX)),
        ([key, ..], Some(_)) => {
            Err(error(key, "write the changes of the query in the line or in the block, not in both"))
        }
    }
}

fn change(key: &Token, values: &[Token]) -> Result<QueryChange, Error> {
    let template = |text: &str| Template::parse(text);
    let text = key.text.as_str();
    Ok(match (text.chars().next(), text.split_once('>'), values) {
        (Some('-'), _, []) => QueryChange::Delete { key: template(&text[1..]) },
        (Some('+'), _, [value]) => {
            QueryChange::Add { key: template(&text[1..]), value: template(&value.text) }
        }
        (_, Some((from, to)), []) => QueryChange::Rename { from: template(from), to: template(to) },
        (_, _, [find, replace]) => QueryChange::Replace {
            key: template(text),
            find: regexp(find)?,
            replace: template(&replace.text),
        },
        (first, _, [value]) if first != Some('-') => {
            QueryChange::Set { key: template(text), value: template(&value.text) }
        }
        _ => {
            let message = "write: KEY VALUE, +KEY VALUE, -KEY, OLD>NEW, or KEY PATTERN REPLACEMENT";
            return Err(error(key, message));
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, QueryChange, Rewrite, Template};

    #[test]
    fn changes_of_the_path() {
        let template = Template::text;
        assert_eq!(handler("uri strip_prefix /a"), Handler::Rewrite(Rewrite::StripPrefix(template("/a"))));
        assert_eq!(handler("uri /x strip_suffix a"), Handler::Rewrite(Rewrite::StripSuffix(template("a"))));
        let replace = |limit| Rewrite::Replace { find: template("a"), replace: template("b"), limit };
        assert_eq!(handler("uri replace a b"), Handler::Rewrite(replace(0)));
        assert_eq!(handler("uri replace a b 2"), Handler::Rewrite(replace(2)));
        let find = Template::parse("/{vars.tenant}/");
        let replace = Rewrite::Replace { find, replace: template("/"), limit: 0 };
        assert_eq!(handler("uri replace /{vars.tenant}/ /"), Handler::Rewrite(replace));
        let regexp = Rewrite::PathRegexp { find: "a+".into(), replace: template("b") };
        assert_eq!(handler("uri path_regexp a+ b"), Handler::Rewrite(regexp));
    }

    #[test]
    fn changes_of_the_query() {
        let template = Template::text;
        let Handler::Rewrite(Rewrite::Query(changes)) = handler("uri query {\na 1\n+b 2\n-c\nd>e\n* x+ y\n}")
        else {
            panic!()
        };
        let value = template("1");
        assert_eq!(changes[0], QueryChange::Set { key: template("a"), value });
        assert_eq!(changes[1], QueryChange::Add { key: template("b"), value: template("2") });
        assert_eq!(changes[2], QueryChange::Delete { key: template("c") });
        assert_eq!(changes[3], QueryChange::Rename { from: template("d"), to: template("e") });
        let replace = QueryChange::Replace { key: template("*"), find: "x+".into(), replace: template("y") };
        assert_eq!(changes[4], replace);
        assert!(matches!(handler("uri query -a"), Handler::Rewrite(Rewrite::Query(one)) if one.len() == 1));
    }

    #[test]
    fn mistakes() {
        let found = errors(
            "uri strip_prefx /a\nuri query\nuri replace a\nuri\nuri path_regexp ( x\nuri query -a b\nuri query a {\nb\n}",
        );
        assert_eq!(found[0], "unknown change of a URI `strip_prefx`; did you mean `strip_prefix`?");
        assert_eq!(found.len(), 7, "{found:?}");
    }
}
