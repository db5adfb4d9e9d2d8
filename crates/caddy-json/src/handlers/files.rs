//! `file_server`, `encode` and `templates`.

use super::directive;
use super::headers::response_conditions;
use crate::document::{Node, Value};
use crate::reader::{Fields, Kind, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

pub(super) fn file_server(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(
        fields,
        &[
            ("fs", "fs", Kind::Text),
            ("root", "root", Kind::Text),
            ("hide", "hide", Kind::Texts),
            ("pass_thru", "pass_thru", Kind::Flag),
            ("status_code", "status", Kind::Scalar),
            ("etag_file_extensions", "etag_file_extensions", Kind::Texts),
        ],
    );
    if let Some(node) = fields.take("index_names") {
        let names = r.texts(node);
        let names = if names.is_empty() { vec![word(node, "off")] } else { names };
        lines.push(line(node, "index", names));
    }
    if let Some(node) = fields.take("canonical_uris").filter(|node| !r.bool(node)) {
        lines.push(line(node, "disable_canonical_uris", Vec::new()));
    }
    lines.extend(fields.take("browse").map(|node| browse(r, node)));
    lines.extend(precompressed(r, fields));
    directive(fields, "file_server", Vec::new(), lines)
}

fn browse(r: &mut Reader, node: &Node) -> Line {
    let fields = r.object(node);
    let template = fields.take("template_file").and_then(|node| r.text(node));
    let lines = r.options(
        &fields,
        &[
            ("reveal_symlinks", "reveal_symlinks", Kind::Flag),
            ("sort", "sort", Kind::Texts),
            ("file_limit", "file_limit", Kind::Number),
            ("plain_time_format", "plain_time_format", Kind::Text),
        ],
    );
    fields.finish(r, "`browse`");
    block(node, "browse", template.into_iter().collect(), lines)
}

/// The encodings in the order of preference; those that it does not name come after it.
fn precompressed(r: &mut Reader, fields: &Fields<'_>) -> Option<Line> {
    let order = fields.take("precompressed_order").map(|node| r.texts(node)).unwrap_or_default();
    let node = fields.take("precompressed")?;
    r.object(node);
    let has = |token: &Token| node.get(&token.text).is_some();
    let mut names: Vec<_> = order.into_iter().filter(has).collect();
    for member in node.members() {
        if !names.iter().any(|known| known.text == member.name) {
            names.push(word(&member.value, &member.name));
        }
    }
    (!names.is_empty()).then(|| line(node, "precompressed", names))
}

pub(super) fn encode(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let prefer = fields.take("prefer").map(|node| r.texts(node)).unwrap_or_default();
    let encodings = fields.take("encodings");
    if let Some(node) = encodings {
        r.object(node);
    }
    let members = encodings.map(Node::members).unwrap_or_default();
    let place = |name: &str| prefer.iter().position(|known| known.text == name).unwrap_or(usize::MAX);
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by_key(|member| place(&member.name));
    let mut lines: Vec<Line> =
        sorted.into_iter().map(|member| encoding(r, &member.name, &member.value)).collect();
    lines.append(&mut r.options(fields, &[("minimum_length", "minimum_length", Kind::Number)]));
    if let Some(node) = fields.take("match") {
        lines.push(block(node, "match", Vec::new(), response_conditions(r, node)));
    }
    if members.is_empty() {
        r.error(fields.node, "`encode` needs `encodings`, such as {\"zstd\": {}, \"gzip\": {}}");
    }
    directive(fields, "encode", Vec::new(), lines)
}

fn encoding(r: &mut Reader, name: &str, node: &Node) -> Line {
    let fields = r.object(node);
    let level = fields.take("level").and_then(|node| r.scalar(node));
    let mut lines = Vec::new();
    if name == "zstd" && fields.take("checksum").is_some_and(|node| !r.bool(node)) {
        lines.extend(level.map(|level| line(node, "level", vec![level])));
        lines.push(line(node, "disable_checksum", Vec::new()));
        fields.finish(r, "an encoding");
        return block(node, name, Vec::new(), lines);
    }
    fields.finish(r, "an encoding");
    line(node, name, level.into_iter().collect())
}

pub(super) fn templates(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(
        fields,
        &[
            ("file_root", "root", Kind::Text),
            ("mime_types", "mime", Kind::Texts),
            ("delimiters", "between", Kind::Texts),
        ],
    );
    // Caddy keeps its modules with functions under a key of this name.
    if let Some(node) = fields.take("match").filter(|node| matches!(node.value, Value::Object(_))) {
        lines.push(line(node, "extensions", Vec::new()));
    }
    directive(fields, "templates", Vec::new(), lines)
}
