//! Markdown as GitHub has it, with footnotes and the ids of headings that Caddy gives them. HTML in it stays.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use std::collections::HashMap;

pub(crate) fn to_html(text: &str) -> String {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES;
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, options).collect();
    name_headings(&mut events);
    let mut out = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut out, events.into_iter());
    out
}

fn name_headings(events: &mut [Event<'_>]) {
    let mut taken = HashMap::new();
    let mut begun = None;
    let mut text = String::new();
    for index in 0..events.len() {
        match &events[index] {
            Event::Start(Tag::Heading { .. }) => {
                begun = Some(index);
                text.clear();
            }
            Event::Text(piece) | Event::Code(piece) if begun.is_some() => text.push_str(piece),
            Event::End(TagEnd::Heading(_)) => {
                let name = unique(&slug(&text), &mut taken);
                if let Some(Event::Start(Tag::Heading { id, .. })) = begun.take().map(|at| &mut events[at]) {
                    *id = Some(CowStr::from(name));
                }
            }
            _ => {}
        }
    }
}

/// As goldmark makes ids: letters and digits of ASCII in lower case, `-` for spaces, `-` and `_`.
fn slug(text: &str) -> String {
    let letter = |c: char| match c {
        _ if c.is_ascii_alphanumeric() => Some(c.to_ascii_lowercase()),
        '-' | '_' => Some(c),
        _ if c.is_ascii_whitespace() => Some('-'),
        _ => None,
    };
    let slug: String = text.trim().chars().filter_map(letter).collect();
    if slug.is_empty() { "heading".to_owned() } else { slug }
}

/// `taken`: names, and the number that the next of each gets.
fn unique(name: &str, taken: &mut HashMap<String, u32>) -> String {
    let mut free = name.to_owned();
    while taken.contains_key(&free) {
        let number = taken.entry(name.to_owned()).or_insert(1);
        free = format!("{name}-{number}");
        *number += 1;
    }
    taken.insert(free.clone(), 1);
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_ids_of_their_own() {
        let html = to_html("# A *page*\n\n## A page\n\n## Ü");
        assert_eq!(
            html,
            "<h1 id=\"a-page\">A <em>page</em></h1>\n<h2 id=\"a-page-1\">A page</h2>\n<h2 id=\"heading\">Ü</h2>\n"
        );
    }

    #[test]
    fn tables_and_html() {
        let html = to_html("|a|\n|-|\n|b|\n\n<b>x</b> ~~y~~");
        assert!(html.contains("<table>") && html.contains("<b>x</b> <del>y</del>"), "{html}");
    }
}
