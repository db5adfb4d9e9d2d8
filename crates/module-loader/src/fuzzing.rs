//! What the fuzz targets in `fuzz/` look at and no other crate may: what a native module hands over, and what becomes
//! of it.

pub use crate::answer::{Answer, Body, Buffers, Outcome};
pub use crate::router::{Captures, Execution, Found, Route, RouteError, Router};

use crate::abi::{self, ModuleInfo, RawDependency, RawRoute, RawStatistics, Versioned};
use crate::error::LoadError;
use crate::fields::Fields;
use crate::json::{self, Document};
use crate::library;
use bumpalo::Bump;
use std::cmp::Ordering;
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;

/// Texts of a module's description; `None`: NULL.
pub type Text<'a> = Option<&'a CStr>;

/// Whether a handler could set this field.
pub fn accepts_field(name: &[u8], value: &[u8]) -> bool {
    Fields::default().add(name, value).is_ok()
}

/// A route to nothing.
pub fn route() -> Route {
    Route::new(handler, std::ptr::null_mut(), Execution::Engine)
}

/// Name and version of a module that describes itself so.
pub fn describe(
    name: Text<'_>,
    version: Text<'_>,
    needs: &[(Text<'_>, Text<'_>)],
) -> Result<(String, String, usize), LoadError> {
    let pointer = |text: Text<'_>| text.map_or(std::ptr::null(), CStr::as_ptr);
    let dependency =
        |(name, version): &(_, _)| RawDependency { name: pointer(*name), version: pointer(*version) };
    let dependencies: Vec<_> = needs.iter().map(dependency).collect();
    let info = ModuleInfo {
        size: size_of::<ModuleInfo>(),
        abi: abi::ABI,
        reserved: 0,
        name: pointer(name),
        version: pointer(version),
        dependencies: dependencies.as_ptr(),
        dependency_count: dependencies.len(),
        init: Some(init),
        cleanup: None,
    };
    // SAFETY: the pointers are NULL or those of texts and of a list that live until the call returns.
    let library = unsafe { library::understand(Path::new("module.so"), &info) }?;
    Ok((library.name, library.version, library.dependencies.len()))
}

/// Reads a route and fills in statistics, each in a struct that claims to be so large; the rest of it is `filling`.
/// Returns whether they could be read and filled in, and all bytes of the statistics.
pub fn structs_of_size(claimed: usize, filling: u8) -> (bool, bool, Vec<u8>) {
    let route = Block::of::<RawRoute>(claimed, filling);
    let mut statistics = Block::of::<RawStatistics>(claimed, filling);
    // SAFETY: a block is as large as it says.
    let is_read = unsafe { abi::read(route.words.as_ptr().cast::<RawRoute>()) }.is_ok();
    let value = RawStatistics { size: 0, requests: 1, answers: [2; 6], running: 3, bytes: 4 };
    // SAFETY: as above.
    let is_written = unsafe { abi::write(statistics.words.as_mut_ptr().cast(), &value) }.is_ok();
    (is_read, is_written, statistics.words.iter().flat_map(|word| word.to_ne_bytes()).collect())
}

/// Least and greatest size of the statistics that this version fills in, in bytes.
pub const STATISTICS: (usize, usize) = (RawStatistics::LEAST, size_of::<RawStatistics>());

/// What a module is told of the value at a JSON pointer of a body: its kind and its text.
pub fn json_at(body: &[u8], pointer: &str) -> Option<(u32, String)> {
    let Document::Value(document) = Document::parse(body) else { return None };
    let value = document.pointer(pointer).filter(|_| json::is_pointer(pointer))?;
    let arena = Bump::new();
    let raw = json::describe(value, &arena);
    // SAFETY: the text is the value's or the arena's, which live.
    Some((raw.kind, unsafe { raw.text.text() }))
}

pub fn compare_versions(a: &str, b: &str) -> Ordering {
    crate::version::compare(a, b)
}

/// Memory that begins with its size, as far as that is one that is believed.
struct Block {
    words: Vec<u64>,
}

impl Block {
    fn of<T: Versioned>(claimed: usize, filling: u8) -> Self {
        let bytes = if claimed > abi::MOST { size_of::<T>() } else { claimed.max(size_of::<usize>()) };
        let mut words = vec![u64::from_ne_bytes([filling; 8]); bytes.div_ceil(8)];
        words[0] = claimed as u64;
        Self { words }
    }
}

extern "C-unwind" fn init(_: *const abi::Api, _: abi::RawInstance, _: *mut *mut c_void) -> c_int {
    abi::OK
}

extern "C-unwind" fn handler(_: *const abi::Api, _: abi::RawRequest, _: *mut c_void) -> c_int {
    abi::OK
}
