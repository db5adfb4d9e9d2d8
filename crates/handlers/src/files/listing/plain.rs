//! A directory as text, in the columns that Go's text/tabwriter makes for Caddy.

use super::Entry;
use super::page::name;
use regent_templates::{binary_bytes, utc_in_layout};
use std::time::{Duration, UNIX_EPOCH};

/// Columns end where tabs do.
const TAB: usize = 8;

pub(super) fn text(entries: &[Entry], time_format: &str) -> Vec<u8> {
    let mut rows = vec![
        ["Name".to_owned(), "Size".to_owned(), "Modified".to_owned()],
        ["----".to_owned(), "----".to_owned(), "--------".to_owned()],
    ];
    rows.extend(entries.iter().map(|entry| {
        let since = Duration::from_secs(u64::try_from(entry.modified).unwrap_or(0));
        [name(entry), binary_bytes(entry.size), utc_in_layout(UNIX_EPOCH + since, time_format)]
    }));
    let widths = [width(&rows, 0), width(&rows, 1)];
    let mut out = String::new();
    for [name, size, time] in &rows {
        for (cell, width) in [name, size].into_iter().zip(widths) {
            out.push_str(cell);
            out.push_str(&"\t".repeat((width - cell.chars().count()).div_ceil(TAB)));
        }
        out.push_str(time);
        out.push('\n');
    }
    out.into_bytes()
}

/// Of a column, in characters: more than its longest cell, and full tabs.
fn width(rows: &[[String; 3]], column: usize) -> usize {
    let longest = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    (longest + 1).next_multiple_of(TAB)
}
