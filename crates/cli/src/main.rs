//! The `regent` program: reads what it is told, and calls the crates that do it.
#![forbid(unsafe_code)]

mod activation;
mod addresses;
mod admin;
mod arguments;
mod autosave;
mod background;
mod bench;
mod build_info;
mod certificates;
mod configuration;
mod doctor;
mod embed;
mod embedded;
mod environment_file;
mod extensions;
mod import;
mod log;
mod manual;
mod old_php;
mod php_cli;
mod pid_file;
mod reply;
mod serve;
mod service_manager;
mod successor;
mod trust;
mod watch;
mod written;

use anyhow::{Context, Result};
use argon2::PasswordHasher;
use arguments::{Arguments, Command, Php, PhpQuestion};
use clap::CommandFactory;
use configuration::Origin;
use embedded::Embedded;
use regent_server::Configuration;
use std::path::Path;
use std::process::ExitCode;

/// Takes 5 % off the instructions that the server needs for a request (callgrind, against glibc's).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    refuse_huge_pages();
    match run(Arguments::of_words(std::env::args_os().collect()).command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("regent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The kernel may give them unasked, and the allocator would have few bytes in use of each: docs/design/huge-pages.md. Engines
/// allow them again.
fn refuse_huge_pages() {
    // A kernel that was built without them has none.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

fn run(command: Command) -> Result<ExitCode> {
    let embedded = Embedded::for_command(&command)?;
    if let (Some(embedded), Some(None)) = (&embedded, command.configuration()) {
        // The application's own is meant, and what it names.
        std::env::set_current_dir(embedded.directory()).context("entering the application")?;
    }
    match command {
        Command::Embed(options) => embed::embed(&options)?,
        Command::Run(options) => serve::run(options, embedded.as_ref())?,
        Command::Start(options) => {
            println!("regent serves in the background: process {}", background::start(&options.config)?)
        }
        Command::Stop(options) => admin::stop(&options)?,
        Command::PhpServer(options) => {
            let (origin, begin) = match &embedded {
                Some(embedded) => (embedded.php_server(options), serve::Begin::within(embedded.directory())),
                None => (Origin::PhpServer(options), serve::Begin::default()),
            };
            serve::serve(origin, begin)?;
        }
        Command::FileServer(options) => serve::serve(Origin::FileServer(options), serve::Begin::default())?,
        Command::ReverseProxy(options) => {
            serve::serve(Origin::ReverseProxy(options), serve::Begin::default())?
        }
        Command::Respond(options) => serve::serve(Origin::Respond(options), serve::Begin::default())?,
        Command::Reload(options) => admin::reload(&options)?,
        Command::Upgrade(options) => admin::upgrade(&options)?,
        Command::Trust(options) => return trust::trust(&options),
        Command::Untrust(options) => return trust::untrust(&options),
        Command::Validate(options) => {
            certificates::check(&configuration::compare(&options)?)?;
            println!("Valid configuration");
        }
        Command::Doctor(options) => return doctor::doctor(&options),
        Command::Adapt(options) => adapt(&options)?,
        Command::Fmt(options) => return format(&options),
        Command::Import(options) => import::import(&options)?,
        Command::HashPassword(options) => println!("{}", hash_password(&options)?),
        Command::Profile(options) => admin::profile(&options)?,
        Command::Threads(options) => admin::threads(&options)?,
        Command::Workers(options) => admin::workers(&options)?,
        Command::Native(options) => admin::native(&options)?,
        Command::Tasks(options) => admin::tasks(&options)?,
        Command::Top(options) => admin::top(&options)?,
        Command::PhpCli(options) => {
            let arguments = match &embedded {
                Some(embedded) => embedded.php_arguments(options.arguments),
                None => options.arguments,
            };
            match php_cli::become_php(&arguments)? {}
        }
        Command::Php(Php { question: PhpQuestion::Extensions(options) }) => extensions::print(&options)?,
        Command::Environ => print!("{}", build_info::environment()),
        Command::ListModules => {
            regent_config::modules().iter().for_each(|name| println!("{name}"));
        }
        Command::BuildInfo => print!("{}", build_info::build_info()),
        Command::Completion(options) => {
            clap_complete::generate(
                options.shell,
                &mut Arguments::command(),
                "regent",
                &mut std::io::stdout(),
            );
        }
        Command::Manpage(options) => manual::write_pages(&options.directory)?,
        Command::Bench(options) => match bench::become_bench(&options.arguments)? {},
        Command::Version => println!("regent {}", env!("CARGO_PKG_VERSION")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a configuration as Caddy's JSON, as `caddy adapt` does: on one line, but for --pretty.
fn adapt(options: &arguments::Adapt) -> Result<()> {
    let Configuration { config, document } = configuration::load(&options.config)?;
    if options.pretty {
        println!("{document:#}");
    } else {
        println!("{document}");
    }
    if options.validate {
        certificates::check(&config)?;
    }
    Ok(())
}

/// Of the standard input the first line counts, without its end.
fn hash_password(options: &arguments::HashPassword) -> Result<String> {
    let password = match &options.plaintext {
        Some(password) => password.clone(),
        None => std::io::read_to_string(std::io::stdin())
            .context("reading the password")?
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    anyhow::ensure!(!password.is_empty(), "the password is empty");
    if options.algorithm == "argon2id" {
        return argon2id(&password, options);
    }
    anyhow::ensure!(password.len() <= 72, "bcrypt takes no more than 72 bytes of a password");
    bcrypt::hash(password, options.bcrypt_cost).context("hashing the password")
}

fn argon2id(password: &str, options: &arguments::HashPassword) -> Result<String> {
    let (memory, passes, lanes) = (options.argon2id_memory, options.argon2id_time, options.argon2id_threads);
    let costs = argon2::Params::new(memory, passes, lanes, Some(options.argon2id_keylen))
        .context("these costs of argon2id are not possible together")?;
    let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, costs);
    let hash = argon2.hash_password(password.as_bytes()).context("hashing the password")?;
    Ok(hash.to_string())
}

/// As `caddy fmt`: prints the formatted file, or writes it back; the exit code says whether it was formatted already.
fn format(options: &arguments::Fmt) -> Result<ExitCode> {
    let path = options.file.as_deref().unwrap_or(Path::new(configuration::DEFAULT_FILE));
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let formatted = regent_caddyfile::format(&path.display().to_string(), &text)?;
    if options.overwrite {
        if formatted != text {
            std::fs::write(path, formatted).with_context(|| format!("writing {}", path.display()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    print!("{formatted}");
    Ok(if formatted == text { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
