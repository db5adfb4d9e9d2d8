//! `redir [MATCHER] TO [CODE]`: redirects the client.
//!
//! The code is a 3xx number, a placeholder, `temporary` (302, the default) or `permanent` (301).
//!
//! ```caddyfile
//! redir /old/* /new{uri} permanent
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, HeaderOp, HeaderOpKind, Route, Template};
use crate::problems::error;
use regent_caddyfile::{Error, Token};

pub(super) const DIRECTIVE: Directive = super::handler("redir", parse);

const SYNTAX: &str = "redir [MATCHER] TO [permanent | temporary | CODE]";

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.without_block(SYNTAX)?;
    if let [to, code] = call.args
        && code.text == "html"
    {
        return Ok(page(&to.text));
    }
    let (to, status) = match call.args {
        [to] => (to, Template::text("302")),
        [to, code] => (to, status(code)?),
        [] => {
            let message =
                format!("`redir` has no target (a first argument with `/` is a matcher); write: {SYNTAX}");
            return Err(error(call.name, message));
        }
        _ => return Err(call.wrong_arguments(2, SYNTAX)),
    };
    Ok(Handler::Redirect { to: Template::parse(&to.text), status })
}

/// A page that leads on, for clients that run scripts or read HTML: Caddy's, httpcaddyfile/builtins.go.
fn page(to: &str) -> Handler {
    let to = escaped(to);
    let body = format!(
        "<!DOCTYPE html>\n<html>\n\t<head>\n\t\t<title>Redirecting...</title>\n\t\t\
         <script>window.location.replace(\"{to}\");</script>\n\t\t\
         <meta http-equiv=\"refresh\" content=\"0; URL='{to}'\">\n\t</head>\n\t\
         <body>Redirecting to <a href=\"{to}\">{to}</a>...</body>\n</html>\n"
    );
    let kind = HeaderOp {
        kind: HeaderOpKind::Set,
        name: Template::text("Content-Type"),
        value: Template::text("text/html; charset=utf-8"),
        deferred: false,
    };
    let respond =
        Handler::Respond { status: Template::text("200"), body: Template::parse(&body), close: false };
    let route = |handler| Route { group: None, matchers: Vec::new(), handler };
    Handler::Subroute(vec![route(Handler::Header(vec![kind])), route(respond)])
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            _ => out.push(c),
        }
    }
    out
}

fn status(token: &Token) -> Result<Template, Error> {
    let number = token.text.parse::<u16>().is_ok_and(|code| (300..400).contains(&code) || code == 401);
    let template = Template::parse(&token.text);
    match token.text.as_str() {
        "permanent" => Ok(Template::text("301")),
        "temporary" => Ok(Template::text("302")),
        // 401 as in Caddy, where it makes a client log in by a `Location`.
        _ if number || template.as_text().is_none() => Ok(template),
        other => Err(error(
            token,
            format!(
                "`{other}` is no code for a redirect; write `permanent`, `temporary` or a number from 300 to 399"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, Template};

    #[test]
    fn codes() {
        let redirect = |to: &str, status: &str| Handler::Redirect {
            to: Template::parse(to),
            status: Template::parse(status),
        };
        assert_eq!(handler("redir https://x{uri}"), redirect("https://x{uri}", "302"));
        assert_eq!(handler("redir /a /b permanent"), redirect("/b", "301"));
        assert_eq!(handler("redir * /b 308"), redirect("/b", "308"));
        assert_eq!(handler("redir x {vars.code}"), redirect("x", "{vars.code}"));
    }

    #[test]
    fn a_page_that_leads_on() {
        let Handler::Subroute(routes) = handler("redir * /<x> html") else { panic!() };
        let Handler::Respond { body, .. } = &routes[1].handler else { panic!() };
        assert!(body.as_text().unwrap().contains("<a href=\"/&lt;x&gt;\">"));
    }

    #[test]
    fn mistakes() {
        let found = errors("redir /a\nredir a b 200\nredir a 600\nredir a 200");
        assert!(found[0].contains("has no target"), "{found:?}");
        assert_eq!(found.len(), 4);
    }
}
