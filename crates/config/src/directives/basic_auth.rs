//! `basic_auth [MATCHER] [bcrypt | argon2id [REALM]] { USER HASH … }`: asks for a name and a password. `basicauth` is its old name.
//!
//! `regent hash-password` makes hashes, `regent hash-password --algorithm argon2id` those of argon2id. Who is let in is `{http.auth.user.id}`, and the `user_id` of access logs; to tell PHP:
//! `env REMOTE_USER {http.auth.user.id}`. Without a right password the answer is the error 401.
//!
//! Passwords are checked outside of the threads that serve connections, two at a time for each; one that was right is remembered. A
//! check by argon2id takes the memory that its hash says, 46 MiB by default.
//! It cannot stand in [handle_errors](#handle_errors) nor in [intercept](#intercept).
//!
//! ```caddyfile
//! basic_auth /admin/* {
//!     ada $2b$12$lGCbwvvPHASF24AEOjIQhOZDRGSeGyuFbExKlBbuXAlkmbbyETwSW
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{BasicAuth, Handler};
use crate::problems::{error, not_built_as, unknown};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use regent_caddyfile::{Error, Line, Token};

pub(super) const DIRECTIVE: Directive = super::handler(NAMES[0], parse);
pub(super) const OLD_DIRECTIVE: Directive =
    Directive { name: NAMES[1], sorts_as: NAMES[0], ..super::handler(NAMES[1], parse) };

const NAMES: [&str; 2] = ["basic_auth", "basicauth"];

/// As in Caddy.
const REALM: &str = "restricted";

/// Bytes behind the cost: 22 of salt and 31 of hash, six bits to each.
const SALT_AND_HASH: usize = 53;

/// Of a check by argon2id, in KiB.
const MOST_MEMORY: u32 = 1 << 20;
const MOST_PASSES: u32 = 32;
const MOST_LANES: u32 = 64;

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let syntax = "basic_auth [MATCHER] [bcrypt | argon2id [REALM]] { USER HASH … }";
    let algorithm = call.args.first().map_or(Ok(Algorithm::Bcrypt), algorithm)?;
    let realm = match call.args {
        [] | [_] => REALM.to_owned(),
        [_, realm] => cx.fixed_text(realm)?,
        _ => return Err(call.wrong_arguments(2, syntax)),
    };
    let mut users: Vec<(String, String)> = Vec::new();
    for option in call.options() {
        let user = user(cx, &option, algorithm);
        let Some((name, hash)) = cx.check(user) else { continue };
        if users.iter().any(|(known, _)| *known == name) {
            cx.errors.push(error(option.name, format!("the user `{name}` is there twice")));
        }
        users.push((name, hash));
    }
    if call.options().next().is_none() {
        return Err(error(call.name, format!("nobody could log in without users; write: {syntax}")));
    }
    Ok(Handler::BasicAuth(BasicAuth { realm: realm.replace(['"', '\\'], "'"), users }))
}

/// How the passwords are hashed.
#[derive(Clone, Copy)]
enum Algorithm {
    Bcrypt,
    Argon2id,
}

fn algorithm(token: &Token) -> Result<Algorithm, Error> {
    match token.text.as_str() {
        "bcrypt" => Ok(Algorithm::Bcrypt),
        "argon2id" => Ok(Algorithm::Argon2id),
        "scrypt" => Err(not_built_as(token, "basic_auth scrypt")),
        _ => Err(unknown(token, "algorithm", &["argon2id", "bcrypt"])),
    }
}

fn user(cx: &Context<'_>, option: &Call<'_>, algorithm: Algorithm) -> Result<(String, String), Error> {
    let token = option.one("USER HASH")?;
    let name = cx.fixed_text(option.name)?;
    if name.is_empty() || name.contains(':') {
        return Err(error(option.name, format!("`{name}` is no name of a user: a colon cannot be in it")));
    }
    let hash = plain(cx.fixed_text(token)?);
    match algorithm {
        Algorithm::Bcrypt if !is_bcrypt(&hash) => {
            Err(error(token, "this is no bcrypt hash, such as `regent hash-password` makes"))
        }
        Algorithm::Argon2id => {
            check_argon2id(&hash).map(|()| (name, hash)).map_err(|reason| error(token, reason))
        }
        Algorithm::Bcrypt => Ok((name, hash)),
    }
}

/// `$argon2id$v=19$m=47104,t=1,p=1$SALT$HASH` (the PHC string format), with the bounds of RFC 9106 section 3.1, and such of
/// ours that no check takes the machine.
fn check_argon2id(hash: &str) -> Result<(), String> {
    let malformed = || {
        "this is no hash of argon2id, such as `regent hash-password --algorithm argon2id` makes".to_owned()
    };
    let rest = hash.strip_prefix("$argon2id$v=19$").ok_or_else(malformed)?;
    let [costs, salt, output] = rest.split('$').collect::<Vec<_>>()[..] else { return Err(malformed()) };
    let mut costs = costs.split(',');
    let mut cost = |name: &str| costs.next()?.strip_prefix(name)?.parse::<u32>().ok();
    let (Some(memory), Some(passes), Some(lanes)) = (cost("m="), cost("t="), cost("p=")) else {
        return Err(malformed());
    };
    let is_base64 = |text: &str, least: usize| {
        STANDARD_NO_PAD.decode(text).is_ok_and(|bytes| (least..=64).contains(&bytes.len()))
    };
    if costs.next().is_some() || !is_base64(salt, 8) || !is_base64(output, 4) {
        return Err(malformed());
    }
    if lanes == 0 || passes == 0 || memory < 8 * lanes {
        return Err(malformed());
    }
    match memory <= MOST_MEMORY && passes <= MOST_PASSES && lanes <= MOST_LANES {
        true => Ok(()),
        false => Err(format!(
            "a check of this would take too much: at most {MOST_MEMORY} KiB (m), {MOST_PASSES} passes (t) and {MOST_LANES} lanes (p)"
        )),
    }
}

/// Before Caddy 2.6, hashes were written in base64.
fn plain(hash: String) -> String {
    let decoded = (!hash.starts_with('$')).then(|| STANDARD.decode(&hash).ok()).flatten();
    decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or(hash)
}

/// `$2b$12$` and 53 letters, digits, dots and slashes.
fn is_bcrypt(hash: &str) -> bool {
    let mut parts = hash.split('$');
    let (before, version, cost, rest) = (parts.next(), parts.next(), parts.next(), parts.next());
    let has_cost =
        |cost: &str| cost.len() == 2 && cost.parse().is_ok_and(|cost: u8| (4..=31).contains(&cost));
    before == Some("")
        && version.is_some_and(|version| ["2a", "2b", "2x", "2y"].contains(&version))
        && cost.is_some_and(has_cost)
        && rest.is_some_and(|rest| {
            rest.len() == SALT_AND_HASH
                && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/'))
        })
        && parts.next().is_none()
}

/// What is read when a response is there already asks for no password.
pub(super) fn refuse_within(cx: &mut Context<'_>, lines: &[Line], owner: &str) {
    for line in lines {
        if NAMES.contains(&line.name.text.as_str()) {
            cx.errors.push(not_built_as(&line.name, &format!("{} in {owner}", line.name.text)));
        }
        refuse_within(cx, line.block.as_deref().unwrap_or_default(), owner);
    }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{BasicAuth, Handler};

    const HASH: &str = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG";

    #[test]
    fn users_and_realm() {
        let users = vec![("ada".to_owned(), HASH.to_owned())];
        let expected = BasicAuth { realm: "restricted".into(), users: users.clone() };
        assert_eq!(handler(&format!("basic_auth /x {{\nada {HASH}\n}}")), Handler::BasicAuth(expected));
        let expected = BasicAuth { realm: "Staff".into(), users };
        assert_eq!(
            handler(&format!("basicauth bcrypt Staff {{\nada {HASH}\n}}")),
            Handler::BasicAuth(expected)
        );
    }

    #[test]
    fn hashes_may_be_in_base64_as_of_old() {
        let old = "JDJhJDE0JFpreDE5WExpVzZWWW91TEhSNU5tZk9GVTB6MkdUTm1wa1QvNXFxUjdoeDRJaldKUERoanZH";
        let Handler::BasicAuth(found) = handler(&format!("basicauth {{\nada {old}\n}}")) else { panic!() };
        assert_eq!(found.users, [("ada".to_owned(), HASH.to_owned())]);
    }

    #[test]
    fn hashes_of_argon2id_are_taken_where_they_are_named() {
        let hash = "$argon2id$v=19$m=47104,t=1,p=1$g4YZ2KZvQKbhmRY+ME8uxQ$3LJfpON4IxzBIPj96/Fa66jDBvLYTlMn0bmPgUMV3dE";
        let Handler::BasicAuth(found) = handler(&format!("basic_auth argon2id {{\nada {hash}\n}}")) else {
            panic!()
        };
        assert_eq!(found.users, [("ada".to_owned(), hash.to_owned())]);
        let found =
            |algorithm: &str, hash: &str| errors(&format!("basic_auth {algorithm} {{\nada \"{hash}\"\n}}"));
        assert!(found("bcrypt", hash)[0].contains("no bcrypt hash"));
        for (from, to) in [
            ("v=19", "v=16"),
            ("t=1", "t=0"),
            ("m=47104", "m=4"),
            ("p=1", "p"),
            ("$g4YZ2KZvQKbhmRY+ME8uxQ", "$g4YZ"),
            ("dE", "d!"),
        ] {
            let hash = hash.replace(from, to);
            assert!(found("argon2id", &hash)[0].contains("no hash of argon2id"), "{hash}");
        }
        assert!(found("argon2id", &hash.replace("m=47104", "m=2000000"))[0].contains("would take too much"));
        assert!(found("argon2id", HASH)[0].contains("no hash of argon2id"));
    }

    #[test]
    fn mistakes() {
        let found = errors(&format!(
            "basic_auth {{\nada secret\n\"a:b\" {HASH}\nbob {HASH}\nbob {HASH}\n}}\nbasic_auth\nbasic_auth md5 {{\nada {HASH}\n}}\n\
             handle_errors {{\nbasic_auth {{\nada {HASH}\n}}\n}}"
        ));
        assert_eq!(found.len(), 6, "{found:?}");
        for hash in ["$2a$03$", "$2z$10$", "2a$10$", "$2a$10"] {
            assert!(!super::is_bcrypt(&HASH.replacen("$2a$14$", hash, 1)), "{hash}");
        }
    }
}
