//! Where a hub keeps its history: `transport`, and the URLs that it was before.

mod redis;

use crate::call::Call;
use crate::context::Context;
use crate::model::{HubHistory, MercureHub};
use crate::problems::{error, unknown, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};
use std::path::Path;

/// Beside which the history is, unless a path is given.
const FILE: &str = "mercure.db";
const SYNTAX: &str =
    "transport local, transport bolt { path FILE; size N }, or transport redis { address HOST:PORT }";

/// Mistakes within the block are noted in `cx`.
pub(super) fn of_option(cx: &mut Context<'_>, option: &Call<'_>) -> Result<HubHistory, Error> {
    let [name] = option.args else { return Err(option.wrong_arguments(1, SYNTAX)) };
    match name.text.as_str() {
        "local" => option.without_block(SYNTAX).map(|()| HubHistory::None),
        "bolt" => Ok(bolt(cx, option)),
        "redis" => redis::of_option(cx, option),
        _ => Err(no_transport(name, &name.text)),
    }
}

fn bolt(cx: &mut Context<'_>, option: &Call<'_>) -> HubHistory {
    let (mut path, mut size, mut is_default) = (cx.environment.absolute(Path::new(FILE)), 0, true);
    for setting in option.options() {
        let result = match setting.name() {
            "path" => setting.one("path FILE").and_then(|token| cx.fixed_text(token)).map(|file| {
                path = cx.environment.absolute(Path::new(&file));
                is_default = false;
            }),
            "size" => setting
                .one("size N")
                .and_then(|token| values::integer(token, 0..=usize::MAX, "size"))
                .map(|updates| size = updates),
            "bucket_name" => setting.one("bucket_name NAME").map(|_| warn(cx, setting.name, "bucket_name")),
            "cleanup_frequency" => setting
                .one("cleanup_frequency NUMBER")
                .and_then(|token| frequency(token, &token.text))
                .map(|()| warn(cx, setting.name, "cleanup_frequency")),
            _ => {
                let known = &["bucket_name", "cleanup_frequency", "path", "size"];
                Err(unknown_option(setting.name, "transport bolt", known, &[]))
            }
        };
        cx.check(result);
    }
    HubHistory::File { path, is_default, size }
}

/// `token`: where the URL is written, or what has it from elsewhere.
pub(super) fn of_url(cx: &mut Context<'_>, token: &Token, url: &str) -> Result<HubHistory, Error> {
    let (name, rest) = url.split_once("://").ok_or_else(|| {
        let message = "this is no URL of a transport; write `bolt://FILE`, `redis://HOST:PORT/STREAM` or `local://local`";
        error(token, message)
    })?;
    match name {
        "local" => return Ok(HubHistory::None),
        "bolt" => {}
        "redis" | "rediss" => return redis::of_url(token, name, rest),
        _ => return Err(no_transport(token, name)),
    }
    let (file, query) = rest.split_once('?').unwrap_or((rest, ""));
    if file.is_empty() {
        return Err(error(token, "the URL names no file; write `bolt://FILE`"));
    }
    let mut size = 0;
    for (name, value) in parameters(query) {
        match name {
            "size" => {
                let message =
                    || error(token, format!("`{value}` is no size of a history; it is a number of updates"));
                size = value.parse().map_err(|_| message())?;
            }
            "bucket_name" => warn(cx, token, name),
            "cleanup_frequency" => {
                frequency(token, value)?;
                warn(cx, token, name);
            }
            _ => {
                let Error { message, .. } =
                    unknown(&Token { text: name.to_owned(), ..token.clone() }, "parameter", &["size"]);
                return Err(error(token, message));
            }
        }
    }
    Ok(HubHistory::File { path: cx.environment.absolute(Path::new(file)), is_default: false, size })
}

/// Of a URL, as they stand there.
fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// The file of this hub, if another one has it.
pub(super) fn taken<'a>(hubs: &[MercureHub], hub: &'a MercureHub) -> Option<&'a Path> {
    let HubHistory::File { path, .. } = &hub.history else { return None };
    let has_it =
        |other: &&MercureHub| matches!(&other.history, HubHistory::File { path: taken, .. } if taken == path);
    hubs.iter().find(has_it).filter(|other| *other != hub).map(|_| path.as_path())
}

fn frequency(token: &Token, text: &str) -> Result<(), Error> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(()),
        _ => Err(error(token, format!("`{text}` is no frequency; write a number from 0 to 1"))),
    }
}

fn warn(cx: &mut Context<'_>, token: &Token, name: &str) {
    let why =
        "Regent has a file of its own, which it writes anew when it holds twice as many updates as are kept";
    cx.warn(token, format!("`{name}` has no effect: {why}"));
}

fn no_transport(token: &Token, name: &str) -> Error {
    error(token, format!("there is no transport `{name}` in Regent; write `bolt`, `local` or `redis`"))
}
