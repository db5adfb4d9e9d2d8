//! `regent embed`: one executable of this program, PHP and an application.

use crate::arguments::Embed;
use crate::configuration;
use crate::old_php;
use crate::php_cli::{Php, PhpFacts};
use crate::serve;
use anyhow::{Context, Result, ensure};
use regent_embed::{Application, Archive, Excluded, Mark, layout, libraries_of, with_search_path};
use regent_server::EngineKind;
use std::fs;
use std::path::{Path, PathBuf};

/// Read first, and so does not undo what others say. The variable is set when the executable starts.
const OWN_INI: &str = "00-regent.ini";
/// Read last.
const INI_OF_APPLICATION: &str = "zz-application.ini";
/// What an application may have in its root.
const PHP_INI: &str = "php.ini";

/// What of PHP goes into the executable.
struct Carried {
    libraries: usize,
    /// Of the system, where the executable is to run on.
    needed: Option<String>,
}

pub fn embed(options: &Embed) -> Result<()> {
    ensure!(
        Mark::own() == Mark::Plain,
        "this program has an application already; make others with the `regent` that it was made with"
    );
    ensure!(options.app.is_dir(), "{} is no directory; name that of the application", options.app.display());
    let output = std::path::absolute(&options.output).context("finding the place of the executable")?;
    ensure!(!output.is_dir(), "{} is a directory; name the file that is to be made", output.display());
    let excluded = Excluded::new(&options.exclude)?;
    let resolved = resolved(&output)?;
    let application = Application::read(&options.app, &excluded, std::slice::from_ref(&resolved))?;
    let php = Php::of(&configuration::default_config()?)?;
    let facts = php.ask(&[])?;
    let own = std::env::current_exe().context("finding this program's own path")?;
    let mut archive = Archive::begin(&own, &resolved)?;
    let carried = pack_php(&mut archive, php.engine(), &facts, &application)?;
    archive.application(&application)?;
    let packed = archive.finish()?;
    println!(
        "{}: {} MiB with {} files of the application, PHP {} and {} libraries; unpacked {} MiB",
        options.output.display(),
        packed.size.div_ceil(1 << 20),
        application.files(),
        facts.version,
        carried.libraries,
        packed.unpacked.div_ceil(1 << 20),
    );
    if let Some(needed) = carried.needed {
        println!("It needs {needed} where it runs: this PHP is the system's.");
    }
    Ok(())
}

/// As the walk through the application names it, if it lies there.
fn resolved(output: &Path) -> Result<PathBuf> {
    let directory = output.parent().context("the root is no file")?;
    let directory =
        directory.canonicalize().with_context(|| format!("looking for {}", directory.display()))?;
    Ok(directory.join(output.file_name().context("the executable has no name")?))
}

fn pack_php(
    archive: &mut Archive,
    engine: &Path,
    facts: &PhpFacts,
    application: &Application,
) -> Result<Carried> {
    for directory in
        ["php", "php/bin", layout::LIBRARIES, layout::EXTENSIONS, "php/etc", layout::INI_DIRECTORY]
    {
        archive.directory(Path::new(directory))?;
    }
    let native = serve::program(EngineKind::Native)?;
    if native.is_file() {
        archive.file(&native, Path::new(layout::NATIVE_ENGINE))?;
    }
    let own_ini = application.root.join(PHP_INI);
    if own_ini.is_file() {
        archive.file(&own_ini, &Path::new(layout::INI_DIRECTORY).join(INI_OF_APPLICATION))?;
    }
    let extensions = extensions(&facts.directory)?;
    let others: Vec<PathBuf> =
        std::iter::once(facts.program.clone()).chain(extensions.iter().cloned()).collect();
    let libraries = libraries_of(engine, &others)?;
    let libphp = libraries.iter().find(|library| library.name.starts_with("libphp"));
    if let Some(libphp) = libphp.filter(|libphp| is_of_the_system(&libphp.path)) {
        archive.file(engine, Path::new(layout::ENGINE))?;
        let needed = format!("{} with PHP {}", libphp.name, facts.version);
        return Ok(Carried { libraries: 0, needed: Some(needed) });
    }
    if let Some(mark) = old_php::allowed(&facts.version)? {
        archive.text(mark.as_bytes(), Path::new(layout::OLD_PHP))?;
    }
    archive.program(&with_search_path(engine, "$ORIGIN/php/lib")?, Path::new(layout::ENGINE))?;
    archive.program(&with_search_path(&facts.program, "$ORIGIN/../lib")?, Path::new(layout::CLI))?;
    for library in &libraries {
        archive.file(&library.path, &Path::new(layout::LIBRARIES).join(&library.name))?;
    }
    for extension in &extensions {
        let name = extension.file_name().expect("invariant: it comes from a directory");
        archive.file(extension, &Path::new(layout::EXTENSIONS).join(name))?;
    }
    pack_ini(archive, facts)?;
    Ok(Carried { libraries: libraries.len(), needed: None })
}

/// The settings of this machine's PHP, in their order.
fn pack_ini(archive: &mut Archive, facts: &PhpFacts) -> Result<()> {
    if let Some(ini) = &facts.ini {
        archive.file(ini, Path::new(layout::INI))?;
    }
    let directory = Path::new(layout::INI_DIRECTORY);
    let text =
        format!("extension_dir = \"${{{}}}/../{}\"\n", crate::embedded::APPLICATION, layout::EXTENSIONS);
    archive.text(text.as_bytes(), &directory.join(OWN_INI))?;
    for (number, file) in facts.scanned_files.iter().enumerate() {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        archive.file(file, &directory.join(format!("{:02}-{name}", number.min(98) + 1)))?;
    }
    Ok(())
}

fn extensions(directory: &Path) -> Result<Vec<PathBuf>> {
    let reading = || format!("reading {}", directory.display());
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        if path.extension().is_some_and(|extension| extension == "so") && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Where its loader finds a library without being told.
fn is_of_the_system(library: &Path) -> bool {
    let Some(directory) = library.parent() else { return false };
    let roots = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"].map(Path::new);
    let is_of_architecture = || {
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.ends_with("-linux-gnu") && directory.parent().is_some_and(|parent| roots.contains(&parent))
    };
    roots.contains(&directory) || is_of_architecture()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_the_system_s_where_the_loader_looks_for_it() {
        for (path, want) in [
            ("/usr/lib/x86_64-linux-gnu/libphp8.2.so", true),
            ("/usr/lib/libphp.so", true),
            ("/usr/lib/regent/php/lib/libphp.so", false),
            ("/home/me/x86_64-linux-gnu/libphp.so", false),
        ] {
            assert_eq!(is_of_the_system(Path::new(path)), want, "{path}");
        }
    }
}
