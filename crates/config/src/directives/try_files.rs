//! `try_files FILE…`: rewrites to the first of the files that exists; without any, nothing happens.
//!
//! A file that ends in `/` is a directory; `=404` ends in that error; `FILE?QUERY` sets the query as well. It takes no
//! matcher: put it into a `handle` block for that. In its block, `policy POLICY` chooses otherwise, as `try_policy` of the
//! condition `file`.
//!
//! ```caddyfile
//! try_files {path} {path}/ /index.php?{query}&p={path}
//! ```

use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::conditions::try_policy;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{FileMatcher, Handler, Rewrite, Template, TryPolicy};
use crate::problems::{error, unknown_option};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = Directive {
    name: "try_files",
    sorts_as: "try_files",
    matchers: Matchers::None,
    parse: Parse::Handler(parse),
};

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let Some(first) = call.args.first() else { return Err(call.wrong_arguments(1, "try_files FILE…")) };
    if first.text == "*" || first.text.starts_with('@') {
        return Err(error(
            first,
            "`try_files` takes no matcher; put it into a `handle` block with that matcher",
        ));
    }
    let mut policy = TryPolicy::default();
    for option in call.options() {
        let result = match option.name() {
            "policy" => option.one("policy POLICY").and_then(try_policy).map(|found| policy = found),
            _ => Err(unknown_option(option.name, "try_files", &["policy"], &[])),
        };
        cx.check(result);
    }
    let try_files = call.args.iter().map(|token| Template::parse(&token.text)).collect();
    let files = FileMatcher { try_files, policy, ..FileMatcher::default() };
    Ok(Handler::Rewrite(Rewrite::TryFiles(files)))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, Rewrite, Template};

    #[test]
    fn files_may_have_queries() {
        let Handler::Rewrite(Rewrite::TryFiles(files)) = handler("try_files {path} /index.php?p={path}")
        else {
            panic!()
        };
        assert_eq!(files.try_files, [Template::parse("{path}"), Template::parse("/index.php?p={path}")]);
    }

    #[test]
    fn mistakes() {
        let found = errors("try_files @a x\ntry_files x {\npolicy largest\n}\ntry_files");
        assert!(found[0].contains("takes no matcher"));
        assert!(found[1].starts_with("unknown policy `largest`"), "{found:?}");
        assert_eq!(found.len(), 3);
    }
}
