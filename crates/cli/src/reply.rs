//! Mistakes of a configuration as the admin API answers them. Who asks may be a script that reaches the listener and may not read
//! what the server may: no line of a file is quoted, and no message that repeats a word of it. The log says all.

use crate::configuration;
use crate::written::Mistakes;
use regent_config::{Error, Warning};

/// What a reply may quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quotes {
    /// The text that was sent. What it imports is not.
    OfBody,
    /// Nothing: the text is a file that a stranger may have named.
    None,
}

/// Where a message stands that is not told.
pub const IN_LOG: &str = "there is a mistake here, which the log of the server tells, and `regent validate`; the admin API quotes no files";

/// Logs what the reply leaves out.
pub fn error(error: &anyhow::Error, quotes: Quotes) -> String {
    let all = configuration::text(error);
    let Some(Mistakes(errors)) = error.downcast_ref::<Mistakes>() else { return all };
    let told: Vec<String> = errors.0.iter().map(|error| told(error, quotes)).collect();
    let told = told.join("\n");
    if told != all {
        tracing::error!("a configuration is wrong that the admin API was told to read:\n{all}");
    }
    told
}

pub fn warning(warning: &Warning) -> String {
    match &warning.span {
        Some(span) if span.is_in_file() => {
            tracing::warn!("{warning}");
            format!("{span}: there is a warning about this, which the log of the server tells")
        }
        _ => warning.to_string(),
    }
}

fn told(error: &Error, quotes: Quotes) -> String {
    match &error.span {
        Some(span) if quotes == Quotes::None || span.is_in_file() => format!("{span}: {IN_LOG}"),
        Some(span) if error.may_quote_files => format!("{span}: {IN_LOG}\n{}", span.excerpt()),
        None if error.may_quote_files => IN_LOG.to_owned(),
        _ => error.to_string(),
    }
}
