//! `templates [MATCHER] { … }`: executes responses as Go templates, whoever makes them, with Caddy's functions. More about
//! it: [templates](templates.md).
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `mime TYPE…` | text/html text/plain text/markdown | responses of these types are templates |
//! | `between OPEN CLOSE` | `{{` `}}` | what stands around actions |
//! | `root PATH` | the site's root | where `include` and the like find files |
//!
//! ```caddyfile
//! templates /pages/* {
//!     mime text/html
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Template, Templates};
use crate::problems::{error, unknown_option};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("templates", parse);

const OPTIONS: &[&str] = &["between", "mime", "root"];

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments("templates [MATCHER] { OPTION… }")?;
    let mut templates = Templates {
        types: ["text/html", "text/plain", "text/markdown"].map(str::to_owned).into(),
        between: ("{{".into(), "}}".into()),
        root: None,
    };
    for option in call.options() {
        let result = apply(&option, &mut templates);
        cx.check(result);
    }
    Ok(Handler::Templates(templates))
}

fn apply(option: &Call<'_>, templates: &mut Templates) -> Result<(), Error> {
    match option.name() {
        "mime" => {
            let types = option.some("mime TYPE…")?;
            templates.types = types.iter().map(|token| token.text.to_ascii_lowercase()).collect();
        }
        "between" => {
            let [open, close] = option.exactly("between OPEN CLOSE")?;
            if open.text.is_empty() || close.text.is_empty() {
                return Err(error(option.name, "`between` needs two marks that are not empty"));
            }
            templates.between = (open.text.clone(), close.text.clone());
        }
        "root" => templates.root = Some(Template::parse(&option.one("root PATH")?.text)),
        "extensions" => {
            let message = "Regent has no modules with functions for templates; take `extensions` out, and \
                           {{maybe \"NAME\"}} is empty";
            return Err(error(option.name, message));
        }
        _ => return Err(unknown_option(option.name, "templates", OPTIONS, &[])),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, Template};

    #[test]
    fn options() {
        let Handler::Templates(plain) = handler("templates") else { panic!() };
        assert_eq!(plain.types, ["text/html", "text/plain", "text/markdown"]);
        assert_eq!((plain.between, plain.root), (("{{".into(), "}}".into()), None));
        let text = "templates /a {\nmime text/css\nbetween [[ ]]\nroot /x\n}";
        let Handler::Templates(all) = handler(text) else { panic!() };
        assert_eq!(all.types, ["text/css"]);
        assert_eq!((all.between, all.root), (("[[".into(), "]]".into()), Some(Template::text("/x"))));
    }

    #[test]
    fn mistakes() {
        let found = errors("templates x {\n}\ntemplates {\nmime\nbetween x\nextensions {\n}\nroots /x\n}");
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found.iter().any(|message| message.contains("take `extensions` out")), "{found:?}");
    }
}
