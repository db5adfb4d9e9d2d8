//! `admin ADDRESS | off { … }`: where the admin API listens, localhost:2019 by default.
//!
//! The address is `HOST:PORT`, `:PORT` for all of the machine's addresses, or `unix//PATH`, perhaps with the permissions of its file
//! behind it: `unix//PATH|0660`. Without them, 0600, only the user that the server runs as can connect.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `origins ORIGIN…` | those of the address | origins that may call it: `https://host:port`, `host:port` or `host` |
//! | `enforce_origin` | off | callers that are no browsers have to send an origin too |
//!
//! ```caddyfile
//! {
//!     admin unix//run/regent/admin.sock
//! }
//! ```

use crate::call::Call;
use crate::context::Context;
use crate::model::{Admin, AdminListen, OriginCheck};
use crate::problems::{error, unknown_option};
use crate::unix_socket;
use regent_caddyfile::{Error, Token};

/// Only the user that the server runs as.
const ADMIN_MODE: u32 = 0o600;
const SYNTAX: &str = "admin ADDRESS | off { origins ORIGIN…; enforce_origin }";

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>) -> Result<Option<Admin>, Error> {
    let mut admin = Admin::default();
    match call.args {
        [] => {}
        [token] if token.text == "off" => return call.without_block("admin off").map(|()| None),
        [token] => {
            let listen = cx.fixed_text(token).and_then(|text| address(token, &text));
            admin.listen = cx.check(listen).unwrap_or(admin.listen);
        }
        _ => return Err(call.wrong_arguments(1, SYNTAX)),
    }
    for option in call.options() {
        let result = apply(cx, &option, &mut admin);
        cx.check(result);
    }
    Ok(Some(admin))
}

fn apply(cx: &Context<'_>, option: &Call<'_>, admin: &mut Admin) -> Result<(), Error> {
    match option.name() {
        "origins" => {
            let origins = option.some("origins ORIGIN…")?.iter().map(|origin| cx.host_and_more(origin));
            admin.origins = origins.collect::<Result<_, _>>()?;
        }
        "enforce_origin" => {
            option.exactly::<0>("enforce_origin")?;
            admin.origin_check = OriginCheck::Everyone;
        }
        _ => return Err(unknown_option(option.name, "admin", &["enforce_origin", "origins"], &[])),
    }
    Ok(())
}

fn address(token: &Token, text: &str) -> Result<AdminListen, Error> {
    if let Some(path) = text.strip_prefix("unix/") {
        return socket(token, path);
    }
    let text = text.strip_prefix("tcp/").unwrap_or(text);
    let parsed = text.rsplit_once(':').and_then(|(host, port)| Some((bare(host)?, port.parse().ok()?)));
    match parsed {
        Some((host, port @ 1..)) => Ok(AdminListen::Tcp { host: host.to_owned(), port }),
        _ => Err(no_address(token)),
    }
}

fn socket(token: &Token, text: &str) -> Result<AdminListen, Error> {
    let (path, mode) = match text.split_once('|') {
        Some((path, mode)) => {
            let mode = unix_socket::mode(mode).map_err(|message| error(token, message))?;
            (path, mode)
        }
        None => (text, ADMIN_MODE),
    };
    match path.starts_with('/') {
        true => Ok(AdminListen::Unix { path: path.into(), mode }),
        false => Err(no_address(token)),
    }
}

/// A host without the brackets of an IPv6 address; `None` if it is none.
fn bare(host: &str) -> Option<&str> {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').filter(|host| host.parse::<std::net::Ipv6Addr>().is_ok()),
        None => host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_')).then_some(host),
    }
}

fn no_address(token: &Token) -> Error {
    let text = &token.text;
    error(
        token,
        format!(
            "`{text}` is no address for the admin API; write `localhost:2019`, `unix//run/admin.sock` or `off`"
        ),
    )
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use crate::model::{Admin, AdminListen, OriginCheck};

    fn admin(options: &str) -> Option<Admin> {
        config(&format!("{{\n{options}\n}}\n:80 {{\n}}")).global.admin
    }

    fn listen(address: &str) -> AdminListen {
        admin(&format!("admin {address}")).unwrap().listen
    }

    fn errors(options: &str) -> Vec<String> {
        file_errors(&format!("{{\n{options}\n}}\n:80 {{\n}}"))
    }

    #[test]
    fn addresses() {
        let tcp = |host: &str, port| AdminListen::Tcp { host: host.into(), port };
        assert_eq!(admin(""), Some(Admin::default()));
        assert_eq!(admin("admin"), Some(Admin::default()));
        assert_eq!(admin("admin off"), None);
        assert_eq!(listen("localhost:2020"), tcp("localhost", 2020));
        assert_eq!(listen("tcp/127.0.0.1:2020"), tcp("127.0.0.1", 2020));
        assert_eq!(listen("[::1]:2020"), tcp("::1", 2020));
        assert_eq!(listen(":2020"), tcp("", 2020));
        assert_eq!(listen("unix//run/a.sock"), AdminListen::Unix { path: "/run/a.sock".into(), mode: 0o600 });
        assert_eq!(
            listen("unix//run/a.sock|0660"),
            AdminListen::Unix { path: "/run/a.sock".into(), mode: 0o660 }
        );
    }

    #[test]
    fn no_addresses() {
        for text in
            ["x", "localhost", "localhost:0", "localhost:x", "::1:2019", "[x]:1", "a/b:1", "unix/a", "\"\""]
        {
            let found = errors(&format!("admin {text}"));
            assert!(
                found.len() == 1 && found[0].contains("is no address for the admin API"),
                "{text}: {found:?}"
            );
        }
        assert!(errors("admin unix//a|0440")[0].contains("keeps out the socket's owner"));
    }

    #[test]
    fn origins() {
        let found = admin("admin {\norigins a.example https://b.example:81\nenforce_origin\n}").unwrap();
        assert_eq!(found.origins, ["a.example", "https://b.example:81"]);
        assert_eq!(found.origin_check, OriginCheck::Everyone);
    }

    #[test]
    fn mistakes() {
        let found = errors(
            "admin off {\n}\nadmin a:1 b:2\nadmin {\norigin a\norigins\nenforce_origin on\n}\nadmin {path}:1",
        );
        assert!(found[2].contains("did you mean `origins`?"), "{found:?}");
        assert_eq!(found.len(), 6, "{found:?}");
    }
}
