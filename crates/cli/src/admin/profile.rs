//! `regent profile`.

use super::client::{Client, Patience};
use crate::arguments::{Profile, ProfileFormat};
use anyhow::{Context, Result};
use http::Method;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Has a running server take a profile, and writes it to a file.
pub fn profile(options: &Profile) -> Result<()> {
    let client = Client::new(options.admin.address.clone())?;
    let output = options.output.clone().unwrap_or_else(|| default_output(options.format));
    let seconds = options.seconds;
    eprintln!("looking at the threads of {} for {seconds} s ...", client.address());
    let patience = Patience::Seconds(seconds);
    let profile = client.fetch(Method::GET, &target(options), patience)?;
    if output == Path::new("-") {
        return match io::stdout().write_all(&profile) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => Ok(result?),
        };
    }
    std::fs::write(&output, &profile).with_context(|| format!("writing {}", output.display()))?;
    eprintln!("{}", written(options.format, &output));
    Ok(())
}

fn target(options: &Profile) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("seconds", &options.seconds.to_string());
    query.append_pair("hertz", &options.hertz.to_string());
    query.append_pair("format", name(options.format));
    if let Some(worker) = &options.worker {
        query.append_pair("worker", worker);
    }
    if let Some(path) = &options.path {
        query.append_pair("path", path);
    }
    format!("/regent/profile?{}", query.finish())
}

/// As the admin API names it.
fn name(format: ProfileFormat) -> &'static str {
    match format {
        ProfileFormat::Html => "html",
        ProfileFormat::Svg => "svg",
        ProfileFormat::Folded => "folded",
        ProfileFormat::FoldedCpu => "folded-cpu",
        ProfileFormat::Speedscope => "speedscope",
        ProfileFormat::Json => "json",
    }
}

fn default_output(format: ProfileFormat) -> PathBuf {
    PathBuf::from(match format {
        ProfileFormat::Html => "regent-profile.html",
        ProfileFormat::Svg => "regent-profile.svg",
        ProfileFormat::Folded | ProfileFormat::FoldedCpu => "regent-profile.folded",
        ProfileFormat::Speedscope => "regent-profile.speedscope.json",
        ProfileFormat::Json => "regent-profile.json",
    })
}

fn written(format: ProfileFormat, output: &Path) -> String {
    let what_next = match format {
        ProfileFormat::Html | ProfileFormat::Svg => "open it in a browser",
        ProfileFormat::Speedscope => "open it in speedscope",
        ProfileFormat::Folded | ProfileFormat::FoldedCpu | ProfileFormat::Json => "",
    };
    let dash = if what_next.is_empty() { "" } else { ": " };
    format!("written to {}{dash}{what_next}", output.display())
}
