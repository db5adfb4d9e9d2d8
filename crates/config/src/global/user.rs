//! `user NAME [GROUP]`, in `frankenphp`: PHP and native modules run as this user, so that scripts can neither signal the server
//! nor read what only its own user may: the keys of certificates above all. Numbers are possible too. Without `GROUP` it is the
//! user's own; there are no others.
//!
//! Users and groups are those of `/etc/passwd` and `/etc/group`. The server has to be started as root; see
//! [a user for PHP](operations.md#a-user-for-php).

use crate::call::Call;
use crate::context::Context;
use crate::model::EngineUser;
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::fs;

const SYNTAX: &str = "user NAME [GROUP]";
const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";
/// The number of one that is not there, which the kernel refuses to become (setresuid(2)).
const NOBODY: u32 = u32::MAX;

pub(super) fn parse(cx: &mut Context<'_>, option: &Call<'_>) -> Result<EngineUser, Error> {
    option.without_block(SYNTAX)?;
    let (name, group) = match option.args {
        [name] => (name, None),
        [name, group] => (name, Some(group)),
        args => return Err(option.wrong_arguments(if args.is_empty() { 1 } else { 2 }, SYNTAX)),
    };
    let user = cx.fixed_text(name)?;
    let (uid, own_gid) = match (find(USERS, name, &user)?, user.parse()) {
        (Some(fields), _) => (number(&fields, 2), number(&fields, 3)),
        (None, Ok(uid)) => (Some(uid), Some(uid)),
        (None, Err(_)) => {
            missing(cx, name, format!("{USERS} has no user `{user}`"));
            (Some(NOBODY), Some(NOBODY))
        }
    };
    let (gid, group) = match group {
        None => (own_gid, None),
        Some(token) => {
            let group = cx.fixed_text(token)?;
            let gid = match (find(GROUPS, token, &group)?, group.parse()) {
                (Some(fields), _) => number(&fields, 2),
                (None, Ok(gid)) => Some(gid),
                (None, Err(_)) => {
                    missing(cx, token, format!("{GROUPS} has no group `{group}`"));
                    Some(NOBODY)
                }
            };
            (gid, Some(group))
        }
    };
    let numbers = uid.zip(gid);
    let (uid, gid) = numbers.ok_or_else(|| error(name, format!("the line of `{user}` has no numbers")))?;
    Ok(EngineUser { name: user, uid, gid, group })
}

/// No server starts without it; what is adapted here may run on a machine that has it.
fn missing(cx: &mut Context<'_>, token: &Token, message: String) {
    cx.warn(token, message.clone());
    cx.missing.push(error(token, message));
}

/// The fields of the line that begins with the name (passwd(5), group(5)).
fn find(file: &str, token: &Token, name: &str) -> Result<Option<Vec<String>>, Error> {
    let text = fs::read(file).map_err(|cause| error(token, format!("{file} cannot be read: {cause}")))?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().map(|line| line.split(':'));
    let line = lines.find(|fields| fields.clone().next() == Some(name));
    Ok(line.map(|fields| fields.map(str::to_owned).collect()))
}

fn number(fields: &[String], index: usize) -> Option<u32> {
    fields.get(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors, load};
    use crate::model::EngineUser;

    fn text(arguments: &str) -> String {
        format!("{{\nregent {{\nuser {arguments}\n}}\n}}\n:80 {{\n}}")
    }

    #[test]
    fn users_by_name_and_number() {
        let user = |arguments: &str| config(&text(arguments)).global.php.user;
        let user_of = |name: &str, uid, gid, group: Option<&str>| {
            Some(EngineUser { name: name.into(), uid, gid, group: group.map(str::to_owned) })
        };
        assert_eq!(user("root"), user_of("root", 0, 0, None));
        assert_eq!(user("4000000"), user_of("4000000", 4_000_000, 4_000_000, None));
        assert_eq!(user("4000000 root"), user_of("4000000", 4_000_000, 0, Some("root")));
        assert_eq!(user("root 4000000"), user_of("root", 0, 4_000_000, Some("4000000")));
    }

    #[test]
    fn a_user_that_this_machine_does_not_have_may_be_one_of_the_machine_that_the_server_starts_on() {
        for arguments in ["no-such-user", "root no-such-group"] {
            let loaded = load(&text(arguments)).unwrap();
            assert_eq!(loaded.warnings.len(), 1, "{arguments}");
            let errors = loaded.complete().unwrap_err().to_string();
            assert!(errors.contains("has no"), "{errors}");
        }
    }

    #[test]
    fn mistakes() {
        for arguments in ["", "a b c", "root {\n}", "{path}"] {
            assert_eq!(file_errors(&text(arguments)).len(), 1, "{arguments}");
        }
    }
}
