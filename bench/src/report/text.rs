//! The tables and the notes of a page for the terminal.

use super::page::{Alignment, Column, Page, Section, Table};
use super::wrap::{cells, wrap};

/// Columns of the terminal that a line may fill.
const WIDTH: usize = 120;
const BETWEEN: usize = 2;

/// All sections that have tables or notes. A table wider than the terminal has its headings wrapped, and its cells if
/// that is not enough; nothing is left out.
pub fn page(page: &Page) -> String {
    let told = page.sections.iter().filter(|section| !section.tables.is_empty() || !section.notes.is_empty());
    told.map(section).collect::<Vec<_>>().join("\n")
}

fn section(section: &Section) -> String {
    let tables: String = section.tables.iter().map(|part| format!("\n{}", table(part))).collect();
    let notes: String = section.notes.iter().map(|text| note(text)).collect();
    let gap = if notes.is_empty() { "" } else { "\n" };
    format!("{}\n{tables}{gap}{notes}", section.heading)
}

fn note(text: &str) -> String {
    let lines = wrap(text, (WIDTH - 4) as f64, cells);
    format!("  - {}\n", lines.join("\n    "))
}

/// With an empty line before each new value of the first column, where rows share one.
fn table(table: &Table) -> String {
    let widths = widths(table);
    let headings: Vec<(&Column, &str)> = table.columns.iter().map(|c| (c, c.heading.as_str())).collect();
    let caption = if table.caption.is_empty() { String::new() } else { format!("{}\n", table.caption) };
    let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    let mut text =
        format!("{caption}{}{}\n", row(&headings, &widths, Upright::Bottom), rule.join(&" ".repeat(BETWEEN)));
    for index in 0..table.rows.len() {
        if index > 0 && table.starts_group(index) {
            text.push('\n');
        }
        text += &row(&table.cells(index).collect::<Vec<_>>(), &widths, Upright::Top);
    }
    text
}

/// Where a cell of fewer lines than its neighbours stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upright {
    Top,
    Bottom,
}

fn row(cells: &[(&Column, &str)], widths: &[usize], upright: Upright) -> String {
    let wrapped: Vec<Vec<String>> =
        cells.iter().zip(widths).map(|((_, text), width)| lines(text, *width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    let at = |lines: &[String], line: usize| {
        let skipped = if upright == Upright::Bottom { height - lines.len() } else { 0 };
        line.checked_sub(skipped).and_then(|index| lines.get(index)).cloned().unwrap_or_default()
    };
    let mut text = String::new();
    for line in 0..height {
        let parts = cells.iter().zip(&wrapped).zip(widths);
        let parts: Vec<String> = parts
            .map(|(((column, _), lines), width)| pad(&at(lines, line), *width, column.alignment))
            .collect();
        text += parts.join(&" ".repeat(BETWEEN)).trim_end();
        text.push('\n');
    }
    text
}

fn lines(text: &str, width: usize) -> Vec<String> {
    wrap(text, width as f64, cells)
}

fn pad(text: &str, width: usize, alignment: Alignment) -> String {
    match alignment {
        Alignment::Left => format!("{text:<width$}"),
        Alignment::Right => format!("{text:>width$}"),
    }
}

/// As wide as the contents, unless the table is wider than the terminal: then its widest columns are narrowed, first
/// down to their widest cell, then down to their longest word.
fn widths(table: &Table) -> Vec<usize> {
    let contents: Vec<Contents> = (0..table.columns.len()).map(|index| Contents::of(table, index)).collect();
    let mut widths: Vec<usize> = contents.iter().map(|column| column.heading.max(column.cell)).collect();
    narrow(
        &mut widths,
        &contents.iter().map(|column| column.word_of_heading.max(column.cell)).collect::<Vec<_>>(),
    );
    narrow(
        &mut widths,
        &contents.iter().map(|column| column.word_of_heading.max(column.word)).collect::<Vec<_>>(),
    );
    widths
}

/// Takes from the widest that are wider than their least width until the row fits or nothing is left to take.
fn narrow(widths: &mut [usize], least: &[usize]) {
    let between = widths.len().saturating_sub(1) * BETWEEN;
    while widths.iter().sum::<usize>() + between > WIDTH {
        let wider = (0..widths.len()).filter(|index| widths[*index] > least[*index]);
        let Some(widest) = wider.max_by_key(|index| widths[*index]) else {
            return;
        };
        widths[widest] -= 1;
    }
}

/// The widths of what is in a column.
struct Contents {
    heading: usize,
    word_of_heading: usize,
    cell: usize,
    word: usize,
}

impl Contents {
    fn of(table: &Table, index: usize) -> Self {
        let heading = &table.columns[index].heading;
        let column = || table.rows.iter().filter_map(|row| row.get(index));
        Self {
            heading: heading.chars().count(),
            word_of_heading: longest_word(heading),
            cell: column().map(|cell| cell.chars().count()).max().unwrap_or(0),
            word: column().map(|cell| longest_word(cell)).max().unwrap_or(0),
        }
    }
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{columns, small_page, table as made_up};

    #[test]
    fn columns_are_aligned_and_rows_grouped() {
        let rows = [["1", "a", "4.00×"], ["1", "bb", "–"], ["10", "a", "12.00×"]];
        let table = made_up(columns(&[">n", "server", ">× fpm"]), &rows.map(|row| row.to_vec()));
        assert_eq!(
            super::table(&table),
            " n  server   × fpm\n\
             ──  ──────  ──────\n 1  a        4.00×\n 1  bb           –\n\n10  a       12.00×\n"
        );
    }

    #[test]
    fn rows_of_their_own_are_not_grouped() {
        let table = made_up(columns(&[">n"]), &[vec!["1"], vec!["2"]]);
        assert_eq!(super::table(&table), "n\n─\n1\n2\n");
    }

    #[test]
    fn a_wide_table_wraps_its_headings_and_then_its_cells() {
        let headings: Vec<String> =
            (0..8).map(|index| format!(">number of answers in time {index}")).collect();
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let narrow = made_up(columns(&headings), &[vec!["1,234"; 8]]);
        let text = super::table(&narrow);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(
            text.lines().last().unwrap().split_whitespace().count(),
            8,
            "one line for the cells: {text}"
        );
        let wide = made_up(columns(&headings), &[vec!["1,234 (1,200–1,300)"; 8]]);
        let text = super::table(&wide);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.matches("(1,200–1,300)").count(), 8, "{text}");
    }

    #[test]
    fn a_page_is_its_tables_and_notes() {
        let text = page(&small_page());
        assert!(text.contains("\nserver") && text.contains("  - Closed loop"), "{text}");
        assert!(!text.contains("secret.conf"), "{text}");
    }
}
