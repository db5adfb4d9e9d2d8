//! Sites of an nginx configuration.
//!
//! - A `server` becomes a site, a `location` a `handle` of it. Exact paths, prefixes and regular expressions keep nginx' order: exact
//!   ones, prefixes with `^~`, regular expressions as they stand, other prefixes, the longest first.
//! - `fastcgi_pass` becomes `php_server`, whichever php-fpm it names: Regent runs the scripts itself.
//! - What Regent does by itself (HTTPS, names with a dot, types, kept connections) is left out without a word.

mod access;
mod addresses;
mod content;
mod lexer;
mod locations;
mod proxy;
mod rewrites;
mod server;
mod site;
mod tree;
mod values;

use crate::writer::Writer;
use crate::{Error, Imported};
use server::Surroundings;
use std::path::Path;
use tree::Directive;

/// Translates a configuration, or a file of one that has a `server`.
///
/// # Errors
/// When a file cannot be read, or is none of nginx.
pub fn import(path: &Path) -> Result<Imported, Error> {
    let directives = tree::read(path)?;
    let mut servers = Vec::new();
    let mut around = Vec::new();
    collect(&directives, &mut servers, &mut around);
    if servers.is_empty() {
        let message = "it has no `server`: name the file of a site, or nginx.conf".to_owned();
        return Err(Error { place: path.display().to_string(), message });
    }
    let surroundings = Surroundings::new(&around, &servers);
    let mut writer = Writer::default();
    writer.comment(&format!(
        "Made of {} by `regent import nginx`. Lines that begin with `not translated` are for you to look at.",
        path.file_name().unwrap_or_default().to_string_lossy()
    ));
    let mut left_out = Vec::new();
    for server in &servers {
        left_out.extend(server::write(server, &surroundings, &mut writer));
    }
    Ok(Imported { caddyfile: writer.finish(), left_out })
}

/// The servers of a file and of its `http`, and what stands beside them.
fn collect<'a>(
    directives: &'a [Directive],
    servers: &mut Vec<&'a Directive>,
    around: &mut Vec<&'a Directive>,
) {
    for directive in directives {
        match directive.name.as_str() {
            "server" if directive.block.is_some() => servers.push(directive),
            "http" => collect(directive.body(), servers, around),
            _ => around.push(directive),
        }
    }
}
