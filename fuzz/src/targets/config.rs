//! The meaning of a Caddyfile: any text becomes a configuration, or mistakes that each have a place in it; formatting it
//! first gives the same configuration.

use super::caddyfile::{NAME, assert_place, without_far_imports};
use crate::corpus::fixtures;
use regent_config::{Environment, Errors, format_caddyfile, parse};
use std::collections::BTreeMap;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let text = without_far_imports(text);
    let Ok(json) = json_of(&text).map_err(|errors| assert_errors(&errors, &text)) else { return };
    // A value can hold braces and lines, which the formatter does not see.
    if !text.contains("{$") {
        let formatted = format_caddyfile(NAME, &text).expect("what was parsed can be formatted");
        let again = json_of(&formatted).unwrap_or_else(|errors| panic!("{errors}\nin {formatted}"));
        assert_eq!(again, json, "the formatter changed the meaning: {formatted}");
    }
}

fn json_of(text: &str) -> Result<String, Errors> {
    // The directory has the scripts that the seeds name.
    let directory = fixtures();
    let variables = [("APP", directory.to_str().expect("UTF-8")), ("PORT", "8080"), ("EMPTY", "")];
    let variables: BTreeMap<_, _> =
        variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let environment = Environment { variables, current_dir: directory.to_owned() };
    let loaded = parse(NAME, text, directory, &environment)?;
    for warning in &loaded.warnings {
        assert!(!warning.to_string().is_empty());
    }
    Ok(serde_json::to_string(&loaded.config).expect("the model has no maps"))
}

fn assert_errors(errors: &Errors, text: &str) {
    assert!(!errors.0.is_empty(), "refused without a reason");
    errors.0.iter().for_each(|error| assert_place(error, text));
}
