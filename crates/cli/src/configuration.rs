//! From the command line to a configuration.

use crate::arguments::PhpServer;
use anyhow::{Context, Result, anyhow, bail};
use regent_config::{Compression, Config, Environment, Loaded, WorkerArgument};
use std::path::{Path, PathBuf};

/// What is read when no file is named.
pub const DEFAULT_FILE: &str = "Caddyfile";

/// Reads a Caddyfile. Warnings go to the standard error at once: the log is not set up yet.
pub fn load(file: Option<&Path>) -> Result<Config> {
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    if !path.exists() {
        bail!(
            "there is no {}; name a configuration with --config FILE, or serve a directory with `regent php-server`",
            path.display()
        );
    }
    let loaded = regent_config::load(path, &environment()?).map_err(|errors| anyhow!("\n{errors}"))?;
    Ok(with_warnings(loaded))
}

/// The configuration of `regent php-server`.
pub fn php_server(options: &PhpServer) -> Result<Config> {
    let root = options.root.clone().unwrap_or_else(default_root);
    if !root.is_dir() {
        bail!("{} is no directory; name the one to serve with --root DIRECTORY", root.display());
    }
    let workers = options.workers.iter().map(|text| worker(text)).collect::<Result<Vec<_>>>()?;
    let compression = if options.no_compress { Compression::Off } else { Compression::On };
    let loaded =
        regent_config::php_server_config(&root, &options.listen, &workers, compression, &environment()?)
            .map_err(|errors| anyhow!("{errors}"))?;
    Ok(with_warnings(loaded))
}

/// As FrankenPHP: `public` if there is one.
fn default_root() -> PathBuf {
    let public = PathBuf::from("public");
    if public.is_dir() { public } else { PathBuf::from(".") }
}

/// `FILE` or `FILE,N`.
fn worker(text: &str) -> Result<WorkerArgument> {
    let Some((file, number)) = text.rsplit_once(',') else {
        return Ok(WorkerArgument { file: text.into(), num: None });
    };
    let num = number.parse().ok().filter(|num| *num > 0).with_context(|| {
        format!("--worker {text}: `{number}` is no number of threads; write FILE,N with N from 1")
    })?;
    Ok(WorkerArgument { file: file.into(), num: Some(num) })
}

fn environment() -> Result<Environment> {
    Environment::of_process().context("finding the working directory")
}

fn with_warnings(loaded: Loaded) -> Config {
    for warning in &loaded.warnings {
        eprintln!("{warning}");
    }
    loaded.config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_a_file_and_perhaps_a_number() {
        let argument = |file: &str, num| WorkerArgument { file: file.into(), num };
        assert_eq!(worker("a.php").unwrap(), argument("a.php", None));
        assert_eq!(worker("a.php,4").unwrap(), argument("a.php", Some(4)));
        for text in ["a.php,0", "a.php,x", "a.php,", "a.php,-1", "a.php,70000"] {
            assert!(worker(text).unwrap_err().to_string().contains("is no number of threads"), "{text}");
        }
    }
}
