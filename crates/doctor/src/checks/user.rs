//! Whose rights scripts have.

use crate::{Finding, Machine};
use regent_config::Config;

pub(super) fn check(config: &Config, machine: &Machine, findings: &mut Vec<Finding>) {
    match &config.global.php.user {
        None if machine.uid == 0 => findings.push(Finding::advice(
            "runs_as_root",
            "scripts run as root where root starts the server",
            "A hole in an application is then one in the whole machine.",
            "Write `user www-data` in the `regent` block, start the server as a user of its own, or, if it has one, ask \
             as that: `sudo -u USER regent doctor`.",
        )),
        Some(user) if machine.uid != 0 && machine.uid != user.uid => findings.push(Finding::problem(
            "user",
            format!("PHP is to run as {}, and this user cannot start it as another", user.name),
            "A server that is not root refuses to start with a `user` other than its own.",
            "Start the server as root, or leave `user` out; if root starts it already, ask as root.",
        )),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{config, machine, words};
    use super::*;

    fn of(options: &str, uid: u32) -> String {
        let config =
            config(&format!("{{\n\tregent {{\n{options}\n\t}}\n}}\nhttp://:8080 {{\n\tphp_server\n}}\n"));
        words(|found| check(&config, &Machine { uid, ..machine() }, found))
    }

    #[test]
    fn scripts_are_not_to_be_roots() {
        assert!(of("", 0).starts_with("Advice: scripts run as root"));
        assert_eq!(of("user 33", 0), "");
        assert_eq!(of("", 33), "");
    }

    #[test]
    fn only_root_can_start_engines_as_others() {
        assert!(of("user 34", 33).starts_with("Problem: PHP is to run as 34"));
        assert_eq!(of("user 33", 33), "");
    }
}
