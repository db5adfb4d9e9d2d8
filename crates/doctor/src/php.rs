//! What PHP says of itself: settings as php.ini and the configuration have them, extensions, version.

use regent_config::PhpGlobal;
use regent_php_floor::Package;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Asks PHP's command line program, which reads the same php.ini as the engine. It has values of its own for some settings
/// (sapi/cli/php_cli.c, `HARDCODED_INI` and `sapi_cli_ini_defaults`): of these, what the files say counts.
const QUESTION: &str = r"
$own = ['display_errors', 'html_errors', 'implicit_flush', 'max_execution_time', 'max_input_time', 'register_argc_argv'];
$settings = array_map(strval(...), ini_get_all(null, false));
$said = [];
foreach ([php_ini_loaded_file(), ...explode(',', (string) php_ini_scanned_files())] as $file) {
    if (trim((string) $file) !== '') { $said = array_merge($said, parse_ini_file(trim($file)) ?: []); }
}
foreach ($own as $name) { $settings[$name] = isset($said[$name]) ? (string) $said[$name] : null; }
echo json_encode(['version' => PHP_VERSION, 'threads' => (bool) PHP_ZTS, 'ini' => php_ini_loaded_file() ?: null, 'settings' => $settings,
    'extensions' => [...get_loaded_extensions(), ...get_loaded_extensions(true)]], JSON_INVALID_UTF8_SUBSTITUTE);
";

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct PhpFacts {
    pub version: String,
    /// Whether the threads of the engine are threads; otherwise they are processes.
    #[serde(default)]
    pub threads: bool,
    /// The php.ini that was read.
    pub ini: Option<String>,
    /// `None`: no file says anything, so that PHP's built-in value holds.
    pub settings: BTreeMap<String, Option<String>>,
    pub extensions: Vec<String>,
    /// The file of libphp that the engine loads. `None`: the engine does not say.
    #[serde(skip)]
    pub library: Option<PathBuf>,
    /// The distribution's package that it is from.
    #[serde(skip)]
    pub package: Option<Package>,
}

impl PhpFacts {
    /// Asks the PHP of the engine `program`, with the `php_ini` of these options.
    ///
    /// # Errors
    /// In words, if it cannot be started, fails or says something else.
    pub fn ask(program: &Path, options: &PhpGlobal) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg("--cli");
        for (name, value) in options.written_php_ini() {
            command.arg("-d").arg(format!("{name}={value}"));
        }
        let output = command
            .args(["-d", "error_reporting=0", "-r", QUESTION])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        // What PHP complains about at its start stands before the answer.
        let answer = said.find('{').map_or("", |start| &said[start..]);
        let mut facts: Self = serde_json::from_str(answer).map_err(|error| {
            let complaint = String::from_utf8_lossy(&output.stderr);
            let words =
                if complaint.trim().is_empty() { error.to_string() } else { complaint.trim().to_owned() };
            format!("{} --cli did not answer: {words}", program.display())
        })?;
        facts.library = library(program);
        facts.package = facts.library.as_deref().and_then(Package::of);
        facts
            .settings
            .extend(options.php_ini.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
        Ok(facts)
    }

    /// The value, if a file says one or PHP has one.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.settings.get(name)?.as_deref()
    }

    /// As PHP reads switches: `1`, `On`, `yes`, `true`.
    pub fn is_on(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| {
            matches!(value.to_ascii_lowercase().as_str(), "on" | "yes" | "true")
                || value.parse::<i64>().is_ok_and(|number| number != 0)
        })
    }

    /// A number, or bytes with PHP's `K`, `M` and `G`.
    pub fn number(&self, name: &str) -> Option<i64> {
        let value = self.value(name)?.trim();
        let (digits, factor) = match value.chars().last()?.to_ascii_lowercase() {
            'k' => (&value[..value.len() - 1], 1 << 10),
            'm' => (&value[..value.len() - 1], 1 << 20),
            'g' => (&value[..value.len() - 1], 1 << 30),
            _ => (value, 1),
        };
        digits.trim().parse::<i64>().ok()?.checked_mul(factor)
    }

    pub fn has(&self, extension: &str) -> bool {
        self.extensions.iter().any(|loaded| loaded.eq_ignore_ascii_case(extension))
    }
}

/// What an engine answers that is not older than the question.
fn library(engine: &Path) -> Option<PathBuf> {
    let output = Command::new(engine).arg("--library").stdin(Stdio::null()).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    (output.status.success() && path.is_absolute()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(name: &str, value: &str) -> PhpFacts {
        PhpFacts { settings: [(name.to_owned(), Some(value.to_owned()))].into(), ..Default::default() }
    }

    #[test]
    fn sizes_are_read_as_php_reads_them() {
        for (text, bytes) in
            [("128M", 128 << 20), ("4096k", 4 << 20), ("1G", 1 << 30), ("-1", -1), ("20000", 20000)]
        {
            assert_eq!(facts("a", text).number("a"), Some(bytes), "{text}");
        }
        for text in ["", "x", "M"] {
            assert_eq!(facts("a", text).number("a"), None, "{text}");
        }
    }

    #[test]
    fn switches_are_read_as_php_reads_them() {
        for text in ["1", "On", "YES", "true", "2"] {
            assert!(facts("a", text).is_on("a"), "{text}");
        }
        for text in ["0", "Off", "", "no", "stderr"] {
            assert!(!facts("a", text).is_on("a"), "{text}");
        }
        assert!(!facts("a", "1").is_on("b"));
    }

    #[test]
    fn a_program_that_is_no_engine_is_named() {
        let error = PhpFacts::ask(Path::new("/nonexistent/regent-php"), &PhpGlobal::default()).unwrap_err();
        assert!(error.contains("/nonexistent/regent-php cannot be started"), "{error}");
        let error = PhpFacts::ask(Path::new("/bin/true"), &PhpGlobal::default()).unwrap_err();
        assert!(error.contains("did not answer"), "{error}");
    }
}
