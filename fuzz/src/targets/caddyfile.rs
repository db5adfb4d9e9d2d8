//! The Caddyfile language: any text is read without a panic and every mistake has a place in it; the formatter is
//! stable and changes no meaning.

use crate::corpus::fixtures;
use regent_caddyfile::{Error, File, Line, Source, format, parse};

/// What messages call the text.
pub const NAME: &str = "Caddyfile";

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let text = without_far_imports(text);
    let formatted = match format(NAME, &text) {
        Ok(formatted) => formatted,
        Err(error) => return assert_place(&error, &text),
    };
    assert_eq!(format(NAME, &formatted).unwrap(), formatted, "the formatter is not stable");
    let Some(words) = words_of(&text) else { return };
    // A value can hold braces and lines, which the formatter does not see.
    if !text.contains("{$") {
        assert_eq!(words_of(&formatted), Some(words), "the formatter changed the meaning: {formatted}");
    }
}

/// Imports of this text find files of `fuzz/fixtures/` only: what lies elsewhere is another one's, and may never end.
pub fn without_far_imports(text: &str) -> String {
    if text.contains("import") { text.replace('/', "|") } else { text.to_owned() }
}

/// An error is shown with a place that is in the text.
pub fn assert_place(error: &Error, text: &str) {
    assert!(!error.message.is_empty());
    assert!(!error.to_string().is_empty());
    let Some(span) = error.span.as_ref().filter(|span| span.source_name() == NAME) else { return };
    let line = text.split('\n').nth(span.line() - 1).expect("the place is in the text");
    assert!((1..=line.chars().count() + 1).contains(&span.column()), "{span} is beyond its line");
}

/// The tree as a list of words; `None` if there are mistakes, which the formatter may repair.
fn words_of(text: &str) -> Option<Vec<String>> {
    let source = Source::from_text(NAME, text, fixtures());
    let lookup = |name: &str| (name == "A").then(|| "x {\ny\n".to_owned());
    match parse(source, &lookup) {
        Ok(parsed) => {
            parsed.errors.iter().for_each(|error| assert_place(error, text));
            parsed.errors.is_empty().then(|| all_words(&parsed.file))
        }
        Err(errors) => {
            errors.0.iter().for_each(|error| assert_place(error, text));
            None
        }
    }
}

fn all_words(file: &File) -> Vec<String> {
    let mut out = Vec::new();
    words(&file.global, &mut out);
    for site in &file.sites {
        out.push("site".to_owned());
        out.extend(site.addresses.iter().map(|token| token.text.clone()));
        words(&site.lines, &mut out);
    }
    out
}

fn words(lines: &[Line], out: &mut Vec<String>) {
    for line in lines {
        out.push("line".to_owned());
        let tokens = std::iter::once(&line.name).chain(&line.args);
        out.extend(tokens.map(|token| format!("{}{}", token.quoted, token.text)));
        if let Some(block) = &line.block {
            out.push("block".to_owned());
            words(block, out);
            out.push("end".to_owned());
        }
    }
}
