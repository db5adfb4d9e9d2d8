//! `handle` of routes: each handler becomes the directive that Caddy makes it from.

mod files;
mod headers;
pub(crate) mod others;
pub(crate) mod php;
mod plain;
pub(crate) mod proxy;
mod rate_limit;
mod rewrite;

use crate::document::Node;
use crate::own;
use crate::reader::{Fields, Reader, block, line, word};
use crate::routes;
use regent_caddyfile::{Line, Token};

/// The directives that a list of handlers becomes.
pub(crate) fn lines(r: &mut Reader, list: &Node) -> Vec<Line> {
    let mut lines = Vec::new();
    for handler in r.list(list) {
        lines.append(&mut of_handler(r, handler));
    }
    lines
}

fn of_handler(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let Some(name) = fields.take("handler").and_then(|node| r.text(node)) else {
        r.error(node, "a handler needs its name: \"handler\": \"NAME\"");
        return Vec::new();
    };
    let own = fields.take("regent").map(|node| own::lines(r, node));
    let Some(mut lines) = known(r, &fields, &name.text) else {
        r.error(node, unknown(&name.text));
        return Vec::new();
    };
    // Options of the directive that Caddy does not have.
    if let (Some(own), Some(last)) = (own, lines.last_mut()) {
        last.block.get_or_insert_default().extend(own);
    }
    fields.finish(r, &format!("the handler `{}`", name.text));
    lines
}

/// `None`: there is no handler of this name.
fn known(r: &mut Reader, fields: &Fields<'_>, name: &str) -> Option<Vec<Line>> {
    Some(match name {
        "static_response" => plain::static_response(r, fields),
        "error" => plain::error(r, fields),
        "vars" => plain::vars(r, fields),
        "headers" => headers::headers(r, fields),
        "rewrite" => rewrite::rewrite(r, fields),
        "subroute" => plain::subroute(r, fields),
        "invoke" => plain::invoke(r, fields),
        "file_server" => files::file_server(r, fields),
        "encode" => files::encode(r, fields),
        "templates" => files::templates(r, fields),
        "reverse_proxy" => proxy::reverse_proxy(r, fields),
        "php" => php::php(r, fields),
        "mercure" => php::mercure(r, fields),
        "request_body" => others::request_body(r, fields),
        "timeouts" => others::timeouts(r, fields),
        "map" => others::map(r, fields),
        "authentication" => others::authentication(r, fields),
        "rate_limit" => rate_limit::rate_limit(r, fields),
        "intercept" => others::intercept(r, fields),
        "log_append" => others::log_append(r, fields),
        "copy_response" => others::copy_response(r, fields),
        "copy_response_headers" => others::copy_response_headers(r, fields),
        "tracing" => others::tracing(r, fields),
        "metrics" => others::metrics(r, fields),
        // The Caddyfile says what becomes of these, whatever their options are.
        "push" | "vulcain" | "acme_server" => others::without_effect(fields, name),
        "regent" => own::line(r, fields, "directive").into_iter().collect(),
        _ => return None,
    })
}

fn unknown(name: &str) -> String {
    format!(
        "`{name}` is no handler that Regent has; where a third party's module for Caddy has it, leave it out, or have it done in front of Regent"
    )
}

/// A directive with a block, for all requests: a word in its place could be taken for a matcher.
fn directive(fields: &Fields<'_>, name: &str, mut args: Vec<Token>, lines: Vec<Line>) -> Vec<Line> {
    args.insert(0, word(fields.node, "*"));
    match lines.is_empty() {
        true => vec![line(fields.node, name, args)],
        false => vec![block(fields.node, name, args, lines)],
    }
}
