//! What PHP is started with for a test: php.ini and environment. Tests with the same settings share a server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::phpt::Phpt;

/// The values that run-tests.php sets for every test (`$ini_overwrites`), and opcache as servers have it.
const DEFAULTS: &str = "\
zend_extension = opcache
opcache.enable = 1
opcache.enable_cli = 0
opcache.memory_consumption = 192
opcache.interned_strings_buffer = 16
opcache.max_accelerated_files = 20000
opcache.fast_shutdown = 0
opcache.file_update_protection = 0
opcache.revalidate_freq = 0
output_handler =
open_basedir =
disable_functions =
output_buffering = Off
error_reporting = 32767
display_errors = 1
display_startup_errors = 1
log_errors = 0
html_errors = 0
report_memleaks = 1
docref_root =
docref_ext = .html
error_prepend_string =
error_append_string =
auto_prepend_file =
auto_append_file =
ignore_repeated_errors = 0
precision = 14
serialize_precision = -1
memory_limit = 128M
zend.assertions = 1
zend.exception_ignore_args = 0
zend.exception_string_param_max_len = 15
short_open_tag = 0
date.timezone = UTC
";

/// Variables of a CGI request, which are part of the request and not of the environment of a server.
const OF_THE_REQUEST: [&str; 4] = ["REQUEST_METHOD", "QUERY_STRING", "CONTENT_TYPE", "CONTENT_LENGTH"];

/// php.ini beyond [`DEFAULTS`], and environment beyond that of every test.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Settings {
    ini: Vec<u8>,
    environment: BTreeMap<String, String>,
}

/// Where a test's placeholders point to.
pub struct Places<'a> {
    pub test_directory: &'a Path,
    pub temporary: &'a Path,
}

impl Settings {
    pub fn of(test: &Phpt, places: &Places<'_>) -> Self {
        let ini = test.get("INI").map(|text| ini_lines(text, places)).unwrap_or_default();
        let environment =
            variables(test, places).into_iter().filter(|(name, _)| !is_of_the_request(name)).collect();
        Self { ini, environment }
    }

    pub fn ini_file(&self) -> Vec<u8> {
        [DEFAULTS.as_bytes(), &self.ini].concat()
    }

    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }
}

/// What the ENV section says of the request, as CGI variables.
pub fn request_variables(test: &Phpt, places: &Places<'_>) -> BTreeMap<String, String> {
    variables(test, places).into_iter().filter(|(name, _)| is_of_the_request(name)).collect()
}

/// The environment of PHP in every test, beside `HOME`, `TMPDIR` and the like, which the test harness sets.
pub fn common_environment(bin: &Path, tree: &Path) -> Vec<(&'static str, PathBuf)> {
    vec![
        ("TEST_PHP_EXECUTABLE", bin.join("php")),
        ("TEST_PHP_EXECUTABLE_ESCAPED", bin.join("php")),
        ("TEST_PHP_CGI_EXECUTABLE", bin.join("php-cgi")),
        ("TEST_PHP_CGI_EXECUTABLE_ESCAPED", bin.join("php-cgi")),
        ("TEST_PHP_SRCDIR", tree.to_owned()),
        ("TEST_PHP_EXTRA_ARGS", PathBuf::new()),
        ("TZ", PathBuf::new()),
        ("NO_INTERACTION", "1".into()),
        ("SKIP_ONLINE_TESTS", "1".into()),
        ("SKIP_SLOW_TESTS", "1".into()),
        ("SKIP_PERF_SENSITIVE", "1".into()),
    ]
}

fn is_of_the_request(name: &str) -> bool {
    OF_THE_REQUEST.contains(&name) || name.starts_with("HTTP_")
}

fn variables(test: &Phpt, places: &Places<'_>) -> BTreeMap<String, String> {
    let text = test.text("ENV").replace("{PWD}", &places.test_directory.display().to_string());
    let pairs = text.lines().filter_map(|line| line.trim().split_once('='));
    pairs.filter(|(name, _)| !name.is_empty()).map(|(name, value)| (name.into(), value.into())).collect()
}

/// The lines of an INI section as PHP takes them from `-d name=value` (php_ini_builder_define()). Without white space at
/// their ends and in order: what means the same is the same text.
fn ini_lines(section: &[u8], places: &Places<'_>) -> Vec<u8> {
    let directory = places.test_directory.as_os_str().as_encoded_bytes();
    let text = replace(section, b"{PWD}", directory);
    let text = replace(&text, b"{TMP}", places.temporary.as_os_str().as_encoded_bytes());
    let mut lines: Vec<_> = text.split(|byte| b"\r\n".contains(byte)).filter_map(ini_line).collect();
    lines.sort();
    lines.concat()
}

fn ini_line(line: &[u8]) -> Option<Vec<u8>> {
    let equals = line.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (line[..equals].trim_ascii(), mail_command(line[equals + 1..].trim_ascii()));
    let is_plain = value.first().is_none_or(|first| first.is_ascii_alphanumeric() || b"\"'".contains(first));
    let quote: &[u8] = if is_plain { b"" } else { b"\"" };
    Some([name, b"=", quote, &value, quote, b"\n"].concat())
}

/// `{MAIL:FILE}` is a program that writes mail to the file.
fn mail_command(value: &[u8]) -> Vec<u8> {
    match value.strip_prefix(b"{MAIL:").and_then(|rest| rest.strip_suffix(b"}")) {
        Some(file) => [b"\"tee ", file, b" >/dev/null\""].concat(),
        None => value.to_vec(),
    }
}

fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(section: &str) -> String {
        let places = Places { test_directory: Path::new("/t/dir"), temporary: Path::new("/t/tmp") };
        String::from_utf8(ini_lines(section.as_bytes(), &places)).expect("it is text")
    }

    #[test]
    fn the_same_settings_in_another_order_are_the_same() {
        assert_eq!(lines("b = 2\na=1\n"), lines("a = 1\r\n\r\nb=2"));
        assert_eq!(lines("; no setting\nprecision = 10\n"), "precision=10\n");
    }

    #[test]
    fn values_are_quoted_as_on_the_command_line() {
        assert_eq!(lines("open_basedir=."), "open_basedir=\".\"\n");
        assert_eq!(lines("a=\"x;y\"\nb=\nc=-1"), "a=\"x;y\"\nb=\nc=\"-1\"\n");
    }

    #[test]
    fn placeholders_are_filled_in() {
        assert_eq!(
            lines("browscap={PWD}/b.ini\nsys_temp_dir={TMP}"),
            "browscap=\"/t/dir/b.ini\"\nsys_temp_dir=\"/t/tmp\"\n"
        );
        assert_eq!(lines("sendmail_path={MAIL:m.eml}"), "sendmail_path=\"tee m.eml >/dev/null\"\n");
    }
}
