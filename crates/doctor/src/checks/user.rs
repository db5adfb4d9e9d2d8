//! Whose rights scripts have.

use crate::machine::user_of_php;
use crate::{Finding, Machine};
use regent_config::{AdminListen, Config, Confine, UserWish};

const STOLEN: &str =
    "Who finds a hole in an application takes the keys with him, and can be the site for everybody else.";

pub(super) fn check(config: &Config, machine: &Machine, findings: &mut Vec<Finding>) {
    match &config.global.php.user {
        None if machine.uid == 0 => findings.push(Finding::advice(
            "runs_as_root",
            "scripts run as root where root starts the server",
            "A hole in an application is then one in the whole machine.",
            "Write `user www-data` in the `regent` block, start the server as a user of its own, or, if it has one, ask \
             as that: `sudo -u USER regent doctor`.",
        )),
        Some(user) if user.wish == UserWish::Firm && ![0, user.uid].contains(&machine.uid) => {
            findings.push(Finding::advice(
                "user",
                format!("PHP is to run as {}: whether the server may do that, only root can say", user.name),
                "A server that is not root, and has not the capabilities CAP_SETUID, CAP_SETGID and CAP_KILL, refuses to \
                 start with a `user` other than its own.",
                "Ask as root. The Debian package's service has these capabilities, and root has.",
            ));
        }
        _ => {}
    }
    check_keys(config, machine, findings);
    check_admin(config, machine, findings);
}

/// The admin API has the server do what anybody likes who may ask it.
fn check_admin(config: &Config, machine: &Machine, findings: &mut Vec<Finding>) {
    let is_open =
        config.global.admin.as_ref().is_some_and(|admin| matches!(admin.listen, AdminListen::Tcp { .. }));
    let Some(user) = user_of_php(config, machine.uid).filter(|_| is_open) else { return };
    findings.push(Finding::advice(
        "admin_for_scripts",
        format!("scripts run as {}, and can ask the admin API all the same", user.name),
        "They can load a configuration by it, and so undo that they are another user than the server.",
        "Write `admin unix//run/regent/admin.sock`, or `admin off`, in the global options.",
    ));
}

fn check_keys(config: &Config, machine: &Machine, findings: &mut Vec<Finding>) {
    if is_closed(&config.global.php.confine) {
        return;
    }
    let open = machine.keys.iter().find(|key| key.is_open_to_php).map(|key| key.path.display());
    match (user_of_php(config, machine.uid), open) {
        // Those that are there, or will be.
        (None, key) if has_certificates(config) => {
            let storage = config.global.tls.storage.display();
            let key = key.map_or_else(|| format!("those in {storage}"), |key| key.to_string());
            findings.push(Finding::problem(
                "readable_keys",
                format!("scripts can read the private keys of certificates: {key}"),
                STOLEN,
                "Have PHP run as another user than the server (`user www-data` in the `regent` block, which takes root or the \
                 service of the Debian package), or name what it may read: `confine { read DIRECTORY }`, there.",
            ));
        }
        (Some(user), Some(key)) => findings.push(Finding::problem(
            "readable_keys",
            format!("scripts can read a private key: {key} is open to {}, whom PHP runs as", user.name),
            STOLEN,
            format!(
                "Give it to the server's user alone: `chmod 600 {key}`, and `chown` if it is {}'s.",
                user.name
            ),
        )),
        _ => {}
    }
}

/// What may be read is named then, and a configuration that opens a key so is refused.
fn is_closed(confine: &Confine) -> bool {
    matches!(confine, Confine::Asked(confinement) if confinement.read.is_some())
}

fn has_certificates(config: &Config) -> bool {
    config.servers.iter().flat_map(|server| &server.sites).any(|site| site.tls.is_some())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{config, machine, words};
    use super::*;
    use crate::machine::Key;

    fn of(options: &str, uid: u32) -> String {
        of_global("admin off", options, uid)
    }

    fn of_global(global: &str, options: &str, uid: u32) -> String {
        let config = config(&format!(
            "{{\n\t{global}\n\tregent {{\n{options}\n\t}}\n}}\nhttp://:8080 {{\n\tphp_server\n}}\n"
        ));
        words(|found| check(&config, &Machine { uid, ..machine() }, found))
    }

    #[test]
    fn an_admin_api_that_scripts_can_ask_undoes_their_user() {
        let found = of_global("", "user 33", 0);
        assert!(found.starts_with("Advice: scripts run as 33, and can ask the admin API"), "{found}");
        assert_eq!(of_global("admin unix//run/regent/admin.sock", "user 33", 0), "");
        // They are the same user.
        assert_eq!(of_global("", "user 33", 33), "");
    }

    #[test]
    fn scripts_are_not_to_be_roots() {
        assert!(of("", 0).starts_with("Advice: scripts run as root"));
        assert_eq!(of("user 33", 0), "");
        assert_eq!(of("", 33), "");
    }

    #[test]
    fn who_is_no_root_cannot_say_whether_the_server_may_change_users() {
        assert!(of("user 34", 33).starts_with("Advice: PHP is to run as 34"));
        assert_eq!(of("user 33", 33), "");
    }

    fn of_keys(options: &str, uid: u32, keys: &[(&str, bool)]) -> String {
        let config = config(&format!(
            "{{\n\tstorage file_system /var/keys\n\tregent {{\n{options}\n\t}}\n}}\nexample.com {{\n\tphp_server\n}}\n"
        ));
        let key = |(path, is_open_to_php): &(&str, bool)| Key {
            path: path.into(),
            is_open_to_php: *is_open_to_php,
        };
        let machine = Machine { uid, keys: keys.iter().map(key).collect(), ..machine() };
        words(|found| check_keys(&config, &machine, found))
    }

    #[test]
    fn keys_that_php_can_read_are_a_problem() {
        for options in ["", "confine", "confine {\nwrite /tmp\n}"] {
            let found = of_keys(options, 33, &[]);
            assert!(
                found.starts_with(
                    "Problem: scripts can read the private keys of certificates: those in /var/keys"
                ),
                "{found}"
            );
        }
        assert!(of_keys("", 33, &[("/k", true)]).contains("certificates: /k Have PHP"));
        let found = of_keys("user 34", 0, &[("/closed", false), ("/open", true)]);
        assert!(found.starts_with("Problem: scripts can read a private key: /open is open to 34"), "{found}");
    }

    #[test]
    fn keys_that_php_cannot_read_are_none() {
        assert_eq!(of_keys("user 34", 0, &[("/closed", false)]), "");
        assert_eq!(of_keys("confine {\nread /srv\n}", 33, &[("/k", true)]), "");
    }
}
