//! Pages as one HTML file that loads nothing: it can be mailed, archived and opened from a disk.

use super::escape::xml;
use super::page::{Alignment, Column, Page, Section, Table};
use super::svg;

/// Nothing but what is in the file itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
/// Characters of a text that needs no second line.
const SHORT: usize = 28;
const STYLE: &str = include_str!("page.css");

/// One page.
pub fn page(page: &Page) -> String {
    let contents = contents(&sections(page, "p1"));
    document(&page.title, &contents, &article(page, "p1"))
}

/// Several pages, one after the other.
pub fn pages(title: &str, pages: &[Page]) -> String {
    let identified = || pages.iter().enumerate().map(|(index, page)| (page, format!("p{}", index + 1)));
    let entries: String = identified()
        .map(|(page, id)| format!("<li>{}{}</li>\n", link(&id, &page.title), sections(page, &id)))
        .collect();
    let articles: String = identified().map(|(page, id)| article(page, &id)).collect();
    document(title, &contents(&format!("<ol>\n{entries}</ol>\n")), &articles)
}

fn document(title: &str, contents: &str, articles: &str) -> String {
    let (title, figures) = (xml(title), svg::style());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}{figures}\n</style>\n</head>\n<body>\n{contents}\
         <main>\n{articles}</main>\n</body>\n</html>\n",
        policy = xml(POLICY),
    )
}

fn contents(list: &str) -> String {
    format!(
        "<nav aria-label=\"Contents\">\n<details open=\"open\">\n<summary>Contents</summary>\n{list}</details>\n</nav>\n"
    )
}

fn sections(page: &Page, id: &str) -> String {
    let entry = |(index, section): (usize, &Section)| {
        format!("<li>{}</li>\n", link(&section_id(id, index), &section.heading))
    };
    format!("<ol>\n{}</ol>\n", page.sections.iter().enumerate().map(entry).collect::<String>())
}

fn link(id: &str, text: &str) -> String {
    format!("<a href=\"#{id}\">{}</a>", xml(text))
}

/// Numbers, because names need not be unique, nor safe to be part of an address.
fn section_id(page: &str, index: usize) -> String {
    format!("{page}-{}", index + 1)
}

fn article(page: &Page, id: &str) -> String {
    let introduction = paragraphs(&page.introduction);
    let section = |(index, part): (usize, &Section)| section(part, &section_id(id, index));
    let sections: String = page.sections.iter().enumerate().map(section).collect();
    format!(
        "<article id=\"{id}\">\n<header>\n<h1>{}</h1>\n{introduction}</header>\n{sections}</article>\n",
        xml(&page.title)
    )
}

fn section(section: &Section, id: &str) -> String {
    let tables: String = section.tables.iter().map(table).collect();
    let figure = |(index, figure)| {
        format!(
            "<figure class=\"drawing\">\n{}</figure>\n",
            svg::inline(figure, &format!("{id}-{}", index + 1))
        )
    };
    let figures: String = section.figures.iter().enumerate().map(figure).collect();
    format!(
        "<section id=\"{id}\">\n<h2>{}</h2>\n{}{tables}{figures}{}{}</section>\n",
        xml(&section.heading),
        paragraphs(&section.paragraphs),
        notes(&section.notes),
        section.attachments.iter().map(attachment).collect::<String>(),
    )
}

fn paragraphs(texts: &[String]) -> String {
    texts.iter().map(|text| format!("<p>{}</p>\n", xml(text))).collect()
}

fn notes(notes: &[String]) -> String {
    let items: String = notes.iter().map(|note| format!("<li>{}</li>\n", xml(note))).collect();
    if items.is_empty() { items } else { format!("<ul class=\"notes\">\n{items}</ul>\n") }
}

fn attachment((name, text): &(String, String)) -> String {
    format!(
        "<details class=\"attachment\">\n<summary>{}</summary>\n<pre>{}</pre>\n</details>\n",
        xml(name),
        xml(text)
    )
}

fn table(table: &Table) -> String {
    let classes: Vec<&str> = (0..table.columns.len()).map(|index| class(table, index)).collect();
    let heading =
        |(column, class): (&Column, &&str)| format!("<th scope=\"col\"{class}>{}</th>", xml(&column.heading));
    let headings: String = table.columns.iter().zip(&classes).map(heading).collect();
    let rows: String = (0..table.rows.len()).map(|index| row(table, index, &classes)).collect();
    let name = if table.caption.is_empty() { "Table".to_owned() } else { xml(&table.caption) };
    let caption = if table.caption.is_empty() {
        String::new()
    } else {
        format!("<figcaption>{}</figcaption>\n", xml(&table.caption))
    };
    format!(
        "<figure class=\"table\">\n{caption}<div class=\"scroll\" role=\"region\" aria-label=\"{name}\" tabindex=\"0\">\n<table>\n\
         <thead><tr>{headings}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n</figure>\n"
    )
}

fn row(table: &Table, index: usize, classes: &[&str]) -> String {
    let group = if table.starts_group(index) { " class=\"group\"" } else { "" };
    let cells = table.cells(index).zip(classes);
    let cells: String = cells.map(|((_, text), class)| format!("<td{class}>{}</td>", xml(text))).collect();
    format!("<tr{group}>{cells}</tr>\n")
}

/// Numbers are to the right; a column of short texts, such as names, is not broken into lines.
fn class(table: &Table, index: usize) -> &'static str {
    let short = |row: &Vec<String>| row.get(index).is_none_or(|cell| cell.chars().count() <= SHORT);
    match table.columns[index].alignment {
        Alignment::Right => " class=\"number\"",
        Alignment::Left if table.rows.iter().all(short) => " class=\"name\"",
        Alignment::Left => "",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::report::testing::{hostile_page, small_page};

    fn parsed(html: &str) -> roxmltree::Document<'_> {
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        roxmltree::Document::parse_with_options(html, options)
            .unwrap_or_else(|error| panic!("{error}\n{html}"))
    }

    #[test]
    fn a_small_page() {
        let html = page(&small_page());
        let (_, body) = html.split_once("<body>").expect("it has a body");
        insta::assert_snapshot!(body);
    }

    #[test]
    fn identifiers_are_unique_and_links_have_targets() {
        let html = pages("All", &[small_page(), small_page()]);
        let document = parsed(&html);
        let ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "{ids:?}");
        let targets: Vec<&str> = document.descendants().filter_map(|node| node.attribute("href")).collect();
        assert_eq!(targets.len(), 4, "two pages, a section each");
        assert!(targets.iter().all(|target| unique.contains(&target[1..])), "{targets:?}");
    }

    #[test]
    fn nothing_is_loaded_or_run() {
        let html = page(&small_page());
        for forbidden in ["<script", "src=", "url(", "@import", "href=\"http", "<link"] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
        assert_eq!(html.matches("<style>").count(), 1, "one style sheet for all figures");
    }

    #[test]
    fn hostile_texts_stay_texts() {
        let html = page(&hostile_page());
        let document = parsed(&html);
        let evil = |node: &roxmltree::Node| node.has_tag_name("script") || node.attribute("onload").is_some();
        assert!(!document.descendants().any(|node| evil(&node)), "{html}");
    }
}
