//! PHP's own programs: php-cgi, which Regent is compared with, and php, which cleans up after tests.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::place::Place;
use crate::request::{Answer, Request};
use crate::settings::{Settings, common_environment};

/// How long a script may run.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);

/// An installed PHP, with the place where tests run.
pub struct Php<'a> {
    bin: PathBuf,
    place: &'a Place,
}

/// What PHP runs with. `PHPRC` names the directory of a php.ini.
pub struct Prepared {
    pub environment: Vec<(String, String)>,
}

impl<'a> Php<'a> {
    /// # Errors
    /// When this PHP has no php-cgi.
    pub fn new(prefix: &Path, place: &'a Place) -> Result<Self> {
        let bin = prefix.join("bin");
        ensure!(bin.join("php-cgi").is_file(), "there is no {}", bin.join("php-cgi").display());
        Ok(Self { bin, place })
    }

    /// Writes a php.ini for these settings.
    pub fn prepare(&self, settings: &Settings) -> Result<Prepared> {
        let ini_directory =
            tempfile::Builder::new().prefix("ini-").tempdir_in(self.place.directory())?.keep();
        fs::write(ini_directory.join("php.ini"), settings.ini_file())?;
        let mut environment = self.place.environment();
        let common = common_environment(&self.bin, &self.place.tree());
        environment
            .extend(common.into_iter().map(|(name, value)| (name.into(), value.display().to_string())));
        environment.extend(settings.environment().iter().map(|(name, value)| (name.clone(), value.clone())));
        environment.push(("PHPRC".into(), ini_directory.display().to_string()));
        Ok(Prepared { environment })
    }

    /// The extensions that are loaded, by the names that EXTENSIONS sections use.
    pub fn extensions(&self, prepared: &Prepared) -> Result<Vec<String>> {
        let mut command = self.command("php", prepared);
        let output = command.args(["-r", "echo implode(\"\\n\", get_loaded_extensions());"]).output()?;
        let names = String::from_utf8_lossy(&output.stdout).to_lowercase();
        Ok(names.lines().map(|name| name.replace("zend opcache", "opcache")).collect())
    }

    /// Has php-cgi answer a request as run-tests.php does, `script` being a path in the tree.
    ///
    /// Unlike there, PHP changes to the script's directory, as servers have it, and what is written to standard error is
    /// no part of the answer.
    pub fn cgi(&self, prepared: &Prepared, script: &Path, uri: &Path, request: &Request) -> Result<Answer> {
        let mut command = self.command("php-cgi", prepared);
        let script = self.place.tree().join(script);
        // RFC 3875, section 7.2: the directory of the script, also before PHP knows the script.
        command.current_dir(script.parent().context("a script lies in a directory")?);
        command.env("REDIRECT_STATUS", "1").env("REQUEST_METHOD", &request.method);
        command.env("PATH_TRANSLATED", &script).env("SCRIPT_FILENAME", script);
        command.env("REQUEST_URI", Path::new("/").join(uri));
        command.env("QUERY_STRING", os_text(&request.query));
        command.env("CONTENT_TYPE", request.content_type.as_deref().unwrap_or_default());
        let length = request.body.as_ref().map(|body| body.len().to_string());
        command.env("CONTENT_LENGTH", length.unwrap_or_default());
        command.envs(request.headers.iter().map(|(name, value)| (name, os_text(value))));
        run(command, request.body.as_deref()).map(|output| Answer::from_cgi(&output))
    }

    /// Runs a script with `php`, for what it does and not for what it prints.
    pub fn clean(&self, prepared: &Prepared, script: &Path) -> Result<()> {
        let mut command = self.command("php", prepared);
        command.arg("-q").arg(self.place.tree().join(script));
        run(command, None).map(drop)
    }

    fn command(&self, program: &str, prepared: &Prepared) -> Command {
        let mut command = Command::new(self.bin.join(program));
        // In a process group of its own: some tests send signals to their group.
        command.current_dir(self.place.tree()).env_clear().process_group(0);
        command.envs(prepared.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Runs a program to its end, or for [`LIMIT`], and gives what it printed.
fn run(mut command: Command, input: Option<&[u8]>) -> Result<Vec<u8>> {
    let mut output = tempfile::tempfile()?;
    command.stdout(output.try_clone()?).stderr(Stdio::null());
    command.stdin(input.map_or(Ok(Stdio::null()), |bytes| file_of(bytes).map(Stdio::from))?);
    let end = wait(command)?;
    let mut printed = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut printed)?;
    match end.map(|status| status.signal()) {
        Some(None) => {}
        Some(Some(signal)) => printed.extend_from_slice(format!("\nTermsig={signal}\n").as_bytes()),
        None => printed.extend_from_slice(b"\n ** ERROR: process timed out **\n"),
    }
    Ok(printed)
}

/// `None` when it had to be killed at the limit.
#[expect(clippy::disallowed_methods, reason = "a round of a loop that ends with the program or at its limit")]
fn wait(mut command: Command) -> Result<Option<ExitStatus>> {
    let mut child = command.spawn().with_context(|| format!("starting {:?}", command.get_program()))?;
    let limit = Instant::now() + LIMIT;
    while Instant::now() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        sleep(POLL);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn file_of(bytes: &[u8]) -> Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// An environment variable's value. It cannot hold a zero byte, and no test has one.
fn os_text(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}
