//! php.ini, what stands in its place, and `php_ini` of the configuration.
#![forbid(unsafe_code)]

use regent_tests::{Setup, regent_command};

const ARGUMENTS: &str = "<?php echo json_encode([$_SERVER['argv'] ?? null, $_SERVER['argc'] ?? null, $argv ?? null, ini_get('register_argc_argv')]);";

fn without_php_ini() -> Setup {
    Setup::new().env("PHPRC", "ROOT/empty.ini").env("PHP_INI_SCAN_DIR", "").file("empty.ini", "")
}

#[test]
fn a_query_was_a_command_line_without_a_php_ini() {
    let server = without_php_ini().file("index.php", ARGUMENTS).start();
    assert_eq!(server.get("/?--env=local").expect(200).json(), serde_json::json!([null, null, null, "0"]));
    server.stop();
}

#[test]
fn a_php_ini_of_the_project_is_named_and_read_where_the_environment_says_so() {
    let site = || {
        let setup = Setup::new().file("index.php", "<?php echo ini_get('precision');");
        setup.file("../php.ini", "precision = 9").file("../frankenphp.ini", "precision = 8")
    };
    let server = site().start();
    assert_ne!(server.get("/").expect(200).text(), "9");
    server.wait_for_log("/php.ini is not read: start Regent with PHPRC=");
    server.wait_for_log("/frankenphp.ini is not read");
    let output =
        regent_command(server.directory()).args(["validate", "--config", "Caddyfile"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("/php.ini is not read"), "{said}");
    server.stop();
    let server = site().env("PHPRC", "DIRECTORY").start();
    assert_eq!(server.get("/").expect(200).text(), "9");
    server.wait_for_log("/frankenphp.ini is not read");
    assert!(!server.log().contains("/php.ini is not read"), "{}", server.log());
    server.stop();
}

#[test]
fn php_ini_may_ask_for_argv() {
    let server =
        without_php_ini().file("empty.ini", "register_argc_argv = On").file("index.php", ARGUMENTS).start();
    assert_eq!(server.get("/?a+b").expect(200).json()[0], serde_json::json!(["a", "b"]));
    server.stop();
}

#[test]
fn the_configuration_may_ask_for_argv() {
    let server = Setup::new()
        .php_options("num_threads 2\nphp_ini register_argc_argv On")
        .file("index.php", ARGUMENTS)
        .start();
    assert_eq!(server.get("/?a+b").expect(200).json()[0], serde_json::json!(["a", "b"]));
    server.stop();
}

#[test]
fn a_misspelt_setting_did_nothing_without_a_word() {
    let server = Setup::new()
        .php_options("num_threads 2\nphp_ini {\nmemry_limit 1G\nmemory_limit 64M\nxdebug.mode off\nopcache.enable 1\n}")
        .file("index.php", "<?php echo ini_get('memory_limit');")
        .start();
    assert_eq!(server.get("/").expect(200).text(), "64M");
    server.wait_for_log("PHP has no setting `memry_limit`; did you mean `memory_limit`?");
    server.wait_for_log("PHP has no setting `xdebug.mode`; is the extension `xdebug` loaded?");
    let complaints = server.log().matches("PHP has no setting").count();
    assert_eq!(complaints, 2, "{}", server.log());
    server.stop();
}

#[test]
fn values_of_php_ini_were_all_taken_for_text() {
    let settings = [
        ("error_reporting", "\"E_ERROR | E_WARNING\"", "3"),
        ("output_buffering", "On", "1"),
        ("auto_prepend_file", "none", ""),
        ("open_basedir", "none", ""),
        ("user_agent", "`Tom & \"Jerry\"; ${HOME}`", "Tom & \"Jerry\"; ${HOME}"),
        ("memory_limit", "64M", "64M"),
        ("date.timezone", "UTC", "UTC"),
        ("default_charset", "\"\"", ""),
        ("error_log", "'syslog'", "syslog"),
    ];
    let lines: String =
        settings.iter().map(|(name, value, _)| format!("\t\tphp_ini {name} {value}\n")).collect();
    let server = Setup::new()
        .php_options(&format!("num_threads 2\n{lines}"))
        .file("index.php", "<?php echo json_encode(array_map('ini_get', $_GET['names']));")
        .start();
    let query: Vec<_> = settings.iter().map(|(name, ..)| format!("names[]={name}")).collect();
    let seen = server.get(&format!("/?{}", query.join("&"))).expect(200).json();
    let expected: Vec<_> = settings.iter().map(|(_, _, value)| *value).collect();
    assert_eq!(seen, serde_json::json!(expected));
    server.stop();
}
