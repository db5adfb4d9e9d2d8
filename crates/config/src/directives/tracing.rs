//! `tracing [MATCHER] { … }`: traces the requests behind it, with [OpenTelemetry](tracing.md).
//!
//! | option | meaning |
//! |---|---|
//! | `span NAME` | the name of a request's span, with placeholders; without it, the method and the route, as OpenTelemetry has it |
//! | `span_attributes { NAME VALUE … }` | further facts about it; placeholders are looked up when the response is there |
//!
//! A request that comes with `traceparent` goes on with that trace; PHP and upstreams get the field with the number of the span that
//! they belong under. Access logs have `traceID` and `spanID`, placeholders `{http.vars.trace_id}` and `{http.vars.span_id}`, and PHP
//! `$_SERVER['REGENT_TRACE_ID']`. Where spans are sent to, and which, say the environment variables `OTEL_…`.
//!
//! Of several that a request comes by, the last `span` counts; there is one span of it.
//!
//! ```caddyfile
//! tracing {
//!     span shop
//!     span_attributes {
//!         tenant {header.X-Tenant}
//!     }
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Template, Tracing};
use crate::problems::unknown_option;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("tracing", parse);

const SYNTAX: &str = "tracing [MATCHER] { span NAME }";
const ATTRIBUTES: &str = "span_attributes { NAME VALUE … }";
/// Of one directive.
const MOST_ATTRIBUTES: usize = 128;

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments(SYNTAX)?;
    cx.tracing.get_or_insert_with(|| call.name.clone());
    let mut tracing = Tracing::default();
    for option in call.options() {
        let result = match option.name() {
            "span" => option.one("span NAME").map(|name| tracing.span = Some(Template::parse(&name.text))),
            "span_attributes" => attributes(cx, &option, &mut tracing.attributes),
            _ => Err(unknown_option(option.name, "tracing", &["span", "span_attributes"], &[])),
        };
        cx.check(result);
    }
    Ok(Handler::Tracing(tracing))
}

fn attributes(
    cx: &mut Context<'_>,
    option: &Call<'_>,
    attributes: &mut Vec<(String, Template)>,
) -> Result<(), Error> {
    option.no_arguments(ATTRIBUTES)?;
    for pair in option.options() {
        let value = pair.one(ATTRIBUTES);
        let Some(value) = cx.check(value) else { continue };
        // As in Caddy, the last of a name counts.
        attributes.retain(|(name, _)| name != pair.name());
        attributes.push((pair.name().to_owned(), Template::parse(&value.text)));
    }
    if attributes.len() > MOST_ATTRIBUTES {
        let message = format!("a span can have {MOST_ATTRIBUTES} attributes at most");
        return Err(crate::problems::error(option.name, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, load, routes};
    use crate::model::{Handler, Template, Tracing};

    #[test]
    fn names_and_attributes() {
        let expected = Tracing {
            span: Some(Template::parse("shop {method}")),
            attributes: vec![("b".into(), Template::text("2")), ("a".into(), Template::parse("{path}"))],
        };
        let text = "tracing {\nspan \"shop {method}\"\nspan_attributes {\na 1\nb 2\na {path}\n}\n}";
        assert_eq!(handler(text), Handler::Tracing(expected));
        assert_eq!(handler("tracing /x"), Handler::Tracing(Tracing::default()));
    }

    #[test]
    fn it_comes_before_all_others() {
        let routes = routes("vars a 1\nrespond 1\ntracing");
        assert!(matches!(routes[0].handler, Handler::Tracing(_)));
    }

    #[test]
    fn mistakes() {
        let found =
            errors("tracing x\ntracing {\nspan\nspna x\nspan_attributes {\na\n}\nspan_attributes x\n}");
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found.iter().any(|message| message.contains("did you mean `span`?")), "{found:?}");
    }

    #[test]
    fn where_traces_go_is_read_only_where_there_are_some() {
        let traces = |text: &str| load(text).unwrap().config.global.traces;
        assert_eq!(traces(":80 {\nrespond 1\n}"), None);
        assert!(traces(":80 {\nhandle /a {\ntracing\n}\n}").is_some());
    }
}
