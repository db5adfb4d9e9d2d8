//! Unix sockets as Caddy writes them: `unix/PATH` or `unix/PATH|MODE`, so that an absolute path has two slashes.

use crate::environment::Environment;
use crate::model::UnixSocket;
use std::path::Path;

pub(crate) const PREFIX: &str = "unix/";

/// As Caddy's: only the user that the server runs as can connect.
const DEFAULT_MODE: u32 = 0o200;

/// Parses what follows [`PREFIX`]. An error says what is wrong with it.
pub(crate) fn parse(text: &str, environment: &Environment) -> Result<UnixSocket, String> {
    let (path, mode) = match text.split_once('|') {
        Some((path, mode)) => (path, self::mode(mode)?),
        None => (text, DEFAULT_MODE),
    };
    if path.is_empty() || path.ends_with('/') {
        return Err(format!(
            "`{PREFIX}{text}` names no file; write a path such as `unix//run/site.sock`, or `unix//run/site.sock|0660`"
        ));
    }
    Ok(UnixSocket { path: environment.absolute(Path::new(path)), mode })
}

/// Permissions of a socket's file, in octal digits. An error says what is wrong with them.
pub(crate) fn mode(text: &str) -> Result<u32, String> {
    let is_octal = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    match u32::from_str_radix(text, 8) {
        Ok(mode @ ..=0o777) if is_octal && mode & DEFAULT_MODE != 0 => Ok(mode),
        Ok(..=0o777) if is_octal => Err(format!(
            "the mode `{text}` keeps out the socket's owner: it has to allow writing, as 0200 and 0660 do"
        )),
        _ => Err(format!("`{text}` is no mode of a file; write an octal number such as 0660")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn parsed(text: &str) -> Result<(String, u32), String> {
        let environment = Environment { variables: BTreeMap::new(), current_dir: "/srv".into() };
        parse(text, &environment).map(|socket| (socket.path.to_str().unwrap().to_owned(), socket.mode))
    }

    #[test]
    fn paths_and_modes() {
        for (text, path, mode) in [
            ("/run/a.sock", "/run/a.sock", 0o200),
            ("run/a.sock", "/srv/run/a.sock", 0o200),
            ("/run/a.sock|0660", "/run/a.sock", 0o660),
            ("/run/a.sock|222", "/run/a.sock", 0o222),
        ] {
            assert_eq!(parsed(text), Ok((path.to_owned(), mode)), "{text}");
        }
    }

    #[test]
    fn mistakes() {
        for (text, message) in [
            ("", "names no file"),
            ("/run/", "names no file"),
            ("|0660", "names no file"),
            ("/a|0440", "keeps out the socket's owner"),
            ("/a|", "is no mode"),
            ("/a|0990", "is no mode"),
            ("/a|+660", "is no mode"),
            ("/a|1660", "is no mode"),
            ("/a|u=rw", "is no mode"),
        ] {
            assert!(parsed(text).unwrap_err().contains(message), "{text}");
        }
    }
}
