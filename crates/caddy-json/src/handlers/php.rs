//! The handlers of FrankenPHP: `php`, and `mercure` that comes with it.

use super::directive;
use super::others::pairs;
use crate::document::{Node, Value};
use crate::reader::{Fields, Kind, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

pub(super) fn php(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(
        fields,
        &[
            ("root", "root", Kind::Text),
            ("split_path", "split_path", Kind::Texts),
            ("resolve_root_symlink", "resolve_root_symlink", Kind::Scalar),
        ],
    );
    if let Some(node) = fields.take("env") {
        lines.push(block(node, "env", Vec::new(), pairs(r, node)));
    }
    for item in fields.take("workers").map(|node| r.list(node)).unwrap_or_default() {
        lines.push(worker(r, item));
    }
    lines.extend(fields.take("hot_reload").map(|node| hot_reload(r, node)));
    // FrankenPHP tells its blocks apart by it; Regent numbers their workers itself.
    fields.take("server_idx");
    lines.append(&mut r.options(fields, &[("name", "name", Kind::Text)]));
    directive(fields, "php", Vec::new(), lines)
}

/// A worker of a block or of the app.
pub(crate) fn worker(r: &mut Reader, node: &Node) -> Line {
    let fields = r.object(node);
    let mut lines = r.options(
        &fields,
        &[
            ("file_name", "file", Kind::Text),
            ("name", "name", Kind::Text),
            ("match_path", "match", Kind::Texts),
            ("max_consecutive_failures", "max_consecutive_failures", Kind::Number),
        ],
    );
    // 0 is how FrankenPHP has it that nothing was said.
    for key in ["num", "max_threads"] {
        if let Some(number) =
            fields.take(key).and_then(|node| r.number(node)).filter(|number| number.text != "0")
        {
            lines.push(line(node, key, vec![number]));
        }
    }
    if let Some(node) = fields.take("env") {
        lines.push(block(node, "env", Vec::new(), pairs(r, node)));
    }
    for pattern in fields.take("watch").map(|node| r.texts(node)).unwrap_or_default() {
        lines.push(line(node, "watch", vec![pattern]));
    }
    fields.finish(r, "a worker");
    block(node, "worker", Vec::new(), lines)
}

fn hot_reload(r: &mut Reader, node: &Node) -> Line {
    let fields = r.object(node);
    let mut lines = r.options(&fields, &[("topic", "topic", Kind::Text), ("watch", "watch", Kind::Texts)]);
    lines.retain(|line| line.name.text != "topic" || line.args.iter().any(|topic| !topic.text.is_empty()));
    fields.finish(r, "`hot_reload`");
    block(node, "hot_reload", Vec::new(), lines)
}

pub(super) fn mercure(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(
        fields,
        &[
            ("anonymous", "anonymous", Kind::Flag),
            ("subscriptions", "subscriptions", Kind::Flag),
            ("write_timeout", "write_timeout", Kind::Duration),
            ("dispatch_timeout", "dispatch_timeout", Kind::Duration),
            ("heartbeat", "heartbeat", Kind::Duration),
            ("publisher_jwks_url", "publisher_jwks_url", Kind::Text),
            ("subscriber_jwks_url", "subscriber_jwks_url", Kind::Text),
            ("publish_origins", "publish_origins", Kind::Texts),
            ("cors_origins", "cors_origins", Kind::Texts),
            ("transport_url", "transport_url", Kind::Text),
            ("cookie_name", "cookie_name", Kind::Text),
            ("demo", "demo", Kind::Flag),
            ("ui", "ui", Kind::Flag),
            ("protocol_version_compatibility", "protocol_version_compatibility", Kind::Number),
            ("lru_shard_size", "topic_selector_cache", Kind::Number),
            ("subscriber_list_cache_size", "subscriber_list_cache_size", Kind::Number),
        ],
    );
    lines.retain(|line| line.args.iter().any(|word| !word.text.is_empty()) || line.args.is_empty());
    for key in ["publisher_jwt", "subscriber_jwt"] {
        lines.extend(fields.take(key).and_then(|node| jwt(r, node, key)));
    }
    lines.extend(fields.take("transport").and_then(|node| transport(r, node)));
    directive(fields, "mercure", Vec::new(), lines)
}

/// `{}` is none, which is how Mercure writes it.
fn jwt(r: &mut Reader, node: &Node, name: &str) -> Option<Line> {
    let fields = r.object(node);
    let key = fields.take("key").and_then(|node| r.text(node)).filter(|key| !key.text.is_empty());
    let algorithm = fields.take("alg").and_then(|node| r.text(node)).filter(|name| !name.text.is_empty());
    fields.finish(r, "a key of tokens");
    Some(line(node, name, std::iter::once(key?).chain(algorithm).collect()))
}

fn transport(r: &mut Reader, node: &Node) -> Option<Line> {
    let fields = r.object(node);
    let name = fields.take("name").and_then(|node| r.text(node));
    let Some(name) = name else {
        r.error(node, "a transport needs its name: \"name\": \"bolt\"");
        return None;
    };
    let lines = module_options(r, &fields);
    Some(match name.text.as_str() {
        "local" => line(node, "transport", vec![name]),
        _ => block(node, "transport", vec![name], lines),
    })
}

/// The options of a module whose keys are those of its Caddyfile.
pub(crate) fn module_options(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for member in fields.rest() {
        let args: Vec<Token> = match &member.value.value {
            Value::List(_) => r.texts(&member.value),
            Value::Bool(true) => vec![word(&member.value, "true")],
            // Nothing is said by a flag that is off, nor by a text that is empty.
            Value::Bool(false) => continue,
            Value::Text(text) if text.is_empty() => continue,
            _ => r.scalar(&member.value).into_iter().collect(),
        };
        lines.push(line(&member.value, &member.name, args));
    }
    lines
}
