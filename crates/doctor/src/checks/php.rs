//! Settings of PHP that visitors, attackers or developers would notice.

use crate::{Finding, PhpFacts};
use regent_config::Config;

/// Their authors say, or their code shows, that threads break them.
const NOT_THREAD_SAFE: [&str; 3] = ["imap", "newrelic", "ioncube loader"];
/// For development: they look at every call.
const SLOW: [&str; 3] = ["xdebug", "pcov", "xhprof"];

pub(super) fn check(config: &Config, php: &PhpFacts, findings: &mut Vec<Finding>) {
    check_file(php, findings);
    check_what_visitors_see(php, findings);
    check_uploads(php, findings);
    check_extensions(php, findings);
    if php.is_on("register_argc_argv") {
        findings.push(Finding::problem(
            "register_argc_argv",
            "register_argc_argv is on",
            "The query of a request passes for a command line, which frameworks obey (CVE-2024-52301).",
            "Set `register_argc_argv = Off` in php.ini.",
        ));
    }
    if php.number("zend.assertions") == Some(1) {
        findings.push(Finding::advice(
            "assertions",
            "zend.assertions is 1",
            "Assertions are for development: they are compiled into all scripts, and take time.",
            "Set `zend.assertions = -1` in php.ini.",
        ));
    }
    check_time_limits(config, php, findings);
}

fn check_time_limits(config: &Config, php: &PhpFacts, findings: &mut Vec<Finding>) {
    if config.global.php.request_timeout.is_some() {
        return;
    }
    let what = match php.number("max_execution_time") {
        Some(0) => "max_execution_time is 0, and there is no request_timeout",
        _ => "there is no request_timeout",
    };
    let why = match config.global.php.departed_timeout {
        Some(_) => {
            "A script that waits for a server that does not answer keeps its thread as long as its client waits, and after that \
             until departed_timeout ends it: a service that hangs takes thread after thread."
        }
        None => "A script that hangs keeps its thread for ever; enough of them, and nobody is served.",
    };
    findings.push(Finding::advice(
        "time_limit",
        what,
        why,
        "Set `request_timeout 60s` in the `regent` block, or what your slowest page needs; routes and workers may have more. It \
         counts time that scripts wait, too, which max_execution_time of PHP cannot end.",
    ));
}

fn check_file(php: &PhpFacts, findings: &mut Vec<Finding>) {
    if php.ini.is_none() {
        findings.push(Finding::advice(
            "php_ini",
            "PHP has found no php.ini",
            "Its built-in values are for development: errors are shown to visitors.",
            "Copy PHP's php.ini-production to where `regent php-cli --ini` says that it is looked for.",
        ));
    }
}

fn check_what_visitors_see(php: &PhpFacts, findings: &mut Vec<Finding>) {
    // PHP's built-in value is "1".
    if php.is_on("display_errors") || php.value("display_errors").is_none() {
        findings.push(Finding::problem(
            "display_errors",
            "display_errors is on",
            "Visitors see the messages of PHP, with paths and sometimes passwords.",
            "Set `display_errors = Off` and `log_errors = On` in php.ini.",
        ));
    }
    if php.is_on("expose_php") {
        findings.push(Finding::advice(
            "expose_php",
            "expose_php is on",
            "Each response tells the version of PHP (X-Powered-By), by which attackers choose their targets.",
            "Set `expose_php = Off` in php.ini.",
        ));
    }
}

fn check_uploads(php: &PhpFacts, findings: &mut Vec<Finding>) {
    let (Some(post), Some(upload)) = (php.number("post_max_size"), php.number("upload_max_filesize")) else {
        return;
    };
    // 0: any size.
    if post > 0 && post < upload {
        findings.push(Finding::problem(
            "uploads",
            format!(
                "post_max_size ({} KiB) is less than upload_max_filesize ({} KiB)",
                post >> 10,
                upload >> 10
            ),
            "An upload between the two loses all of its form: $_POST and $_FILES are empty.",
            "Set post_max_size in php.ini to somewhat more than upload_max_filesize.",
        ));
    }
}

fn check_extensions(php: &PhpFacts, findings: &mut Vec<Finding>) {
    for name in NOT_THREAD_SAFE.into_iter().filter(|name| php.threads && php.has(name)) {
        findings.push(Finding::problem(
            "thread_safety",
            format!("the extension {name} is loaded"),
            "It is not made for threads: requests damage each other's data, or crash the engine.",
            format!("Take {name} out of php.ini; FrankenPHP's list of known issues names replacements."),
        ));
    }
    for name in SLOW.into_iter().filter(|name| php.has(name)) {
        findings.push(Finding::advice(
            "slow_extension",
            format!("the extension {name} is loaded"),
            "It looks at every call of a script, which makes all of them slower.",
            format!("Load {name} where you develop, and not where you serve."),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{config, php, php_with, words};
    use super::*;

    const SITE: &str = "{\n\tregent {\n\t\trequest_timeout 60s\n\t}\n}\nhttp://:8080 {\n\tphp_server\n}\n";

    fn of(php: &PhpFacts) -> String {
        words(|found| check(&config(SITE), php, found))
    }

    #[test]
    fn settings_are_found_that_should_be_otherwise() {
        for (name, value, severity) in [
            ("display_errors", "1", "Problem"),
            ("register_argc_argv", "On", "Problem"),
            ("expose_php", "1", "Advice"),
            ("zend.assertions", "1", "Advice"),
            ("post_max_size", "1M", "Problem"),
        ] {
            let found = of(&php_with(name, value));
            assert!(
                found.starts_with(severity) && found.contains(name) && !found.contains('\n'),
                "{name}: {found}"
            );
        }
    }

    #[test]
    fn errors_are_shown_where_no_file_says_otherwise() {
        let mut php = php();
        php.settings.insert("display_errors".into(), None);
        assert!(of(&php).contains("display_errors is on"));
        php.ini = None;
        assert!(of(&php).contains("no php.ini"));
    }

    #[test]
    fn a_server_without_a_time_limit_is_told_of_it() {
        let of = |options: &str, limit: &str| {
            let text =
                format!("{{\n\tregent {{\n\t\t{options}\n\t}}\n}}\nhttp://:8080 {{\n\tphp_server\n}}\n");
            words(|found| check(&config(&text), &php_with("max_execution_time", limit), found))
        };
        assert!(of("", "30").starts_with("Advice: there is no request_timeout"));
        assert!(of("departed_timeout off", "0").starts_with("Advice: max_execution_time is 0"));
        assert_eq!(of("request_timeout 60s", "0"), "");
    }

    #[test]
    fn extensions_are_named() {
        let mut php = php();
        php.extensions.extend(["imap".into(), "Xdebug".into()]);
        let found = of(&php);
        assert!(
            found.contains("Problem: the extension imap") && found.contains("Advice: the extension xdebug"),
            "{found}"
        );
    }
}
