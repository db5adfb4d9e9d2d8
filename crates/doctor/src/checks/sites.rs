//! What sites serve.

use crate::{Finding, Machine};

pub(super) fn check(machine: &Machine, findings: &mut Vec<Finding>) {
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

#[cfg(test)]
mod tests {
    use super::super::fixture::{machine, words};
    use super::*;
    use crate::machine::Application;

    #[test]
    fn files_of_other_servers_are_told_of() {
        let file = regent_config::PassedOver { file: "/app/php.ini".into(), advice: "set PHPRC".into() };
        let found = words(|found| check(&Machine { passed_over: vec![file], ..machine() }, found));
        assert!(found.contains("/app/php.ini is there") && found.contains("set PHPRC"), "{found}");
    }

    #[test]
    fn a_root_is_to_be_there_and_public() {
        let application = Application { root: "/app".into(), exists: true, ..Default::default() };
        let of = |application| {
            words(|found| check(&Machine { applications: vec![application], ..machine() }, found))
        };
        assert_eq!(of(application.clone()), "");
        assert!(of(Application { exists: false, ..application.clone() }).contains("/app is no directory"));
        let whole = of(Application { public: Some("/app/public".into()), ..application });
        assert!(whole.contains("Write `root /app/public`"), "{whole}");
    }
}
