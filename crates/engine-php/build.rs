//! Finds PHP, compiles the SAPI (`sapi/*.c`) against it and links the embed library.
//!
//! PHP is the one whose php-config `PHP_CONFIG` names, or else the one that `tools/build-php` keeps in its cache.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let php = Php::find()?;
    println!("cargo:rerun-if-env-changed=PHP_CONFIG");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=sapi");
    println!("cargo:rerun-if-changed={}", php.config.display());
    compile_sapi(&php)?;
    link_php(&php);
    println!("cargo:rustc-env=REGENT_PHP_CLI={}", php.cli);
    println!("cargo:rustc-env=REGENT_PHP_INI_DIR={}", embed_ini_dir(&php.config).display());
    println!("cargo:rustc-check-cfg=cfg(php_threads)");
    if php.thread_safe {
        println!("cargo:rustc-cfg=php_threads");
    }
    tell_tests(&php)
}

/// What we need to know of a PHP installation.
struct Php {
    config: PathBuf,
    includes: Vec<PathBuf>,
    library: Library,
    extension_dir: String,
    /// PHP's command line program.
    cli: String,
    /// What a static libphp needs besides: php-config's `--ldflags` and `--libs`.
    system_libs: Vec<String>,
    thread_safe: bool,
}

/// libphp, to link with.
struct Library {
    dir: PathBuf,
    /// Without `lib` and the ending.
    name: String,
    shared: bool,
}

impl Php {
    fn find() -> Result<Self> {
        let config = match env::var_os("PHP_CONFIG").filter(|value| !value.is_empty()) {
            Some(named) => PathBuf::from(named),
            None => run_build_php()?,
        };
        let ask = |option: &str| ask_config(&config, option);
        let include_dir = PathBuf::from(ask("--include-dir")?);
        let thread_safe = is_thread_safe(&config, &include_dir)?;
        let library = find_embed_library(&config, Path::new(&ask("--prefix")?), &ask("--version")?)?;
        let includes = ask("--includes")?
            .split_whitespace()
            .filter_map(|flag| flag.strip_prefix("-I"))
            .map(Into::into)
            .collect();
        let flags = format!("{} {}", ask("--ldflags")?, ask("--libs")?);
        let system_libs = flags.split_whitespace().map(Into::into).collect();
        let extension_dir = ask("--extension-dir")?;
        let cli = ask("--php-binary")?;
        Ok(Self { config, includes, library, extension_dir, cli, system_libs, thread_safe })
    }
}

/// Prints the path of a php-config on its last line of output; builds that PHP first if need be.
fn run_build_php() -> Result<PathBuf> {
    let script = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../tools/build-php");
    println!("cargo:rerun-if-changed={}", script.display());
    let output =
        Command::new(&script).output().map_err(|e| format!("{} cannot be run: {e}", script.display()))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "no PHP to link with; set PHP_CONFIG to the php-config of a thread-safe PHP.\n{errors}"
        )
        .into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().into())
}

fn ask_config(config: &Path, option: &str) -> Result<String> {
    let output = Command::new(config)
        .arg(option)
        .output()
        .map_err(|e| format!("PHP_CONFIG names {}, which cannot be run: {e}", config.display()))?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Whether PHP keeps its state for each thread. If not, the engine answers requests in processes.
fn is_thread_safe(config: &Path, include_dir: &Path) -> Result<bool> {
    let header = include_dir.join("main/php_config.h");
    let text = fs::read_to_string(&header).map_err(|e| {
        format!(
            "{} has no headers ({}: {e}); install PHP's development package",
            config.display(),
            header.display()
        )
    })?;
    Ok(text.lines().any(|line| line.trim() == "#define ZTS 1"))
}

/// Distributions put the version into its name, and may have several side by side.
fn find_embed_library(config: &Path, prefix: &Path, version: &str) -> Result<Library> {
    let told = ask_config(config, "--lib-dir").unwrap_or_default(); // since PHP 8.4
    let dirs = [PathBuf::from(told), prefix.join("lib"), prefix.join("lib64")];
    let short = version.split('.').take(2).collect::<Vec<_>>().join(".");
    for name in [format!("php{short}"), "php".to_owned()] {
        for (ending, shared) in [("so", true), ("a", false)] {
            if let Some(dir) = dirs.iter().find(|dir| dir.join(format!("lib{name}.{ending}")).is_file()) {
                return Ok(Library { dir: dir.clone(), name, shared });
            }
        }
    }
    Err(format!(
        "{} has no embed library (libphp.so): install libphp{short}-embed of the distribution, build PHP with \
         --enable-embed, or unset PHP_CONFIG",
        config.display()
    )
    .into())
}

/// Distributions have php.ini once for each kind of server, and php-config names that of the command line. Empty: there is one
/// for all.
fn embed_ini_dir(config: &Path) -> PathBuf {
    let of_cli = PathBuf::from(ask_config(config, "--ini-path").unwrap_or_default()); // none where PHP is built from source
    let own = of_cli.with_file_name("embed");
    if of_cli.ends_with("cli") && own.is_dir() { own } else { PathBuf::new() }
}

fn compile_sapi(php: &Php) -> Result<()> {
    let mut sources: Vec<PathBuf> =
        fs::read_dir("sapi")?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    let mut build = cc::Build::new();
    for include in &php.includes {
        build.flag("-isystem").flag(include);
    }
    build
        .files(sources)
        .std("gnu11")
        .opt_level(2)
        .debug(true)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(env::var_os("CI").is_some())
        .define("ZEND_ENABLE_STATIC_TSRMLS_CACHE", "1")
        // Ours beside libphp's own, which a static libphp would bring along under the same name.
        .define("_tsrm_ls_cache", "regent_tsrm_ls_cache")
        .cargo_metadata(false)
        .try_compile("regent_sapi")?;
    // Whole: libphp calls some of it (spawn.c) that nothing of ours does.
    println!("cargo:rustc-link-search=native={}", env::var("OUT_DIR")?);
    println!("cargo:rustc-link-lib=static:+whole-archive=regent_sapi");
    Ok(())
}

fn link_php(php: &Php) {
    if !php.thread_safe {
        // What stands for the C library's functions is to be found by shared extensions too, not only by libphp.
        println!("cargo:rustc-link-arg-bins=-rdynamic");
    }
    let Library { dir, name, shared } = &php.library;
    println!("cargo:rustc-link-search=native={}", dir.display());
    if *shared {
        println!("cargo:rustc-link-lib=dylib={name}");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", dir.display());
    } else {
        println!("cargo:rustc-link-lib=static={name}");
        for flag in &php.system_libs {
            println!("cargo:rustc-link-arg={flag}");
        }
    }
}

/// The tests compile a small C host of their own against the same library.
fn tell_tests(php: &Php) -> Result<()> {
    println!("cargo:rustc-env=REGENT_SAPI_LIB_DIR={}", env::var("OUT_DIR")?);
    println!("cargo:rustc-env=REGENT_PHP_EXTENSION_DIR={}", php.extension_dir);
    println!("cargo:rustc-env=REGENT_PHP_LIB_DIR={}", php.library.dir.display());
    println!("cargo:rustc-env=REGENT_PHP_LIB={}", php.library.name);
    println!(
        "cargo:rustc-env=REGENT_PHP_STATIC_LIBS={}",
        if php.library.shared { String::new() } else { php.system_libs.join(" ") }
    );
    Ok(())
}
