//! `verifier leaf …`: certificates of clients that are trusted by themselves.

use super::der;
use crate::call::Call;
use crate::context::Context;
use crate::directives::tls::{directory, file};
use crate::model::ClientAuth;
use crate::problems::{error, not_built_as, unknown_option};
use regent_caddyfile::{Error, Token};
use std::io;
use std::path::{Path, PathBuf};

const SYNTAX: &str = "verifier leaf file FILE… | folder DIRECTORY… | pem TEXT…";
const LOADERS: &[&str] = &["file", "folder", "pem"];

/// `verifier leaf LOADER …`, or with a loader on each line of a block.
pub(super) fn parse(cx: &Context<'_>, call: &Call<'_>, auth: &mut ClientAuth) -> Result<(), Error> {
    match call.args {
        [] => Err(call.wrong_arguments(1, SYNTAX)),
        [kind, ..] if kind.text != "leaf" => {
            Err(not_built_as(kind, &format!("client_auth verifier {}", kind.text)))
        }
        [_] if call.block.is_some() => call.options().try_for_each(|line| load(cx, &line, auth)),
        [_] => Err(call.wrong_arguments(2, SYNTAX)),
        [_, loader, args @ ..] => load(cx, &Call { name: loader, args, block: call.block }, auth),
    }
}

fn load(cx: &Context<'_>, call: &Call<'_>, auth: &mut ClientAuth) -> Result<(), Error> {
    match call.name() {
        "file" => {
            for token in call.some("file FILE…")? {
                auth.trusted_leaves.push(file(cx, token)?);
            }
        }
        "folder" => {
            for token in call.some("folder DIRECTORY…")? {
                let directory = directory(cx, token)?;
                let cannot = |cause| error(token, format!("{} cannot be read: {cause}", directory.display()));
                add_files(&directory, &mut auth.trusted_leaves).map_err(cannot)?;
            }
        }
        "pem" => {
            for token in call.some("pem TEXT…")? {
                auth.inline_leaves.push(of_pem(token)?);
            }
        }
        _ => return Err(unknown_option(call.name, "verifier leaf", LOADERS, &["storage"])),
    }
    Ok(())
}

/// Files of PEM, in all directories below too.
fn add_files(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            add_files(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("pem")) {
            found.push(path);
        }
    }
    Ok(())
}

/// The first certificate in a text.
fn of_pem(token: &Token) -> Result<String, Error> {
    let text = token.text.split_once("-----BEGIN CERTIFICATE-----");
    let text = text.and_then(|(_, rest)| rest.split_once("-----END CERTIFICATE-----"));
    let Some((text, _)) = text else {
        return Err(error(token, "this is no PEM text of a certificate"));
    };
    let text = text.split_ascii_whitespace().collect();
    der(&Token { text, ..token.clone() })
}
