//! `log_append [MATCHER] NAME VALUE`: adds a field to what the site's access logs have of a request.
//!
//! The value is looked at when the line is written, and can have `{http.response.header.FIELD}`; with `<` before the name, as the
//! directive is carried out.
//!
//! ```caddyfile
//! log_append tenant {header.X-Tenant}
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, LogAppendTime, Template};
use regent_caddyfile::{Error, Line};

const NAME: &str = "log_append";

pub(super) const DIRECTIVE: Directive = super::handler(NAME, parse);

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let [name, value] = call.exactly("log_append [MATCHER] NAME VALUE")?;
    let (name, when) = match name.text.strip_prefix('<') {
        Some(name) => (name, LogAppendTime::Early),
        None => (name.text.as_str(), LogAppendTime::Late),
    };
    Ok(Handler::LogAppend { name: name.to_owned(), value: Template::parse(&value.text), when })
}

/// Whether the value of this line is looked at when there is a response.
pub(super) fn is_of_response(line: &Line) -> bool {
    let name = line.args.iter().rev().nth(1);
    line.name.text == NAME && name.is_some_and(|name| !name.text.starts_with('<'))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, LogAppendTime, Template};

    #[test]
    fn fields() {
        let field = |name: &str, when| Handler::LogAppend {
            name: name.into(),
            value: Template::parse("{path}"),
            when,
        };
        assert_eq!(handler("log_append /a x {path}"), field("x", LogAppendTime::Late));
        assert_eq!(handler("log_append <x {path}"), field("x", LogAppendTime::Early));
        assert_eq!(errors("log_append x").len(), 1);
    }

    #[test]
    fn a_field_of_the_response_is_known_when_the_line_is_written() {
        assert_eq!(errors("log_append x {http.response.header.X-A}").len(), 0);
        assert_eq!(errors("log_append /a x {http.response.header.X-A}").len(), 0);
        assert_eq!(errors("log_append <x {http.response.header.X-A}").len(), 1);
    }
}
