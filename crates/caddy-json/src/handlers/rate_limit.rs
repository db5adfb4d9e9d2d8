//! `rate_limit`, of mholt/caddy-ratelimit.

use super::directive;
use crate::document::Member;
use crate::matchers;
use crate::reader::{Fields, Kind, Reader, line, word};
use regent_caddyfile::Line;

pub(super) fn rate_limit(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(zones) = fields.take("rate_limits") {
        r.object(zones);
        for member in zones.members().iter().filter(|member| member.name != "@id") {
            lines.push(zone(r, member));
        }
    }
    lines.extend(r.options(
        fields,
        &[
            ("jitter", "jitter", Kind::Number),
            ("sweep_interval", "sweep_interval", Kind::Duration),
            ("log_key", "log_key", Kind::Flag),
            ("disable_metrics", "disable_metrics", Kind::Flag),
        ],
    ));
    // The Caddyfile says what to do instead.
    for name in ["distributed", "storage"] {
        lines.extend(fields.take(name).map(|node| line(node, name, Vec::new())));
    }
    directive(fields, "rate_limit", Vec::new(), lines)
}

fn zone(r: &mut Reader, member: &Member) -> Line {
    let node = &member.value;
    let fields = r.object(node);
    let mut lines = fields.take("match").map(|sets| matchers::sets(r, sets)).unwrap_or_default();
    lines.extend(r.options(
        &fields,
        &[
            ("key", "key", Kind::Text),
            ("window", "window", Kind::Duration),
            ("max_events", "events", Kind::Number),
            ("ipv4_prefix", "ipv4_prefix", Kind::Number),
            ("ipv6_prefix", "ipv6_prefix", Kind::Number),
        ],
    ));
    fields.finish(r, "a zone of `rate_limit`");
    Line { name: word(node, "zone"), args: vec![word(node, &member.name)], block: Some(lines) }
}
