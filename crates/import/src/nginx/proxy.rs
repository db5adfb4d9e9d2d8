//! `proxy_pass`.

use super::site::Site;
use super::tree::Directive;
use super::values::{duration, placeholders};
use crate::writer::{Writer, word};

/// Fields that a proxy of Regent sends by itself, or that are of one connection.
const OWN_FIELDS: &[&str] =
    &["connection", "host", "upgrade", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

pub(super) const TAKES: &[&str] = &[
    "proxy_buffer_size",
    "proxy_buffering",
    "proxy_buffers",
    "proxy_busy_buffers_size",
    "proxy_cache_bypass",
    "proxy_connect_timeout",
    "proxy_hide_header",
    "proxy_http_version",
    "proxy_max_temp_file_size",
    "proxy_next_upstream",
    "proxy_pass",
    "proxy_pass_header",
    "proxy_pass_request_headers",
    "proxy_read_timeout",
    "proxy_redirect",
    "proxy_request_buffering",
    "proxy_send_timeout",
    "proxy_set_header",
    "proxy_ssl_server_name",
    "proxy_ssl_verify",
];

/// The path behind the host of `proxy_pass`, which takes the place of the location's: `None`: there is none.
pub(super) fn path(line: &Directive) -> Option<&str> {
    let (_, rest) = line.arg(0).split_once("://")?;
    let at = if let Some(socket) = rest.strip_prefix("unix:") {
        5 + socket.find(':')? + 1
    } else {
        rest.find('/')?
    };
    Some(&rest[at..])
}

pub(super) fn write(site: &mut Site<'_>, line: &Directive, lines: &[Directive], writer: &mut Writer) {
    let Some((upstreams, policy)) = upstreams(site, line) else {
        return site.leave_out(line, "its address depends on the request", writer);
    };
    for spare in spares(site, line) {
        site.leave_out(
            spare,
            "there are no spare upstreams: name it among the others, or not at all",
            writer,
        );
    }
    let mut options = Vec::new();
    options.extend(policy.map(|policy| format!("lb_policy {policy}")));
    for field in lines.iter().filter(|line| line.name == "proxy_set_header") {
        let name = field.arg(0);
        let is_own = OWN_FIELDS.contains(&name.to_ascii_lowercase().as_str());
        let keeps_host = !name.eq_ignore_ascii_case("host")
            || matches!(field.arg(1), "$host" | "$http_host" | "$host:$server_port");
        if is_own && keeps_host {
            continue;
        }
        match placeholders(field.arg(1), None) {
            Ok(value) if value.is_empty() => options.push(format!("header_up -{name}")),
            Ok(value) => options.push(format!("header_up {name} {}", word(&value))),
            Err(variable) => site.leave_out(field, &format!("there is no word for {variable}"), writer),
        }
    }
    let named = |name: &str| lines.iter().find(|line| line.name == name);
    if named("proxy_buffering").is_some_and(|line| line.arg(0) == "off") {
        options.push("flush_interval -1".to_owned());
    }
    let time = |name: &str, option: &str| Some(format!("{option} {}", duration(named(name)?.arg(0))?));
    let times: Vec<String> = [
        time("proxy_connect_timeout", "dial_timeout"),
        time("proxy_read_timeout", "read_timeout"),
        named("proxy_ssl_verify")
            .filter(|line| line.arg(0) == "off")
            .map(|_| "tls_insecure_skip_verify".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let head = format!("reverse_proxy {}", upstreams.join(" "));
    if options.is_empty() && times.is_empty() {
        return writer.line(&head);
    }
    writer.block(&head, |writer| {
        options.iter().for_each(|line| writer.line(line));
        if !times.is_empty() {
            writer.block("transport http", |writer| times.iter().for_each(|line| writer.line(line)));
        }
    });
}

fn spares<'a>(site: &Site<'a>, line: &Directive) -> Vec<&'a Directive> {
    let host =
        line.arg(0).split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    let servers = site.around.upstreams.get(host).into_iter().flat_map(|upstream| upstream.body());
    servers.filter(|server| server.args.iter().any(|arg| arg == "backup")).collect()
}

/// The upstreams, and the policy by which one is chosen.
fn upstreams(site: &Site<'_>, line: &Directive) -> Option<(Vec<String>, Option<String>)> {
    let (scheme, rest) = line.arg(0).split_once("://")?;
    if rest.contains('$') {
        return None;
    }
    if let Some(socket) = rest.strip_prefix("unix:") {
        return Some((vec![format!("unix/{}", socket.split(':').next()?)], None));
    }
    let host = rest.split('/').next()?;
    let Some(upstream) = site.around.upstreams.get(host) else {
        let address = if scheme == "https" { format!("https://{host}") } else { with_port(host) };
        return Some((vec![address], None));
    };
    let servers = upstream.body().iter().filter(|line| {
        line.name == "server" && !line.args.iter().any(|arg| arg == "down" || arg == "backup")
    });
    let mut addresses = Vec::new();
    let mut weights = Vec::new();
    for server in servers {
        let address = match server.arg(0).strip_prefix("unix:") {
            Some(socket) => format!("unix/{socket}"),
            None if scheme == "https" => format!("https://{}", server.arg(0)),
            None => with_port(server.arg(0)),
        };
        addresses.push(address);
        weights.push(server.args.iter().find_map(|arg| arg.strip_prefix("weight=")).unwrap_or("1"));
    }
    let has = |name: &str| upstream.body().iter().any(|line| line.name == name);
    let policy = if has("least_conn") {
        Some("least_conn".to_owned())
    } else if has("ip_hash") {
        Some("ip_hash".to_owned())
    } else if weights.iter().any(|weight| *weight != "1") {
        Some(format!("weighted_round_robin {}", weights.join(" ")))
    } else {
        (addresses.len() > 1).then(|| "round_robin".to_owned())
    };
    (!addresses.is_empty()).then_some((addresses, policy))
}

fn with_port(host: &str) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { host.to_owned() } else { format!("{host}:80") }
}
