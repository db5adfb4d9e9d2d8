//! Regent's own directives, options and conditions, for which Caddy has no JSON: the words of a Caddyfile.
//!
//! `{"handler": "regent", "directive": ["deadline", "3s"]}`, `"apps": {"regent": {"options": [{"line": ["spool", …]}]}}` and,
//! among conditions, `"regent": [{"line": […]}]`. A `block` beside the words has further lines.

use crate::document::Node;
use crate::reader::{Fields, Reader};
use regent_caddyfile::{Line, Token};

/// Lines of a list of `{"line": […], "block": […]}`.
pub(crate) fn lines(r: &mut Reader, list: &Node) -> Vec<Line> {
    let mut lines = Vec::new();
    for item in r.list(list) {
        let fields = r.object(item);
        lines.extend(line(r, &fields, "line"));
        fields.finish(r, "a line");
    }
    lines
}

/// The line whose words the key has, with its block.
pub(crate) fn line(r: &mut Reader, fields: &Fields<'_>, key: &'static str) -> Option<Line> {
    let words = fields.take(key).map(|node| words(r, node)).unwrap_or_default();
    let block = fields.take("block").map(|node| lines(r, node));
    let mut words = words.into_iter();
    let Some(name) = words.next() else {
        r.error(
            fields.node,
            format_args!(
                "`{key}` has to have the words of a line of a Caddyfile, such as [\"deadline\", \"3s\"]"
            ),
        );
        return None;
    };
    Some(Line { name, args: words.collect(), block })
}

/// Words as a Caddyfile has them: with its placeholders, and matchers where it has them.
fn words(r: &mut Reader, node: &Node) -> Vec<Token> {
    r.texts(node).into_iter().map(|token| Token { quoted: false, ..token }).collect()
}
