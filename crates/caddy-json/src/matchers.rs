//! `match` of routes: conditions, which become those of named matchers.

use crate::document::{Member, Node, Value};
use crate::own;
use crate::reader::{Kind, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

/// What Caddy's handling of errors asks for.
const ERROR_STATUS: &str = "{http.error.status_code}";

/// A line `match { CONDITION… }` for each set of conditions.
pub(crate) fn sets(r: &mut Reader, list: &Node) -> Vec<Line> {
    let mut lines = Vec::new();
    for set in r.list(list) {
        // What an expression is called, groups of its regular expressions are called.
        let name = set.get("expression").and_then(|expression| expression.get("name"));
        let name = name.and_then(|name| r.text(name));
        lines.push(block(set, "match", name.into_iter().collect(), self::set(r, set)));
    }
    lines
}

/// The conditions of one set, which all must hold.
pub(crate) fn set(r: &mut Reader, node: &Node) -> Vec<Line> {
    // `null` is a condition without anything, not one that is not there.
    if node.members().is_empty() {
        r.object(node);
    }
    let members = node.members().iter().filter(|member| member.name != "@id");
    let lines = members.map(|member| condition(r, member));
    lines.collect::<Vec<_>>().into_iter().flatten().collect()
}

fn condition(r: &mut Reader, member: &Member) -> Vec<Line> {
    let (name, node) = (member.name.as_str(), &member.value);
    match name {
        "path" | "host" | "method" => texts(r, node, name),
        "remote_ip" | "client_ip" => ranges(r, node, name),
        "protocol" => r.text(node).map(|text| line(node, name, vec![text])).into_iter().collect(),
        "path_regexp" => regexp(r, node).map(|args| line(node, name, args)).into_iter().collect(),
        "header" => header(r, node),
        "header_regexp" | "vars_regexp" => named_regexps(r, node, name),
        "query" => query(r, node),
        "file" => vec![file(r, node)],
        "not" => not(r, node),
        "vars" => vars(r, node),
        "expression" => expression(r, node),
        "regent" => own::lines(r, node),
        // Their Caddyfile's spelling says what becomes of them.
        "tls" | "url_pattern" => vec![line(node, name, Vec::new())],
        _ => {
            r.error(node, format_args!("`{name}` is no condition that Regent has; Caddy has it by a third party's module, or not at all"));
            Vec::new()
        }
    }
}

fn texts(r: &mut Reader, node: &Node, name: &str) -> Vec<Line> {
    let texts = r.texts(node);
    if texts.is_empty() && matches!(node.value, Value::List(_)) {
        r.error(node, format_args!("`{name}` without a value matches nothing; leave the route out"));
    }
    vec![line(node, name, texts)]
}

fn ranges(r: &mut Reader, node: &Node, name: &str) -> Vec<Line> {
    let fields = r.object(node);
    let ranges = fields.take("ranges").map(|node| r.texts(node)).unwrap_or_default();
    fields.finish(r, name);
    vec![line(node, name, ranges)]
}

/// `NAME PATTERN`, or `PATTERN` alone.
fn regexp(r: &mut Reader, node: &Node) -> Option<Vec<Token>> {
    let fields = r.object(node);
    let name = fields.take("name").and_then(|node| r.text(node)).filter(|name| !name.text.is_empty());
    let pattern = fields.take("pattern").and_then(|node| r.text(node));
    fields.finish(r, "a regular expression");
    let Some(pattern) = pattern else {
        r.error(node, "a regular expression needs a `pattern`");
        return None;
    };
    Some(name.into_iter().chain([pattern]).collect())
}

fn header(r: &mut Reader, node: &Node) -> Vec<Line> {
    r.object(node);
    let mut lines = Vec::new();
    for member in node.members() {
        let field = |sign: &str| word(&member.value, &format!("{sign}{}", member.name));
        let values = r.texts(&member.value);
        if member.value.is_null() {
            lines.push(line(&member.value, "header", vec![field("!")]));
        } else if values.is_empty() {
            lines.push(line(&member.value, "header", vec![field("")]));
        }
        lines.extend(values.into_iter().map(|value| line(&member.value, "header", vec![field(""), value])));
    }
    lines
}

fn named_regexps(r: &mut Reader, node: &Node, name: &str) -> Vec<Line> {
    r.object(node);
    let mut lines = Vec::new();
    for member in node.members() {
        let Some(mut args) = regexp(r, &member.value) else { continue };
        args.insert(args.len() - 1, word(&member.value, &member.name));
        lines.push(line(&member.value, name, args));
    }
    lines
}

fn query(r: &mut Reader, node: &Node) -> Vec<Line> {
    r.object(node);
    let mut pairs = Vec::new();
    for member in node.members() {
        let values = r.texts(&member.value);
        if values.is_empty() {
            r.error(&member.value, "a condition on a parameter needs a value, or \"*\" for any");
        }
        pairs.extend(
            values
                .into_iter()
                .map(|value| Token { text: format!("{}={}", member.name, value.text), ..value }),
        );
    }
    if node.members().is_empty() {
        r.error(node, "Regent has no condition that a request have no query; use an expression: {http.request.uri.query} == \"\"");
    }
    vec![line(node, "query", pairs)]
}

fn file(r: &mut Reader, node: &Node) -> Line {
    let fields = r.object(node);
    let lines = r.options(
        &fields,
        &[
            ("fs", "fs", Kind::Text),
            ("root", "root", Kind::Text),
            ("try_files", "try_files", Kind::Texts),
            ("try_policy", "try_policy", Kind::Text),
            ("split_path", "split_path", Kind::Texts),
        ],
    );
    fields.finish(r, "`file`");
    block(node, "file", Vec::new(), lines)
}

/// None of the sets may match.
fn not(r: &mut Reader, node: &Node) -> Vec<Line> {
    r.list(node).iter().map(|set| block(set, "not", Vec::new(), self::set(r, set))).collect()
}

fn vars(r: &mut Reader, node: &Node) -> Vec<Line> {
    r.object(node);
    let mut lines = Vec::new();
    for member in node.members() {
        let mut args = vec![word(&member.value, &member.name)];
        for value in r.list(&member.value) {
            args.extend(r.scalar(value));
        }
        lines.push(line(&member.value, "vars", args));
    }
    lines
}

fn expression(r: &mut Reader, node: &Node) -> Vec<Line> {
    let text = match &node.value {
        Value::Text(_) => r.text(node),
        _ => {
            let fields = r.object(node);
            let text = fields.take("expr").and_then(|node| r.text(node));
            fields.take("name");
            fields.finish(r, "`expression`");
            text
        }
    };
    let Some(text) = text else { return Vec::new() };
    match statuses(&text.text) {
        Some(statuses) => {
            vec![line(node, "error status", statuses.iter().map(|status| word(node, status)).collect())]
        }
        None => vec![line(node, "expression", vec![text])],
    }
}

/// The statuses of a `handle_errors` of a Caddyfile, as Caddy writes them for it (httpcaddyfile/builtins.go,
/// parseHandleErrors). `None`: it is something else.
fn statuses(expression: &str) -> Option<Vec<String>> {
    let mut statuses = Vec::new();
    for part in expression.split(" || ") {
        let rest = part.strip_prefix(ERROR_STATUS)?;
        if let Some(list) = rest.strip_prefix(" in [").and_then(|rest| rest.strip_suffix(']')) {
            statuses.extend(list.split(", ").map(str::to_owned));
        } else {
            let first = rest.strip_prefix(" >= ")?.get(..1)?;
            let range = format!(" >= {first}00 && {ERROR_STATUS} <= {first}99");
            statuses.push(Some(format!("{first}xx")).filter(|_| rest == range)?);
        }
    }
    let is_status =
        |status: &String| status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_alphanumeric());
    statuses.iter().all(is_status).then_some(statuses)
}
