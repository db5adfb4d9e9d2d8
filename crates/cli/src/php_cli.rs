//! `regent php-cli`: PHP's own command line program, of the same PHP that serves the site.

use crate::serve;
use anyhow::{Context, Result, ensure};
use regent_config::Config;
use regent_server::EngineKind;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What `regent-php` has to be told to become PHP's program: it knows the PHP that it is linked with.
const OPTION: &str = "--cli";

/// What PHP is to say of itself, as JSON.
const QUESTION: &str = r"
$extensions = [];
foreach (array_unique([...get_loaded_extensions(), ...get_loaded_extensions(true)]) as $name) {
    $extensions[$name] = (string) phpversion($name);
}
echo json_encode([
    'version' => PHP_VERSION, 'threads' => (bool) PHP_ZTS, 'program' => PHP_BINARY, 'directory' => PHP_EXTENSION_DIR,
    'ini' => php_ini_loaded_file() ?: null, 'scanned' => getenv('PHP_INI_SCAN_DIR') ?: PHP_CONFIG_FILE_SCAN_DIR,
    'scanned_files' => preg_split('/,\s*/', php_ini_scanned_files() ?: '', -1, PREG_SPLIT_NO_EMPTY),
    'extensions' => (object) $extensions,
], JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES);";

/// Becomes PHP. Returns only when it cannot.
pub fn become_php(arguments: &[OsString]) -> Result<Infallible> {
    let engine = serve::program(EngineKind::Php)?;
    Err(Command::new(&engine).arg(OPTION).args(arguments).exec())
        .with_context(|| format!("{} could not be started", engine.display()))
}

/// The PHP of a configuration, with its settings.
#[derive(Debug)]
pub struct Php {
    engine: PathBuf,
    ini: Vec<(String, String)>,
}

/// What PHP says of itself.
#[derive(Debug, Deserialize)]
pub struct PhpFacts {
    pub version: String,
    /// Whether it is thread-safe.
    pub threads: bool,
    pub program: PathBuf,
    /// Where extensions are loaded from.
    pub directory: PathBuf,
    pub ini: Option<PathBuf>,
    pub scanned: PathBuf,
    pub scanned_files: Vec<PathBuf>,
    /// Names and versions.
    pub extensions: Map<String, Value>,
}

impl Php {
    pub fn of(config: &Config) -> Result<Self> {
        let engine = match &config.global.php.program {
            Some(named) => named.clone(),
            None => serve::program(EngineKind::Php)?,
        };
        Ok(Self { engine, ini: config.global.php.written_php_ini() })
    }

    pub fn engine(&self) -> &Path {
        &self.engine
    }

    /// PHP's program, to be given more arguments. It has the settings of the engine.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.engine);
        command.arg(OPTION);
        for (name, value) in &self.ini {
            command.args(["-d", &format!("{name}={value}")]);
        }
        command
    }

    /// `options`: of PHP's program. What it has to complain of goes to the standard error.
    pub fn ask(&self, options: &[&str]) -> Result<PhpFacts> {
        let output = self
            .command()
            .args(options)
            .args(["-d", "display_errors=stderr", "-r", QUESTION])
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("{} could not be started", self.engine.display()))?;
        ensure!(output.status.success(), "PHP did not answer; see its message above");
        serde_json::from_slice(&output.stdout).with_context(|| {
            format!("PHP answered something else: {}", String::from_utf8_lossy(&output.stdout))
        })
    }
}
