//! `uri [MATCHER] strip_prefix | strip_suffix TEXT` and `uri [MATCHER] replace TEXT REPLACEMENT`: changes a part of
//! the path that later handlers see.
//!
//! ```caddyfile
//! uri /api/* strip_prefix /api
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Rewrite, Template};
use crate::problems::{not_built_as, unknown};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("uri", parse);

const SYNTAX: &str = "uri [MATCHER] strip_prefix PREFIX | strip_suffix SUFFIX | replace TEXT REPLACEMENT";

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    if let Some(change @ ("path_regexp" | "query")) = call.args.first().map(|token| token.text.as_str()) {
        return Err(not_built_as(&call.args[0], &format!("uri {change}")));
    }
    let args = call.some(SYNTAX)?;
    let rewrite = match (args[0].text.as_str(), &args[1..]) {
        ("strip_prefix", [prefix]) => Rewrite::StripPrefix(Template::parse(&prefix.text)),
        ("strip_suffix", [suffix]) => Rewrite::StripSuffix(Template::parse(&suffix.text)),
        ("replace", [find, replace]) => {
            Rewrite::Replace { find: find.text.clone(), replace: Template::parse(&replace.text) }
        }
        ("replace", [_, _, limit]) => return Err(not_built_as(limit, "uri replace … LIMIT")),
        ("strip_prefix" | "strip_suffix", _) => return Err(call.wrong_arguments(2, SYNTAX)),
        ("replace", _) => return Err(call.wrong_arguments(3, SYNTAX)),
        _ => return Err(unknown(&args[0], "change of a URI", &["strip_prefix", "strip_suffix", "replace"])),
    };
    Ok(Handler::Rewrite(rewrite))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, Rewrite, Template};

    #[test]
    fn three_changes() {
        let template = Template::text;
        assert_eq!(handler("uri strip_prefix /a"), Handler::Rewrite(Rewrite::StripPrefix(template("/a"))));
        assert_eq!(handler("uri /x strip_suffix a"), Handler::Rewrite(Rewrite::StripSuffix(template("a"))));
        let replace = Rewrite::Replace { find: "a".into(), replace: template("b") };
        assert_eq!(handler("uri replace a b"), Handler::Rewrite(replace));
    }

    #[test]
    fn mistakes() {
        let found = errors("uri strip_prefx /a\nuri query -a\nuri replace a\nuri");
        assert_eq!(found[0], "unknown change of a URI `strip_prefx`; did you mean `strip_prefix`?");
        assert_eq!(found[1], "`uri query` is not built yet in Regent");
        assert_eq!(found.len(), 4);
    }
}
