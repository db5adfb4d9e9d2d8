//! The PHP engine: a process that links libphp and runs PHP threads for the server, or processes where PHP is not
//! thread-safe.
//!
//! The server starts it with the file descriptors of [`regent_wire::control::descriptors`]; nobody calls it by hand. With `--cli` it gives way to PHP's
//! command line program, for `regent php-cli`, and with `--task` for the scripts that the server runs beside its pools.
//! With `--library` it says which libphp it loads.
//! It ends when its threads have drained, and at once when the server goes away.

mod ffi;
mod host;
mod ini;
mod late;
mod library;
mod php;
mod profiler;
mod publication;
mod purge;
mod renewal;
mod threads;
mod variables;
mod warmup;

use anyhow::{Context, Result};
#[cfg(not(php_threads))]
use profiler::Profiler;
use regent_engine_host::Reporter;
#[cfg(not(php_threads))]
use regent_engine_host::{
    Attached,
    processes::{self, Side},
};
#[cfg(php_threads)]
use regent_engine_host::{Host, ThreadPool};
use regent_wire::control::{self, Event, Start, Started};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use threads::Scripts;

/// The first argument of `regent php-cli`'s way to PHP.
const CLI: &str = "--cli";
/// Prints which file of libphp this program loads.
const LIBRARY: &str = "--library";
/// The same for a script that the server runs beside its pools.
const TASK: &str = "--task";
/// As php-config says.
const PHP_CLI: &str = env!("REGENT_PHP_CLI");
/// The settings of what is embedded, where the command line program has others; empty: it has the same.
const PHP_INI_DIR: &str = env!("REGENT_PHP_INI_DIR");
/// In a package, beside the engine: no path of the machine that it was built on means anything there.
const PACKAGED_CLI: &str = "php/bin/php";

fn main() -> ExitCode {
    regent_engine_host::allow_huge_pages();
    let mut arguments = std::env::args_os().skip(1);
    let result = match arguments.next() {
        Some(option) if option == CLI => become_cli(arguments),
        Some(option) if option == TASK => become_task(arguments),
        Some(option) if option == LIBRARY => library::print(),
        _ => run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("regent-php: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Becomes the command line program of the PHP that this one is linked with.
fn become_cli(arguments: impl Iterator<Item = OsString>) -> Result<()> {
    let program = cli_program();
    let mut command = Command::new(&program);
    for (variable, name) in [("PHPRC", "php.ini"), ("PHP_INI_SCAN_DIR", "conf.d")] {
        if !PHP_INI_DIR.is_empty() && std::env::var_os(variable).is_none() {
            command.env(variable, Path::new(PHP_INI_DIR).join(name));
        }
    }
    Err(command.args(arguments).exec())
        .with_context(|| format!("{}, PHP's command line program, could not be started", program.display()))
}

/// The same, for as long as the server lives, and with what the first argument says given up.
fn become_task(mut arguments: impl Iterator<Item = OsString>) -> Result<()> {
    let confinement = arguments.next().and_then(|text| text.into_string().ok()).unwrap_or_default();
    let confinement = control::decode(&confinement).context("understanding what to give up")?;
    regent_engine_host::confine(&confinement, own_files)?;
    regent_engine_host::die_with_parent().context("following the end of the server")?;
    become_cli(arguments)
}

/// What PHP reads at its start and later, beside the scripts: settings, and extensions and all else that it was installed with.
fn own_files() -> Vec<PathBuf> {
    let program = cli_program();
    let prefix = program.parent().and_then(Path::parent).map(Path::to_owned);
    // That of `/bin/php` would be everything; what it needs is the system's.
    let prefix = prefix.filter(|prefix| prefix.parent().is_some());
    let settings = ["PHPRC", "PHP_INI_SCAN_DIR"].into_iter().filter_map(std::env::var_os);
    let named = settings.flat_map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>());
    let built_in = Some(PathBuf::from(PHP_INI_DIR));
    // A relative path would be one of the working directory's.
    prefix.into_iter().chain(named).chain(built_in).filter(|path| path.is_absolute()).collect()
}

fn cli_program() -> PathBuf {
    let own = std::env::current_exe().ok();
    let packaged = own.map(|own| own.with_file_name(PACKAGED_CLI)).filter(|program| program.is_file());
    packaged.unwrap_or_else(|| PHP_CLI.into())
}

/// One process, in which PHP has threads.
#[cfg(php_threads)]
fn run() -> Result<()> {
    let Host { engine, start, reporter, orders } = Host::attach(own_files)?;
    start_php(&start, &reporter)?;
    let scripts = Scripts::new(start.pools, &reporter);
    let threads = ThreadPool::start(engine, start.threads, reporter, scripts);
    threads.follow(orders);
    threads.wait();
    php::stop();
    Ok(())
}

/// A process for each thread, of a PHP that keeps one state for a process.
#[cfg(not(php_threads))]
fn run() -> Result<()> {
    match processes::split(Attached::take_over(own_files)?)? {
        Side::Manager(manager) => {
            let profiler = Profiler::default();
            Ok(manager.run(php::trace_signal(), move |profiling| profiler.begin(profiling))?)
        }
        Side::Zygote(zygote) => {
            start_php(&zygote.start, &zygote.reporter)?;
            let scripts = Scripts::new(zygote.start.pools.clone(), &zygote.reporter);
            Ok(zygote.serve(&scripts)?)
        }
    }
}

fn start_php(start: &Start, reporter: &Arc<Reporter>) -> Result<()> {
    php::start(start, reporter)?;
    ini::warn_of_unknown(&start.ini, reporter);
    reporter.send(&Event::Started(Started {
        version: php::version(),
        opcache: Some(php::opcache()),
        library: library::loaded(),
    }));
    Ok(())
}
