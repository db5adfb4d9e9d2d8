//! The placeholders that `map` makes.
//!
//! Which texts they are only the file says. So they get a name among the variables before anything else is read:
//! `{backend}` becomes `{vars.map.backend}` in the site whose `map` has it as a destination.

use crate::template;
use regent_caddyfile::{File, Line, Token};
use std::collections::BTreeSet;

/// What stands before the names.
const SPACE: &str = "map.";

/// Gives names to the destinations of a file. Those of any site are known in named routes.
pub(crate) fn name_destinations(file: &mut File) {
    let mut all = BTreeSet::new();
    file.named_routes.iter().for_each(|route| collect(&route.lines, &mut all));
    for site in &mut file.sites {
        let mut own = BTreeSet::new();
        collect(&site.lines, &mut own);
        all.append(&mut own.clone());
        file.named_routes.iter().for_each(|route| collect(&route.lines, &mut own));
        rename(&mut site.lines, &own);
    }
    file.named_routes.iter_mut().for_each(|route| rename(&mut route.lines, &all));
}

/// The name of the variable that a destination was given. `None`: it is none.
pub(crate) fn variable(token: &Token) -> Option<&str> {
    let name = token.text.strip_prefix("{vars.")?.strip_suffix('}')?;
    name.starts_with(SPACE).then_some(name)
}

fn collect(lines: &[Line], found: &mut BTreeSet<String>) {
    for line in lines {
        if line.name.text == "map" {
            found.extend(line.args.iter().filter_map(|token| destination(&token.text)).map(str::to_owned));
        }
        collect(line.block.as_deref().unwrap_or_default(), found);
    }
}

/// The name in a text that is a placeholder of nobody's.
fn destination(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    (is_name && !template::is_placeholder(name)).then_some(name)
}

fn rename(lines: &mut [Line], names: &BTreeSet<String>) {
    if names.is_empty() {
        return;
    }
    for line in lines {
        for token in std::iter::once(&mut line.name).chain(&mut line.args) {
            if token.text.contains('{') {
                token.text = renamed(&token.text, names);
            }
        }
        rename(line.block.as_deref_mut().unwrap_or_default(), names);
    }
}

fn renamed(text: &str, names: &BTreeSet<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let name = from[1..].find('}').map(|end| &from[1..=end]);
        match name.filter(|name| names.contains(*name) && !before.ends_with('\\')) {
            Some(name) => {
                out.push_str(&format!("{{vars.{SPACE}{name}}}"));
                rest = &from[name.len() + 2..];
            }
            None => {
                out.push('{');
                rest = &from[1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names() -> BTreeSet<String> {
        ["a".to_owned(), "back.end".to_owned()].into()
    }

    #[test]
    fn destinations_get_a_name_wherever_they_stand() {
        for (text, expected) in [
            ("{a}", "{vars.map.a}"),
            ("x{a}{back.end}/{path}", "x{vars.map.a}{vars.map.back.end}/{path}"),
            ("{{a}}", "{{vars.map.a}}"),
            ("\\{a} {b} {", "\\{a} {b} {"),
            ("{\"a\": {a}}", "{\"a\": {vars.map.a}}"),
        ] {
            assert_eq!(renamed(text, &names()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_no_destination_stays(text in "[b-z{}\\\\ é]{0,30}") {
            prop_assert_eq!(renamed(&text, &names()), text);
        }
    }
}
