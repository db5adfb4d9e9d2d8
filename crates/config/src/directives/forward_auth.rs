//! `forward_auth [MATCHER] UPSTREAM { uri URI; copy_headers FIELD…; OPTION… }`: asks another server whether a request may go
//! on, as in Caddy.
//!
//! The server is asked with `GET URI` and the header of the request, with its method and target in `X-Forwarded-Method` and
//! `X-Forwarded-Uri`. If it responds with 2xx, the request goes on, with the fields of `copy_headers` from that response
//! (`A>B` renames); what the client has sent of them is removed in any case. Every other response is the client's. All
//! options of [reverse_proxy](#reverse_proxy) can stand beside these.
//!
//! ```caddyfile
//! forward_auth 127.0.0.1:9091 {
//!     uri /api/verify
//!     copy_headers Remote-User Remote-Groups
//! }
//! ```

use super::{Directive, header, reverse_proxy};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{
    Handler, HeaderOp, HeaderOpKind, ResponseAction, ResponseMatcher, ResponseRule, Rewrite, Route, Template,
};
use crate::problems::error;
use regent_caddyfile::{Error, Line, Token};
use reverse_proxy::{Preset, fields::Written};

pub(super) const DIRECTIVE: Directive = super::handler("forward_auth", parse);

fn parse(cx: &mut Context<'_>, scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let (mut uri, mut copied, mut rest) = (None, Vec::new(), Vec::new());
    for line in call.block.unwrap_or_default() {
        let option = Call::new(line);
        match option.name() {
            "uri" => {
                let token = option.one("uri URI")?;
                if uri.replace(Template::parse(&token.text)).is_some() {
                    return Err(error(option.name, "there is a `uri` already"));
                }
            }
            "copy_headers" => copied.extend(copied_fields(&option)?),
            _ => rest.push(line.clone()),
        }
    }
    let Some(uri) = uri else {
        return Err(error(call.name, "`forward_auth` needs the option `uri`; write: uri /api/verify"));
    };
    let preset = Preset {
        transport: reverse_proxy::transport::Written::default(),
        fields: Written {
            header_up: vec![
                set("X-Forwarded-Method", "{http.request.method}"),
                set("X-Forwarded-Uri", "{http.request.uri}"),
            ],
            header_down: Vec::new(),
            rewrites: vec![Rewrite::Method(Template::text("GET")), Rewrite::To(uri)],
        },
        responses: vec![ResponseRule {
            matcher: Some(ResponseMatcher { statuses: vec![(200, 299)], fields: Vec::new() }),
            action: ResponseAction::Routes(vec![Route {
                group: None,
                matchers: Vec::new(),
                handler: Handler::CopyToRequest(copied),
            }]),
        }],
    };
    let lines: Vec<Line> = rest;
    reverse_proxy::parse_with(cx, scope, &Call { block: Some(&lines), ..*call }, preset)
}

fn set(name: &str, value: &str) -> HeaderOp {
    HeaderOp {
        kind: HeaderOpKind::Set,
        name: Template::text(name),
        value: Template::parse(value),
        deferred: false,
    }
}

/// Arguments, or the lines of a block.
fn copied_fields(option: &Call<'_>) -> Result<Vec<(String, String)>, Error> {
    let lines = option.options().map(|line| line.name);
    let fields: Vec<_> = option.args.iter().chain(lines).map(field).collect::<Result<_, _>>()?;
    if fields.is_empty() { Err(option.wrong_arguments(1, "copy_headers FIELD…")) } else { Ok(fields) }
}

fn field(token: &Token) -> Result<(String, String), Error> {
    let (from, to) = token.text.split_once('>').unwrap_or((&token.text, &token.text));
    match header::is_name(from) && header::is_name(to) {
        true => Ok((from.to_owned(), to.to_owned())),
        false => Err(error(token, format!("`{}` is no name of a header field, nor `FROM>TO`", token.text))),
    }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, errors};
    use crate::model::{Handler, ResponseAction, Rewrite, Template};

    #[test]
    fn it_is_a_reverse_proxy_with_a_question() {
        let text =
            "forward_auth /admin/* a:1 {\nuri /verify?x={path}\ncopy_headers A B>C\nheader_up X-D 1\n}";
        let config = config(&format!(":80 {{\n{text}\n}}"));
        let proxy = &config.proxies[0];
        let rewrites =
            [Rewrite::Method(Template::text("GET")), Rewrite::To(Template::parse("/verify?x={path}"))];
        assert_eq!(proxy.rewrites, rewrites);
        assert_eq!(proxy.header_up.len(), 3);
        let ResponseAction::Routes(routes) = &proxy.responses[0].action else { panic!("{proxy:?}") };
        let pairs = [("A", "A"), ("B", "C")].map(|(from, to)| (from.to_owned(), to.to_owned())).to_vec();
        assert_eq!(routes[0].handler, Handler::CopyToRequest(pairs));
        assert_eq!(config.servers[0].sites[0].routes[0].matchers.len(), 1);
    }

    #[test]
    fn mistakes() {
        assert!(errors("forward_auth a")[0].contains("needs the option `uri`"));
        assert!(errors("forward_auth a {\nuri /a\nuri /b\n}")[0].contains("already"));
        assert!(errors("forward_auth a {\nuri /a\ncopy_headers é\n}")[0].contains("no name"));
        assert!(errors("forward_auth {\nuri /a\n}")[0].contains("needs an upstream"));
    }
}
