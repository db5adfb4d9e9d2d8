//! One shared library: opened, and what it says of itself, checked.

use crate::abi::{self, Api, ModuleFunction, ModuleInfo, SizeError, Versioned};
use crate::error::LoadError;
use crate::exchange::LogSink;
use crate::module_call::contained;
use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW, Symbol};
use std::ffi::{CStr, c_char};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a name or version.
const MOST_TEXT: usize = 128;
const MOST_DEPENDENCIES: usize = 256;

/// A module whose description makes sense.
#[derive(Debug)]
pub struct Library {
    /// As configured.
    pub file: PathBuf,
    pub name: String,
    pub version: String,
    pub dependencies: Vec<Dependency>,
    pub init: abi::Init,
    pub cleanup: Option<abi::Cleanup>,
}

/// Another module that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    pub name: String,
    /// The lowest that will do.
    pub version: Option<String>,
}

impl Library {
    /// `file`: as configured; `path`: absolute, since the loader looks for other names in the system's directories.
    pub fn open(file: &Path, path: &Path, api: &'static Api, log: &LogSink) -> Result<Self, LoadError> {
        let describe = entry(file, path)?;
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        // SAFETY: regent.h says that the symbol has this type.
        let info = contained(log, &name, "regent_module", || unsafe { describe(api) });
        if info.is_null() {
            return Err(LoadError::Declined { file: file.to_owned() });
        }
        // SAFETY: regent.h says that the description begins with its size and stays valid.
        let info = unsafe { abi::read(info) }.map_err(|error| bad(file, &describe_size(error)))?;
        check_abi(file, &info)?;
        // SAFETY: as above.
        unsafe { understand(file, &info) }
    }
}

/// Opens the library for the life of the process, and finds the function that it must export.
fn entry(file: &Path, path: &Path) -> Result<Symbol<ModuleFunction>, LoadError> {
    let name = loader_name(path)
        .map_err(|error| LoadError::NotFound { file: file.to_owned(), reason: error.to_string() })?;
    // SAFETY: runs the library's constructors: what the site's owner has configured is trusted to be code.
    let handle = unsafe { Handle::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        let reason = reason(&error);
        let file = file.to_owned();
        // The words of dlerror(3) of glibc and of musl.
        if reason.contains("undefined symbol") || reason.contains("symbol not found") {
            LoadError::MissingSymbol { file, reason }
        } else {
            LoadError::NotALibrary { file, reason }
        }
    })?;
    // SAFETY: regent.h says that the symbol has this type.
    let symbol = unsafe { handle.get(abi::SYMBOL.as_bytes()) };
    // Threads, destructors and handlers of the library may be about whatever becomes of the module.
    std::mem::forget(handle);
    symbol.map_err(|_| LoadError::NoEntry { file: file.to_owned() })
}

/// A name of the file that no other file has had: the loader takes the library that it has loaded by a name before,
/// though the file may have been replaced since. Steps that lead nowhere spell the number of the file, which stays
/// taken as long as the library is loaded, so for ever. `$ORIGIN` means the same directory.
fn loader_name(path: &Path) -> io::Result<PathBuf> {
    let number = path.metadata()?.ino();
    let mut name = path.parent().unwrap_or(Path::new("/")).as_os_str().to_owned();
    for bit in 0..u64::BITS - number.leading_zeros() {
        name.push(if number >> bit & 1 == 0 { "/." } else { "//." });
    }
    name.push("/");
    name.push(path.file_name().unwrap_or_default());
    Ok(name.into())
}

/// The system's words, which libloading keeps as the source.
fn reason(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

fn check_abi(file: &Path, info: &ModuleInfo) -> Result<(), LoadError> {
    if info.abi == abi::ABI {
        return Ok(());
    }
    Err(LoadError::WrongAbi { file: file.to_owned(), found: info.abi, known: abi::ABI })
}

/// # Safety
/// The pointers are NULL, or as regent.h says.
pub(crate) unsafe fn understand(file: &Path, info: &ModuleInfo) -> Result<Library, LoadError> {
    // SAFETY: the caller's promise.
    let (name, version) = unsafe { (text(info.name), text(info.version)) };
    let name = name.ok_or_else(|| bad(file, "it has no name"))?;
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        return Err(bad(
            file,
            &format!("the name {name:?} has other characters than letters, digits, - _ ."),
        ));
    }
    let version = version.ok_or_else(|| bad(file, "it has no version"))?;
    let init = info.init.ok_or_else(|| bad(file, "it has no init"))?;
    // SAFETY: the caller's promise.
    let dependencies = unsafe { dependencies(file, info) }?;
    Ok(Library { file: file.to_owned(), name, version, dependencies, init, cleanup: info.cleanup })
}

/// # Safety
/// As of [`understand`].
unsafe fn dependencies(file: &Path, info: &ModuleInfo) -> Result<Vec<Dependency>, LoadError> {
    let (first, count) = (info.dependencies, info.dependency_count);
    if count > MOST_DEPENDENCIES || (count > 0 && (first.is_null() || !first.is_aligned())) {
        return Err(bad(file, &format!("it announces {count} dependencies, which are not there")));
    }
    let dependency = |index| {
        // SAFETY: regent.h says that there are so many.
        let raw = unsafe { first.add(index).read() };
        // SAFETY: the caller's promise.
        let (name, version) = unsafe { (text(raw.name), text(raw.version)) };
        let name = name.ok_or_else(|| bad(file, &format!("dependency {index} has no name")))?;
        Ok(Dependency { name, version })
    };
    (0..count).map(dependency).collect()
}

/// `None` for NULL, nothing, or what is no text.
///
/// # Safety
/// NULL, or a text that ends with a NUL.
unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str().ok()?;
    (!text.is_empty() && text.len() <= MOST_TEXT).then(|| text.to_owned())
}

fn bad(file: &Path, what: &str) -> LoadError {
    LoadError::BadDescription { file: file.to_owned(), what: what.to_owned() }
}

fn describe_size(error: SizeError) -> String {
    match error {
        SizeError::Null | SizeError::Misaligned => "its address is none of a struct".to_owned(),
        SizeError::Size(size) => {
            format!("its size is {size} bytes, at least {} are needed", ModuleInfo::LEAST)
        }
    }
}
