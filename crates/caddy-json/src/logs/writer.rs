//! `writer` of logs.

use crate::document::Node;
use crate::reader::{Fields, Kind, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

/// `output …`.
pub(super) fn read(r: &mut Reader, node: &Node) -> Option<Line> {
    let fields = r.object(node);
    let Some(kind) = fields.take("output").and_then(|node| r.text(node)) else {
        r.error(node, "a writer needs its name: \"output\": \"file\"");
        return None;
    };
    let (args, lines) = match kind.text.as_str() {
        "file" => (fields.take("filename").and_then(|node| r.text(node)), file(r, &fields)),
        "net" => {
            let address = fields.take("address").and_then(|node| r.text(node));
            let table =
                [("dial_timeout", "dial_timeout", Kind::Duration), ("soft_start", "soft_start", Kind::Flag)];
            (address, r.options(&fields, &table))
        }
        _ => (None, Vec::new()),
    };
    fields.finish(r, &format!("the writer `{}`", kind.text));
    let args = std::iter::once(kind).chain(args).collect();
    Some(match lines.is_empty() {
        true => line(node, "output", args),
        false => block(node, "output", args, lines),
    })
}

fn file(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = r.options(
        fields,
        &[
            ("mode", "mode", Kind::Scalar),
            ("dir_mode", "dir_mode", Kind::Text),
            ("roll_interval", "roll_interval", Kind::Duration),
            ("roll_at", "roll_at", Kind::Texts),
            ("roll_compression", "roll_compression", Kind::Text),
            ("roll_local_time", "roll_local_time", Kind::Flag),
            ("roll_keep", "roll_keep", Kind::Number),
            ("backup_time_format", "backup_time_format", Kind::Text),
        ],
    );
    if let Some(node) = fields.take("roll").filter(|node| !r.bool(node)) {
        lines.push(line(node, "roll_disabled", Vec::new()));
    }
    if let Some(node) = fields.take("roll_gzip").filter(|node| !r.bool(node)) {
        lines.push(line(node, "roll_uncompressed", Vec::new()));
    }
    let with_unit = |number: Token, unit: &str| Token { text: format!("{}{unit}", number.text), ..number };
    // 0 is how it is when nothing is said.
    for (key, name, unit) in [("roll_size_mb", "roll_size", "MiB"), ("roll_keep_days", "roll_keep_for", "d")]
    {
        let number = fields.take(key).and_then(|node| r.number(node)).filter(|number| number.text != "0");
        lines.extend(number.map(|number| line(fields.node, name, vec![with_unit(number, unit)])));
    }
    if let Some(node) = fields.take("roll_minutes") {
        let minutes: Vec<_> = r
            .list(node)
            .iter()
            .filter_map(|item| r.number(item))
            .map(|number| word(node, &number.text))
            .collect();
        lines.push(line(node, "roll_minutes", minutes));
    }
    lines
}
