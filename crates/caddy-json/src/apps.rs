//! The document: what stands beside the apps, and the apps.

use crate::document::{Node, Value};
use crate::handlers::others::pairs;
use crate::handlers::php::{module_options, worker};
use crate::logs::Logs;
use crate::own;
use crate::reader::{Fields, Kind, Reader, block, line, word};
use crate::servers::{self, Around, Ports};
use crate::tls::{self, Tls};
use regent_caddyfile::{File, Line, Token};

/// Apps of Caddy itself that Regent does not have.
const OF_CADDY: &[&str] = &["caddy.filesystems", "events"];

pub(crate) fn file(r: &mut Reader, root: &Node) -> File {
    let mut file = File::default();
    let fields = r.object(root);
    if let Some(node) = fields.take("admin") {
        file.global.append(&mut admin(r, node));
    }
    if let Some(node) = fields.take("storage") {
        file.global.extend(storage(r, node));
    }
    let logs = Logs::of(r, fields.take("logging"));
    file.global.append(&mut logs.options(r));
    if let Some(node) = fields.take("apps") {
        apps(r, node, &logs, &mut file);
    }
    fields.finish(r, "the document");
    file
}

fn admin(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = Vec::new();
    let is_off = fields.take("disabled").is_some_and(|node| r.bool(node));
    let listen = fields.take("listen").and_then(|node| r.text(node)).filter(|listen| !listen.text.is_empty());
    let options = r.options(
        &fields,
        &[("enforce_origin", "enforce_origin", Kind::Flag), ("origins", "origins", Kind::Texts)],
    );
    if let Some(config) = fields.take("config") {
        let own = r.object(config);
        if own.take("persist").is_some_and(|node| !r.bool(node)) {
            lines.push(line(config, "persist_config", vec![word(config, "off")]));
        }
        for key in ["load", "load_delay"] {
            if let Some(node) = own.take(key) {
                r.error(node, "Regent fetches no configuration from elsewhere; have it sent to `POST /load`");
            }
        }
        own.finish(r, "`config`");
    }
    for key in ["identity", "remote"] {
        if let Some(node) = fields.take(key) {
            r.error(
                node,
                format_args!(
                    "`{key}` is not built yet in Regent: the admin API is for this machine; leave it out"
                ),
            );
        }
    }
    fields.finish(r, "`admin`");
    if is_off {
        lines.push(line(node, "admin", vec![word(node, "off")]));
    } else if listen.is_some() || !options.is_empty() {
        lines.push(block(node, "admin", listen.into_iter().collect(), options));
    }
    lines
}

fn storage(r: &mut Reader, node: &Node) -> Option<Line> {
    let fields = r.object(node);
    let Some(module) = fields.take("module").and_then(|node| r.text(node)) else {
        r.error(node, "a storage needs its name: \"module\": \"file_system\"");
        return None;
    };
    let mut args = vec![module];
    args.extend(fields.take("client_type").and_then(|node| r.text(node)));
    let lines = match args[0].text.as_str() {
        "file_system" => r.options(&fields, &[("root", "root", Kind::Text)]),
        "redis" => module_options(r, &fields),
        // That it is not built is the Caddyfile's to say.
        _ => {
            fields.rest();
            Vec::new()
        }
    };
    fields.finish(r, "`storage`");
    Some(block(node, "storage", args, lines))
}

fn apps(r: &mut Reader, node: &Node, logs: &Logs<'_>, file: &mut File) {
    let fields = r.object(node);
    if let Some(node) = fields.take("regent") {
        let own = r.object(node);
        let lines = own.take("options").map(|node| own::lines(r, node)).unwrap_or_default();
        own.finish(r, "the app `regent`");
        file.global.extend(lines);
    }
    if let Some(node) = fields.take("frankenphp") {
        file.global.push(frankenphp(r, node));
    }
    if let Some(node) = fields.take("pki") {
        file.global.append(&mut tls::pki(r, node));
    }
    let (http, tls) = (fields.take("http"), fields.take("tls"));
    file.global.append(&mut tls::options(r, tls, http.and_then(|http| http.get("servers"))));
    if let Some(node) = http {
        self::http(r, node, &Tls::of(tls), logs, file);
    }
    for app in fields.rest() {
        match OF_CADDY.contains(&app.name.as_str()) {
            true => r.error(&app.value, format_args!("the app `{}` is not built yet in Regent; leave it out", app.name)),
            false => r.error(&app.value, format_args!("`{}` is no app of Caddy's own: it is of a third party's module, and Regent has none like it; leave it out", app.name)),
        }
    }
}

fn http(r: &mut Reader, node: &Node, tls: &Tls<'_>, logs: &Logs<'_>, file: &mut File) {
    let fields = r.object(node);
    let options: Vec<Line> = r.options(
        &fields,
        &[
            ("http_port", "http_port", Kind::Number),
            ("https_port", "https_port", Kind::Number),
            ("grace_period", "grace_period", Kind::Duration),
            ("shutdown_delay", "shutdown_delay", Kind::Duration),
        ],
    );
    file.global.extend(options);
    if let Some(node) = fields.take("metrics") {
        let own = r.object(node);
        let table = [
            ("per_host", "per_host", Kind::Flag),
            ("observe_catchall_hosts", "observe_catchall_hosts", Kind::Flag),
            ("otlp", "otlp", Kind::Flag),
        ];
        let options = r.options(&own, &table);
        own.finish(r, "`metrics`");
        file.global.push(block(node, "metrics", Vec::new(), options));
    }
    let around = Around { ports: Ports::of(&fields), tls, logs };
    if let Some(node) = fields.take("servers") {
        let all = servers::read(r, node, &around, file);
        servers::finish_https(r, &all, file);
    }
    fields.finish(r, "the app `http`");
}

fn frankenphp(r: &mut Reader, node: &Node) -> Line {
    let fields = r.object(node);
    let mut lines = r.options(
        &fields,
        &[
            ("max_wait_time", "max_wait_time", Kind::Duration),
            ("max_idle_time", "max_idle_time", Kind::Duration),
        ],
    );
    for key in ["num_threads", "max_threads", "max_requests"] {
        lines.extend(fields.take(key).and_then(|node| count(r, node, key)));
    }
    if let Some(node) = fields.take("php_ini") {
        lines.push(block(node, "php_ini", Vec::new(), pairs(r, node)));
    }
    for item in fields.take("workers").map(|node| r.list(node)).unwrap_or_default() {
        lines.push(worker(r, item));
    }
    lines.append(&mut own_options(r, &fields));
    fields.finish(r, "the app `frankenphp`");
    block(node, "frankenphp", Vec::new(), lines)
}

/// 0 is how FrankenPHP has it that nothing was said, and less than 0 its `auto`.
fn count(r: &mut Reader, node: &Node, name: &str) -> Option<Line> {
    let number = r.number(node)?;
    let number = match number.text.as_str() {
        "0" => return None,
        "-1" if name == "max_threads" => Token { text: "auto".to_owned(), ..number },
        _ => number,
    };
    Some(line(node, name, vec![number]))
}

/// Regent's own options of `frankenphp`.
fn own_options(r: &mut Reader, fields: &Fields<'_>) -> Vec<Line> {
    fields
        .take("regent")
        .filter(|node| matches!(node.value, Value::List(_)))
        .map(|node| own::lines(r, node))
        .unwrap_or_default()
}
