//! `regent php extensions`: what the PHP of a configuration has, and how to add to it.

mod known;

use crate::admin::{Align, Span, Table, Tone, plain_text};
use crate::arguments::Extensions;
use crate::configuration::{self, Origin};
use crate::php_cli::{Php, PhpFacts};
use anyhow::Result;
use known::{Safety, safety};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(Debug)]
struct Extension {
    name: String,
    version: String,
    is_built_in: bool,
}

/// Prints the list.
pub fn print(options: &Extensions) -> Result<()> {
    let php = Php::of(&configuration_of(options)?)?;
    let answer = php.ask(&[])?;
    // Without any settings it has what is built in.
    let own = php.ask(&["-n"])?;
    let extensions = list(&answer, &own);
    if options.json {
        println!("{:#}", as_json(&answer, &extensions));
    } else {
        print!("{}", as_text(&answer, &extensions));
    }
    Ok(())
}

/// That of the file that is named; the usual one if it is there, and else no file at all.
fn configuration_of(options: &Extensions) -> Result<regent_config::Config> {
    let file = options.config.config.as_deref();
    match file.is_some() || Path::new(configuration::DEFAULT_FILE).exists() {
        true => Origin::File(options.config.clone()).load(),
        false => configuration::default_config(),
    }
}

fn list(answer: &PhpFacts, own: &PhpFacts) -> Vec<Extension> {
    let mut extensions: Vec<_> = answer
        .extensions
        .iter()
        .map(|(name, version)| Extension {
            name: name.clone(),
            version: version.as_str().unwrap_or_default().to_owned(),
            is_built_in: own.extensions.contains_key(name),
        })
        .collect();
    extensions.sort_by_key(|extension| extension.name.to_lowercase());
    extensions
}

/// A word, and what is to be said beside it.
fn verdict(safety: Safety) -> (&'static str, &'static str, Tone) {
    match safety {
        Safety::Safe => ("yes", "", Tone::Plain),
        Safety::Shares(what) => ("yes", what, Tone::Plain),
        Safety::Trouble(what) => ("trouble", what, Tone::Warning),
        Safety::Unknown => ("not known", "not tried with Regent: try it under load", Tone::Quiet),
    }
}

fn as_text(answer: &PhpFacts, extensions: &[Extension]) -> String {
    let kind = match answer.threads {
        true => "thread-safe: its threads share a process",
        false => "of processes: each thread is one, and extensions need not know of threads",
    };
    let none = PathBuf::from("none");
    let mut text = format!(
        "PHP {}, {kind}\nSettings: {}, then the files in {}\nExtensions are loaded from {}\n\n",
        answer.version,
        answer.ini.as_ref().unwrap_or(&none).display(),
        answer.scanned.display(),
        answer.directory.display(),
    );
    for line in table(answer, extensions).lines() {
        let _ = writeln!(text, "{}", plain_text(&line));
    }
    text + "\n" + &how_to_add(answer)
}

fn table(answer: &PhpFacts, extensions: &[Extension]) -> Table {
    let columns = [("EXTENSION", Align::Left), ("VERSION", Align::Left), ("FROM", Align::Left)];
    let of_threads = [("THREADS", Align::Left), ("", Align::Left)];
    let shown = if answer.threads { of_threads.as_slice() } else { &[] };
    let mut table = Table::new(&[columns.as_slice(), shown].concat());
    for extension in extensions {
        let mut row = vec![
            Span::plain(&extension.name),
            Span::plain(&extension.version),
            Span::plain(if extension.is_built_in { "PHP" } else { "a file" }),
        ];
        if answer.threads {
            let (word, why, tone) = verdict(safety(&extension.name.to_lowercase()));
            row.extend([Span::new(word, tone), Span::new(why, tone)]);
        }
        table.row(row);
    }
    table
}

fn how_to_add(answer: &PhpFacts) -> String {
    let scanned = answer.scanned.display();
    if !answer.threads {
        let short: Vec<_> = answer.version.split('.').take(2).collect();
        return format!(
            "To add one: apt install php{}-NAME, or write extension=NAME to a file in {scanned}; then `regent reload --force`.\n",
            short.join(".")
        );
    }
    let phpize = answer.program.with_file_name("phpize");
    let config = answer.program.with_file_name("php-config");
    let needed = if phpize.is_file() { "" } else { " (apt install regent-dev)" };
    format!(
        "To add one, in the directory of its source{needed}:\n  {} && ./configure --with-php-config={} && make && make install\n  \
         echo extension=NAME > {scanned}/NAME.ini && regent reload --force\n",
        phpize.display(),
        config.display(),
    )
}

fn as_json(answer: &PhpFacts, extensions: &[Extension]) -> Value {
    let extension = |extension: &Extension| {
        let (threads, note, _) = verdict(safety(&extension.name.to_lowercase()));
        json!({
            "name": extension.name,
            "version": extension.version,
            "built_in": extension.is_built_in,
            "threads": threads,
            "note": note,
        })
    };
    json!({
        "php": answer.version,
        "threads": answer.threads,
        "ini": answer.ini,
        "scanned": answer.scanned,
        "directory": answer.directory,
        "extensions": extensions.iter().map(extension).collect::<Vec<_>>(),
    })
}
