//! The settings of `php_ini` in the configuration, which go before those of php.ini.

use crate::php;
use regent_engine_host::Reporter;
use regent_wire::control::Event;
use std::fmt::Write;

/// Of syslog(3).
const WARNING: u8 = 4;

/// These load something, and are no settings.
const LOADERS: [&str; 2] = ["extension", "zend_extension"];

/// Lines of php.ini; the values are in its language.
pub fn lines(overrides: &[(String, String)]) -> String {
    overrides.iter().fold(String::new(), |mut lines, (name, value)| {
        let _ = writeln!(lines, "{name}={value}");
        lines
    })
}

/// PHP takes any name without a word. After its start, when the extensions have added theirs.
pub fn warn_of_unknown(overrides: &[(String, String)], reporter: &Reporter) {
    if overrides.is_empty() {
        return;
    }
    let known = php::settings();
    for (name, _) in overrides {
        if let Some(message) = complaint(name, &known) {
            reporter.send(&Event::Log { level: WARNING, message, context: String::new() });
        }
    }
}

fn complaint(name: &str, known: &[String]) -> Option<String> {
    if LOADERS.contains(&name) || known.iter().any(|own| own == name) {
        return None;
    }
    let hint = match (nearest(name, known), name.split_once('.')) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, Some((extension, _))) => format!("is the extension `{extension}` loaded?"),
        (None, None) => "it has no effect".to_owned(),
    };
    Some(format!("php_ini: PHP has no setting `{name}`; {hint}"))
}

/// The setting that is so close that a slip of the hand explains the difference.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let allowed = 1 + name.chars().count() / 8;
    let distances = known.iter().map(|own| (strsim::damerau_levenshtein(name, own), own.as_str()));
    distances.min().filter(|(distance, _)| *distance <= allowed).map(|(_, near)| near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_setting_is_told_apart_from_one_of_an_extension_that_is_not_there() {
        let known = ["memory_limit", "opcache.enable"].map(str::to_owned);
        let complaint = |name: &str| complaint(name, &known);
        assert_eq!(
            [complaint("memory_limit"), complaint("opcache.enable"), complaint("extension")],
            [const { None }; 3]
        );
        let misspelt = complaint("memry_limit").unwrap();
        assert!(misspelt.contains("`memry_limit`; did you mean `memory_limit`?"), "{misspelt}");
        let foreign = complaint("xdebug.mode").unwrap();
        assert!(foreign.contains("is the extension `xdebug` loaded?"), "{foreign}");
        assert!(complaint("banana").unwrap().ends_with("it has no effect"));
    }
}
