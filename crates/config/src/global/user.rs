//! `user NAME [GROUP]`, in `frankenphp`: PHP and native modules run as this user, so that scripts can neither signal the server
//! nor read what only its own user may: the keys of certificates above all. Numbers are possible too. Without `GROUP` it is the
//! user's own; there are no others.
//!
//! Users and groups are those of `/etc/passwd` and `/etc/group`. The server has to be started as root, or with the capabilities
//! `CAP_SETUID`, `CAP_SETGID` and `CAP_KILL`; see [a user for PHP](rights.md#a-user-for-php).
//!
//! Without the option it is whom `REGENT_PHP_USER` in the server's environment names, if the server may; the container image
//! names `www-data` there.

use crate::call::Call;
use crate::context::Context;
use crate::model::{EngineUser, UserHome, UserWish};
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::fs;

const SYNTAX: &str = "user NAME [GROUP]";
/// Names whom PHP runs as where no configuration does, as the container image has it.
const VARIABLE: &str = "REGENT_PHP_USER";
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
    let group = group.map(|group| Ok((group, cx.fixed_text(group)?))).transpose()?;
    let group_name = group.as_ref().map(|(_, name)| name.as_str());
    let user = of_names(&cx.fixed_text(name)?, group_name, UserWish::Firm)
        .map_err(|message| error(name, message))?;
    if let Some(message) = missing_user(&user) {
        missing(cx, name, message);
    }
    if let Some((token, message)) = group.and_then(|(token, _)| Some((token, missing_group(&user)?))) {
        missing(cx, token, message);
    }
    Ok(user)
}

/// Whom the environment names in [`VARIABLE`], for configurations that name nobody: a user, and after a space a group.
pub(crate) fn of_environment(cx: &Context<'_>) -> Result<Option<EngineUser>, Error> {
    let text = cx.environment.variable(VARIABLE).unwrap_or_default();
    let wrong = |message: String| Error::without_span(format!("{VARIABLE}={text}: {message}"));
    let user = match text.split_whitespace().collect::<Vec<_>>()[..] {
        [] => return Ok(None),
        [name] => of_names(name, None, UserWish::IfPossible),
        [name, group] => of_names(name, Some(group), UserWish::IfPossible),
        _ => Err("say NAME, or NAME GROUP".to_owned()),
    };
    let user = user.map_err(wrong)?;
    missing_user(&user).or_else(|| missing_group(&user)).map_or(Ok(Some(user)), |message| Err(wrong(message)))
}

/// Those that are not there have the number of [`NOBODY`].
fn of_names(name: &str, group: Option<&str>, wish: UserWish) -> Result<EngineUser, String> {
    let no_numbers = |name: &str| format!("the line of `{name}` has no numbers");
    let line = find(USERS, name)?;
    let home = line.as_ref().and_then(|fields| {
        Some(UserHome { directory: fields.get(5)?.clone(), shell: fields.get(6)?.clone() })
    });
    let (uid, own_gid) = match (line, name.parse()) {
        (Some(fields), _) => {
            let numbers = number(&fields, 2).zip(number(&fields, 3));
            numbers.ok_or_else(|| no_numbers(name))?
        }
        (None, number) => {
            let number = number.unwrap_or(NOBODY);
            (number, number)
        }
    };
    let gid = match group {
        None => own_gid,
        Some(group) => match (find(GROUPS, group)?, group.parse()) {
            (Some(fields), _) => number(&fields, 2).ok_or_else(|| no_numbers(group))?,
            (None, number) => number.unwrap_or(NOBODY),
        },
    };
    Ok(EngineUser { name: name.to_owned(), uid, gid, group: group.map(str::to_owned), home, wish })
}

fn missing_user(user: &EngineUser) -> Option<String> {
    (user.uid == NOBODY).then(|| format!("{USERS} has no user `{}`", user.name))
}

fn missing_group(user: &EngineUser) -> Option<String> {
    let group = user.group.as_ref().filter(|_| user.gid == NOBODY)?;
    Some(format!("{GROUPS} has no group `{group}`"))
}

/// No server starts without it; what is adapted here may run on a machine that has it.
fn missing(cx: &mut Context<'_>, token: &Token, message: String) {
    cx.warn(token, message.clone());
    cx.missing.push(error(token, message));
}

/// The fields of the line that begins with the name (passwd(5), group(5)).
fn find(file: &str, name: &str) -> Result<Option<Vec<String>>, String> {
    let text = fs::read(file).map_err(|cause| format!("{file} cannot be read: {cause}"))?;
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
    use crate::environment::Environment;
    use crate::load::{Loaded, parse};
    use crate::model::{EngineUser, UserWish};
    use regent_caddyfile::Errors;
    use std::path::Path;

    fn text(arguments: &str) -> String {
        format!("{{\nregent {{\nuser {arguments}\n}}\n}}\n:80 {{\n}}")
    }

    #[test]
    fn users_by_name_and_number() {
        let user = |arguments: &str| {
            let user = config(&text(arguments)).global.php.user?;
            Some(EngineUser { home: None, ..user })
        };
        let user_of = |name: &str, uid, gid, group: Option<&str>| {
            let group = group.map(str::to_owned);
            Some(EngineUser { name: name.into(), uid, gid, group, home: None, wish: UserWish::Firm })
        };
        assert_eq!(user("root"), user_of("root", 0, 0, None));
        assert_eq!(user("4000000"), user_of("4000000", 4_000_000, 4_000_000, None));
        assert_eq!(user("4000000 root"), user_of("4000000", 4_000_000, 0, Some("root")));
        assert_eq!(user("root 4000000"), user_of("root", 0, 4_000_000, Some("4000000")));
    }

    #[test]
    fn a_user_is_at_home_where_passwd_says_and_a_number_nowhere() {
        let home = |arguments: &str| config(&text(arguments)).global.php.user.unwrap().home;
        assert!(home("root").is_some_and(|home| home.directory.starts_with('/') && !home.shell.is_empty()));
        assert_eq!(home("4000000"), None);
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

    fn in_environment(value: &str, text: &str) -> Result<Loaded, Errors> {
        let variables = [("REGENT_PHP_USER".to_owned(), value.to_owned())].into();
        let environment = Environment { variables, current_dir: "/".into() };
        parse("Caddyfile", text, Path::new("/"), &environment)
    }

    #[test]
    fn the_environment_names_whom_a_configuration_leaves_open() {
        let user = |value: &str, text: &str| {
            let user = in_environment(value, text).unwrap().config.global.php.user?;
            Some((user.uid, user.gid, user.wish))
        };
        assert_eq!(user("4000000 root", ":80 {\n}"), Some((4_000_000, 0, UserWish::IfPossible)));
        assert_eq!(user("4000000", &text("root")), Some((0, 0, UserWish::Firm)));
        assert_eq!(user(" ", ":80 {\n}"), None);
    }

    #[test]
    fn mistakes_of_the_environment_name_the_variable() {
        for (value, expected) in [
            ("no-such-user", "REGENT_PHP_USER=no-such-user: /etc/passwd has no user `no-such-user`"),
            (
                "root no-such-group",
                "REGENT_PHP_USER=root no-such-group: /etc/group has no group `no-such-group`",
            ),
            ("a b c", "REGENT_PHP_USER=a b c: say NAME, or NAME GROUP"),
        ] {
            assert_eq!(in_environment(value, ":80 {\n}").unwrap_err().to_string(), expected);
        }
    }
}
