//! What sites serve.

use crate::{Finding, Machine};
use regent_config::{Config, Handler};

pub(super) fn check(config: &Config, machine: &Machine, findings: &mut Vec<Finding>) {
    check_cron(config, machine, findings);
    for application in &machine.applications {
        let root = application.root.display();
        if !application.exists {
            findings.push(Finding::problem(
                "root",
                format!("the root {root} is no directory, or cannot be looked into"),
                "Every request is answered with 404.",
                "Correct `root`; a relative path starts from the directory that the server is started in.",
            ));
        }
        if let Some(public) = &application.public {
            findings.push(Finding::problem(
                "root",
                format!("the root {root} is that of a whole project"),
                "Visitors can ask for what is not meant for them: scripts of libraries, configuration, logs.",
                format!("Write `root {}`.", public.display()),
            ));
        }
    }
    for file in &machine.passed_over {
        findings.push(Finding::advice(
            "passed_over",
            format!("{} is there and is not read", file.file.display()),
            "What another server did by it is not done: settings, protection of folders.",
            format!("Take it away when it is no longer needed. Until then, {}.", file.advice),
        ));
    }
}

fn check_cron(config: &Config, machine: &Machine, findings: &mut Vec<Finding>) {
    let Some(application) = machine.applications.iter().find(|application| application.has_wp_cron) else {
        return;
    };
    if !config.handlers().any(|handler| matches!(handler, Handler::RunDeparted)) {
        findings.push(Finding::advice(
            "wp_cron",
            format!("{} has wp-cron.php, and its requests end when their clients leave", application.root.display()),
            "WordPress asks for its cron and does not wait: while all threads are busy, that request is taken out of the queue.",
            "Write `run_departed /wp-cron.php` in the site, or set DISABLE_WP_CRON and run the cron with `task`.",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{config, machine, words};
    use super::*;
    use crate::machine::Application;

    #[test]
    fn files_of_other_servers_are_told_of() {
        let file = regent_config::PassedOver { file: "/app/php.ini".into(), advice: "set PHPRC".into() };
        let site = config("http://:8080 {\n\tphp_server\n}\n");
        let found = words(|found| check(&site, &Machine { passed_over: vec![file], ..machine() }, found));
        assert!(found.contains("/app/php.ini is there") && found.contains("set PHPRC"), "{found}");
    }

    #[test]
    fn a_root_is_to_be_there_and_public() {
        let application = Application { root: "/app".into(), exists: true, ..Default::default() };
        let of = |application| {
            let site = config("http://:8080 {\n\tphp_server\n}\n");
            words(|found| check(&site, &Machine { applications: vec![application], ..machine() }, found))
        };
        assert_eq!(of(application.clone()), "");
        assert!(of(Application { exists: false, ..application.clone() }).contains("/app is no directory"));
        let whole = of(Application { public: Some("/app/public".into()), ..application });
        assert!(whole.contains("Write `root /app/public`"), "{whole}");
    }

    #[test]
    fn the_cron_of_wordpress_is_named_until_it_runs_without_its_client() {
        let application =
            Application { root: "/app".into(), exists: true, has_wp_cron: true, ..Default::default() };
        let of = |directive: &str| {
            let site =
                config(&format!("http://:8080 {{\n\thandle {{\n\t\t{directive}\n\t\tphp_server\n\t}}\n}}\n"));
            let machine = Machine { applications: vec![application.clone()], ..machine() };
            words(|found| check(&site, &machine, found))
        };
        assert!(of("").contains("Write `run_departed /wp-cron.php`"), "{}", of(""));
        assert_eq!(of("run_departed /wp-cron.php"), "");
    }
}
