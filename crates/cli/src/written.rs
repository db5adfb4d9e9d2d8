//! A configuration as it is written: where, in which language, and what it means.

use anyhow::{Context, Result};
use regent_config::{Environment, Errors, Loaded, Reach};
use regent_server::{Configuration, Language};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Stands for the standard input, as the name of a file.
pub const INPUT: &str = "-";
/// What messages call what came by it.
const INPUT_NAME: &str = "standard input";

/// All that is wrong with a configuration.
#[derive(Debug)]
pub struct Mistakes(pub Errors);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", self.0)
    }
}

impl std::error::Error for Mistakes {}

/// A configuration, and the document that the admin API shows and changes.
pub struct Read {
    pub loaded: Loaded,
    pub document: Arc<serde_json::Value>,
}

impl Read {
    /// One that is not in JSON.
    pub fn of(loaded: Loaded) -> Self {
        let document = Arc::new(regent_adapt::adapt(&loaded.config));
        Self { loaded, document }
    }

    /// With all files that a server cannot start without.
    pub fn complete(self) -> Result<Self> {
        let loaded = self.loaded.complete().map_err(Mistakes)?;
        Ok(Self { loaded, ..self })
    }

    pub fn into_configuration(self, warn: impl Fn(&regent_config::Warning)) -> Configuration {
        self.loaded.warnings.iter().for_each(warn);
        Configuration { config: self.loaded.config, document: self.document }
    }
}

/// Reads a file, or the standard input. `language`: what it is written in, if its name does not say it.
pub fn read(path: &Path, language: Option<Language>, environment: &Environment) -> Result<Read> {
    let is_input = path == Path::new(INPUT);
    if is_input || !path.is_file() {
        // What a pipe says it says once.
        let (name, text) = if is_input {
            (INPUT_NAME.into(), of_input()?)
        } else {
            (path.display().to_string(), of_file(path)?)
        };
        let language = language.unwrap_or_else(|| language_of(path, &text));
        return parse(&name, &text, language, environment);
    }
    let text = of_file(path)?;
    let wanted = language.unwrap_or_else(|| language_of(path, &text));
    let by_name = if is_json(path) { Language::Json } else { Language::Caddyfile };
    if wanted != by_name {
        return parse(&path.display().to_string(), &text, wanted, environment);
    }
    // It knows that this file is never to be served.
    let loaded = regent_config::load(path, environment).map_err(Mistakes)?;
    match wanted {
        Language::Caddyfile => Ok(Read::of(loaded)),
        // Another text may be there by now.
        Language::Json if of_file(path)? != text => read(path, language, environment),
        Language::Json => Ok(Read { loaded, document: document(&text)? }),
    }
}

/// The text of a configuration; `name` is what messages call it.
pub fn parse(name: &str, text: &str, language: Language, environment: &Environment) -> Result<Read> {
    parse_within(name, text, language, Reach::default(), environment)
}

/// The same for a text of somebody who may not read all that the server may.
pub fn parse_within(
    name: &str,
    text: &str,
    language: Language,
    reach: Reach,
    environment: &Environment,
) -> Result<Read> {
    let directory = Path::new(name).parent().filter(|_| language == Language::Caddyfile);
    let directory = environment.current_dir.join(directory.unwrap_or(Path::new("")));
    match language {
        Language::Caddyfile => {
            let loaded = regent_config::parse_within(name, text, &directory, reach, environment);
            Ok(Read::of(loaded.map_err(Mistakes)?))
        }
        Language::Json => {
            // Of a configuration that was deleted `null` is left.
            let meant = if text.trim() == "null" { "{}" } else { text };
            let loaded = regent_config::parse_json(name, meant, &directory, environment);
            let loaded = loaded.map_err(Mistakes)?;
            Ok(Read { loaded, document: document(text)? })
        }
    }
}

/// What is written on the standard input, to its end.
pub fn of_input() -> Result<String> {
    std::io::read_to_string(std::io::stdin()).context("reading the standard input")
}

/// As Caddy tells them apart (cmd/main.go, isCaddyfile). What it would take for JSON by any other name is a Caddyfile if it
/// looks like one.
pub fn language_of(path: &Path, text: &str) -> Language {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if is_json(path) {
        Language::Json
    } else if name.starts_with("caddyfile") || name.ends_with(".caddyfile") || !begins_an_object(text) {
        Language::Caddyfile
    } else {
        Language::Json
    }
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "json")
}

/// In a Caddyfile no name of a global option is quoted.
fn begins_an_object(text: &str) -> bool {
    let inner = text.trim_start().strip_prefix('{').map(str::trim_start);
    inner.is_some_and(|inner| inner.starts_with(['"', '}']))
}

fn of_file(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn document(text: &str) -> Result<Arc<serde_json::Value>> {
    let document: serde_json::Value = serde_json::from_str(text)?;
    regent_admin::check_ids(&document)?;
    Ok(Arc::new(document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_language_and_else_the_text() {
        use Language::{Caddyfile, Json};
        for (name, text, language) in [
            ("Caddyfile", "{\"", Caddyfile),
            ("caddyfile.dev", "{}", Caddyfile),
            ("a/site.caddyfile", "{}", Caddyfile),
            ("a/caddy.json", ":80", Json),
            ("Caddyfile.json", ":80", Json),
            ("site.conf", " {\n \"apps\": {} }", Json),
            ("site.conf", "{}", Json),
            ("site.conf", "{\n\tdebug\n}\n:80", Caddyfile),
            ("-", ":80 {\n\t\"respond\"\n}", Caddyfile),
            ("-", "", Caddyfile),
        ] {
            assert_eq!(language_of(Path::new(name), text), language, "{name}");
        }
    }
}
