//! A directory as HTML, and as JSON.

use super::{Entry, View};
use crate::log::visible;
use crate::paths::url_path;
use regent_config::{ListingOrder, ListingSort};
use serde::Serialize;
use std::fmt::Write;
use time::OffsetDateTime;
use time::macros::format_description;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color-scheme:light dark}\
                     table{width:100%;border-collapse:collapse}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #8884}\
                     td:nth-child(2),th:nth-child(2){text-align:right}td:nth-child(n+2){white-space:nowrap}a{overflow-wrap:anywhere}";

/// As Caddy writes it (fileserver/browsetplcontext.go).
#[derive(Serialize)]
struct Item {
    name: String,
    size: u64,
    url: String,
    mod_time: String,
    mode: u32,
    is_dir: bool,
    is_symlink: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    symlink_path: Option<String>,
}

/// Go's `fs.ModeDir`.
const MODE_DIRECTORY: u32 = 1 << 31;

pub(super) fn json(entries: &[Entry]) -> Vec<u8> {
    let item = |entry: &Entry| Item {
        name: name(entry),
        size: entry.size,
        url: url(entry),
        mod_time: time(entry.modified).replacen(' ', "T", 1) + "Z",
        mode: entry.mode | if entry.is_directory { MODE_DIRECTORY } else { 0 },
        is_dir: entry.is_directory,
        is_symlink: entry.is_link,
        symlink_path: target(entry),
    };
    // Strings and numbers can be written.
    serde_json::to_vec(&entries.iter().map(item).collect::<Vec<_>>()).unwrap_or_default()
}

/// As a template has it.
pub(super) fn template_item(entry: &Entry) -> regent_templates::Item {
    regent_templates::Item {
        name: name(entry),
        size: entry.size,
        url: url(entry),
        modified: entry.modified,
        mode: entry.mode,
        is_directory: entry.is_directory,
        is_link: entry.is_link,
        target: target(entry).unwrap_or_default(),
    }
}

/// With a slash behind that of a directory.
pub(super) fn name(entry: &Entry) -> String {
    format!("{}{}", String::from_utf8_lossy(&entry.name), slash(entry))
}

/// `all`: how many there are, of which these are a part. `is_whole`: whether the directory has no more.
pub(super) fn html(title: &str, entries: &[Entry], view: View, all: usize, is_whole: bool) -> Vec<u8> {
    let title = escaped(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<table>\n<thead><tr>"
    );
    let first = if view.sort == ListingSort::NameDirFirst { "namedirfirst" } else { "name" };
    for (name, sort) in [("Name", first), ("Size", "size"), ("Modified (UTC)", "time")] {
        let _ =
            write!(page, "<th><a href=\"?sort={sort}&amp;order={}\">{name}</a></th>", next_order(view, sort));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    if title != "/" {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for entry in entries {
        let size = if entry.is_directory { "\u{2014}".to_owned() } else { size(entry.size) };
        let (name, time) = (escaped(&String::from_utf8_lossy(&entry.name)), time(entry.modified));
        let (url, slash) = (escaped(&url(entry)), slash(entry));
        let target = target(entry).map_or(String::new(), |target| format!(" \u{2192} {}", escaped(&target)));
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "<tr><td><a href=\"{url}\">{name}{slash}</a>{target}</td><td>{size}</td><td>{time}</td></tr>"
        );
    }
    page.push_str("</tbody>\n</table>\n");
    let shown = entries.len();
    let _ = match (shown == all, is_whole) {
        (true, true) => writeln!(page, "<p>{all} entries</p>"),
        (false, true) => writeln!(page, "<p>{shown} of {all} entries</p>"),
        (_, false) => writeln!(page, "<p>{shown} entries; there are too many to list all of them</p>"),
    };
    page.push_str("</body>\n</html>\n");
    page.into_bytes()
}

/// A second click turns the order round.
fn next_order(view: View, sort: &str) -> &'static str {
    let is_ascending = view.order == ListingOrder::Ascending && ListingSort::named(sort) == Some(view.sort);
    if is_ascending { "desc" } else { "asc" }
}

fn slash(entry: &Entry) -> &'static str {
    if entry.is_directory { "/" } else { "" }
}

fn target(entry: &Entry) -> Option<String> {
    entry.target.as_deref().map(|target| String::from_utf8_lossy(target).into_owned())
}

/// Relative; what begins with `./` is no scheme, whatever colons are in it.
fn url(entry: &Entry) -> String {
    let mut url = b"./".to_vec();
    url_path::encode_path(&entry.name, &mut url);
    format!("{}{}", String::from_utf8_lossy(&url), slash(entry))
}

/// For HTML, in an attribute or not. Characters that would change how what surrounds them is read are shown as such.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() || visible::misleads(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let power = (bytes.ilog2() / 10).min(6);
    format!("{:.1} {}", bytes as f64 / f64::from(2_f32.powi(10 * power as i32)), units[power as usize - 1])
}

/// In UTC.
fn time(seconds: i64) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    let time = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    time.format(format).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_name_ends_its_place_in_the_page(text in any::<String>()) {
            let shown = escaped(&text);
            prop_assert!(!shown.contains(['<', '>', '"', '\'']) && !shown.chars().any(char::is_control));
        }
    }

    #[test]
    fn sizes_and_times_are_for_people() {
        for (bytes, expected) in
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_572_864, "1.5 MiB"), (u64::MAX, "16.0 EiB")]
        {
            assert_eq!(size(bytes), expected);
        }
        assert_eq!(time(0), "1970-01-01 00:00:00");
        assert_eq!(time(i64::MAX), "1970-01-01 00:00:00");
    }
}
