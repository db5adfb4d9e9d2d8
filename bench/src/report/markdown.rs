//! A page as Markdown, as GitHub shows it; the figures are the SVG files beside it.

use super::escape::{file_stem, markdown as escape};
use super::page::{Alignment, Column, Figure, Page, Section, Table};

/// The whole page, without its attachments.
pub fn page(page: &Page) -> String {
    let sections: String = page.sections.iter().map(section).collect();
    format!("# {}\n\n{}{sections}", escape(&page.title), paragraphs(&page.introduction)).trim_end().to_owned()
        + "\n"
}

fn section(section: &Section) -> String {
    format!(
        "## {}\n\n{}{}{}{}",
        escape(&section.heading),
        paragraphs(&section.paragraphs),
        section.tables.iter().map(table).collect::<String>(),
        section.figures.iter().map(figure).collect::<String>(),
        notes(&section.notes),
    )
}

fn paragraphs(texts: &[String]) -> String {
    texts.iter().map(|text| format!("{}\n\n", escape(text))).collect()
}

fn figure(figure: &Figure) -> String {
    format!("![{}]({}.svg)\n\n", escape(&figure.title), file_stem(&figure.name))
}

fn notes(notes: &[String]) -> String {
    let items: String = notes.iter().map(|note| format!("- {}\n", escape(note))).collect();
    if items.is_empty() { items } else { format!("{items}\n") }
}

fn table(table: &Table) -> String {
    let line =
        |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let caption =
        if table.caption.is_empty() { String::new() } else { format!("**{}**\n\n", escape(&table.caption)) };
    let headings = line(&mut table.columns.iter().map(|column| escape(&column.heading)));
    let alignments = line(&mut table.columns.iter().map(alignment));
    let rows: String =
        (0..table.rows.len()).map(|row| line(&mut table.cells(row).map(|(_, cell)| escape(cell)))).collect();
    format!("{caption}{headings}{alignments}{rows}\n")
}

fn alignment(column: &Column) -> String {
    match column.alignment {
        Alignment::Left => "---".to_owned(),
        Alignment::Right => "--:".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{hostile_page, small_page};

    #[test]
    fn a_small_page() {
        insta::assert_snapshot!(page(&small_page()));
    }

    #[test]
    fn a_hostile_cell_stays_in_its_cell() {
        let text = page(&hostile_page());
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        let bars = |line: &str| line.matches('|').count() - line.matches("\\|").count();
        assert_eq!(rows.len(), 4, "{text}");
        assert!(rows.iter().all(|row| bars(row) == bars(rows[0])), "{text}");
        assert!(!text.replace("\\<", "").contains('<'), "{text}");
    }
}
