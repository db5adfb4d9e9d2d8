//! Access: addresses, passwords, rates.

use super::site::Site;
use super::tree::Directive;
use crate::writer::{Writer, word};

pub(super) const TAKES: &[&str] =
    &["allow", "auth_basic", "auth_basic_user_file", "deny", "limit_req", "limit_req_status", "satisfy"];

/// Writes the rules of a server, or of a location, whose path is `paths`.
pub(super) fn write(site: &mut Site<'_>, lines: &[Directive], paths: Option<&str>, writer: &mut Writer) {
    addresses(site, lines, writer);
    passwords(site, lines, writer);
    limits(site, lines, paths.unwrap_or("clients"), writer);
}

/// nginx takes the first line that fits; all but a list of `allow` before `deny all`, and the other way round, is closed.
fn addresses(site: &mut Site<'_>, lines: &[Directive], writer: &mut Writer) {
    let rules: Vec<&Directive> =
        lines.iter().filter(|line| matches!(line.name.as_str(), "allow" | "deny")).collect();
    let Some((last, before)) = rules.split_last() else { return };
    let is_unix = |line: &&&Directive| line.arg(0) == "unix:";
    let ranges = |kind: &str| -> Option<Vec<String>> {
        let same =
            before.iter().filter(|line| !is_unix(line)).all(|line| line.name == kind && line.arg(0) != "all");
        same.then(|| before.iter().filter(|line| !is_unix(line)).map(|line| line.arg(0).to_owned()).collect())
    };
    match (last.name.as_str(), last.arg(0)) {
        ("deny", "all") => match ranges("allow") {
            Some(allowed) if allowed.is_empty() => writer.line("error 403"),
            Some(allowed) => {
                let name = site.matcher("strangers");
                writer.line(&format!("{name} not remote_ip {}", allowed.join(" ")));
                writer.line(&format!("error {name} 403"));
            }
            None => close(site, last, writer),
        },
        ("allow", "all") if before.is_empty() => {}
        ("allow", "all") => match ranges("deny") {
            Some(denied) => refuse(site, &denied, writer),
            None => close(site, last, writer),
        },
        ("deny", _) if before.iter().all(|line| line.name == "deny") => {
            let denied: Vec<String> = rules.iter().map(|line| line.arg(0).to_owned()).collect();
            refuse(site, &denied, writer);
        }
        _ => close(site, last, writer),
    }
}

fn refuse(site: &mut Site<'_>, denied: &[String], writer: &mut Writer) {
    let name = site.matcher("refused");
    writer.line(&format!("{name} remote_ip {}", denied.join(" ")));
    writer.line(&format!("error {name} 403"));
}

fn close(site: &mut Site<'_>, line: &Directive, writer: &mut Writer) {
    site.leave_out(
        line,
        "these rules depend on their order: all are refused until you write it with `remote_ip`",
        writer,
    );
    writer.line("error 403");
}

/// The hashes of `htpasswd` are others than those of `basic_auth`, so nobody gets in until there are some.
fn passwords(site: &mut Site<'_>, lines: &[Directive], writer: &mut Writer) {
    let Some(line) = lines.iter().find(|line| line.name == "auth_basic" && line.arg(0) != "off") else {
        return;
    };
    let why = "nobody gets in until `basic_auth { USER HASH }` takes the place of the next line; `regent hash-password` makes a hash";
    site.leave_out(line, why, writer);
    writer.line("error 403");
}

fn limits(site: &mut Site<'_>, lines: &[Directive], of: &str, writer: &mut Writer) {
    for line in lines.iter().filter(|line| line.name == "limit_req") {
        let option = |name: &str| line.args.iter().find_map(|arg| arg.strip_prefix(name));
        let zone = option("zone=").unwrap_or_default();
        let rate = site
            .around
            .zones
            .get(zone)
            .and_then(|zone| zone.args.iter().find_map(|arg| arg.strip_prefix("rate=")));
        let rate = rate.and_then(|rate| {
            rate.strip_suffix("r/s").map(|n| (n, 1)).or(rate.strip_suffix("r/m").map(|n| (n, 60)))
        });
        let Some((events, window)) =
            rate.and_then(|(events, seconds)| Some((events.parse::<u32>().ok()?, seconds)))
        else {
            site.leave_out(line, "its zone is not in these files", writer);
            continue;
        };
        // A burst is what may come at once, beside what the rate lets through.
        let burst = option("burst=").and_then(|burst| burst.parse::<u32>().ok()).unwrap_or(0);
        let (events, window) =
            if window == 1 { (events * 10 + burst, "10s") } else { (events + burst, "1m") };
        let name = if zone.is_empty() { of } else { zone };
        writer.block("rate_limit", |writer| {
            writer.block(&format!("zone {}", word(name)), |writer| {
                writer.line("key {client_ip}");
                writer.line(&format!("events {events}"));
                writer.line(&format!("window {window}"));
            });
        });
    }
}
