//! What a program needs to run on another machine, which is all but the C library: that machine's is used, with its loader
//! and its ways of finding users and hosts.

use crate::{EmbedError, search_path};
use object_rewrite::Rewriter;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The C library's parts, by the beginnings of their names.
const OF_THE_SYSTEM: [&str; 13] = [
    "ld-linux",
    "libanl.so.",
    "libBrokenLocale.so.",
    "libc.so.",
    "libc_malloc_debug.so.",
    "libdl.so.",
    "libm.so.",
    "libmvec.so.",
    "libnsl.so.",
    "libnss_",
    "libpthread.so.",
    "libresolv.so.",
    "librt.so.",
];

/// A library, by the name that programs ask for it by, and where it is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    pub name: String,
    pub path: PathBuf,
}

/// All libraries that these need, and those need, each once; without the C library. The first of them is a program, whose
/// loader is asked; the others may be what it loads later.
pub fn libraries_of(program: &Path, others: &[PathBuf]) -> Result<Vec<Library>, EmbedError> {
    let bytes = fs::read(program).map_err(EmbedError::file("reading", program))?;
    let wrong = |reason: String| EmbedError::Libraries { program: program.to_owned(), reason };
    let rewriter = Rewriter::read(&bytes).map_err(|error| wrong(error.to_string()))?;
    let loader = rewriter.elf_interpreter().ok_or_else(|| wrong("it is no program of this system".into()))?;
    let loader = String::from_utf8_lossy(loader).trim_end_matches('\0').to_owned();
    let mut found = BTreeMap::new();
    for file in std::iter::once(program).chain(others.iter().map(PathBuf::as_path)) {
        let output = Command::new(&loader)
            .arg("--list")
            .arg(file)
            .output()
            .map_err(|error| wrong(format!("{loader} could not be started: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(wrong(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        for line in text.lines() {
            if let Some((name, path)) = library(line).map_err(&wrong)? {
                found.entry(name).or_insert(path);
            }
        }
    }
    Ok(found.into_iter().map(|(name, path)| Library { name, path }).collect())
}

/// Of a line as `ldd` prints it: `libz.so.1 => /lib/libz.so.1 (0x…)`.
fn library(line: &str) -> Result<Option<(String, PathBuf)>, String> {
    let Some((name, rest)) = line.trim().split_once(" => ") else { return Ok(None) };
    if rest.starts_with("not found") {
        return Err(format!("{name} is not on this machine"));
    }
    let path = rest.rsplit_once(" (").map_or(rest, |(path, _)| path);
    let file = name.rsplit('/').next().unwrap_or(name);
    let is_of_the_system = OF_THE_SYSTEM.iter().any(|beginning| file.starts_with(beginning));
    Ok((!is_of_the_system && path.starts_with('/')).then(|| (file.to_owned(), path.into())))
}

/// The bytes of a program that looks for its libraries, and for those that they need, in this directory first, where
/// `$ORIGIN` is that of the program.
pub fn with_search_path(program: &Path, directory: &str) -> Result<Vec<u8>, EmbedError> {
    let mut bytes = fs::read(program).map_err(EmbedError::file("reading", program))?;
    if search_path::replace(&mut bytes, directory) {
        return Ok(bytes);
    }
    let rewrite = || {
        let mut rewriter = Rewriter::read(&bytes)?;
        rewriter.elf_set_runpath(directory.into())?;
        // DT_RUNPATH is for what the program itself needs, DT_RPATH also for what that needs.
        rewriter.elf_use_rpath()?;
        let mut changed = Vec::with_capacity(bytes.len() + (1 << 16));
        rewriter.write(&mut changed)?;
        Ok(changed)
    };
    rewrite().map_err(|error: object_rewrite::Error| EmbedError::Program {
        program: program.to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_as_the_loader_names_them() {
        let read = |line| library(line).unwrap().map(|(name, path)| (name, path.display().to_string()));
        let found = |name: &str, path: &str| Some((name.to_owned(), path.to_owned()));
        assert_eq!(
            read("\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f)"),
            found("libz.so.1", "/lib/x86_64-linux-gnu/libz.so.1")
        );
        for line in [
            "\tlinux-vdso.so.1 (0x00007ffd)",
            "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)",
            "\t/lib64/ld-linux-x86-64.so.2 => /lib64/ld-linux-x86-64.so.2 (0x00007f)",
            "\tlibm.so.6 => /lib/libm.so.6 (0x00007f)",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
        assert_eq!(library("libx.so => not found"), Err("libx.so is not on this machine".into()));
    }

    #[test]
    fn a_program_with_another_search_path_runs() {
        let directory = tempfile::tempdir().unwrap();
        // It has no search path of its own.
        let own = Path::new("/bin/ls").to_owned();
        let (written, copy) = (directory.path().join("written"), directory.path().join("copy"));
        fs::write(&written, with_search_path(&own, "$ORIGIN/lib").unwrap()).unwrap();
        // Another process writes what is run: children of other tests may hold what this one has open ("Text file busy").
        let mut install = Command::new("install");
        assert!(install.args(["-m", "755"]).arg(&written).arg(&copy).status().unwrap().success());
        assert!(Command::new(&copy).arg("--version").output().unwrap().status.success());
        let libraries = libraries_of(&copy, &[]).unwrap();
        assert!(libraries.iter().all(|library| !library.name.starts_with("libc.so")), "{libraries:?}");
    }
}
