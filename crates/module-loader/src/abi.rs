//! `include/regent.h` in Rust: types and numbers, compared with the header by a test.

use std::ffi::{c_char, c_int, c_uint, c_void};

pub const ABI: u32 = 1;

pub const OK: c_int = 0;
pub const ERROR: c_int = -1;
pub const GONE: c_int = -2;
pub const TOO_LATE: c_int = -3;
pub const INVALID: c_int = -4;
pub const MISSING: c_int = -5;
pub const BAD_REQUEST: c_int = -6;

pub const ROUTE_INLINE: u32 = 1;

pub const JSON_NULL: u32 = 1;
pub const JSON_BOOLEAN: u32 = 2;
pub const JSON_INTEGER: u32 = 3;
pub const JSON_NUMBER: u32 = 4;
pub const JSON_STRING: u32 = 5;
pub const JSON_ARRAY: u32 = 6;
pub const JSON_OBJECT: u32 = 7;

/// The symbol of a module.
pub const SYMBOL: &str = "regent_module";

/// A struct whose size is claimed to be larger than any version will ever be was not filled in.
pub(crate) const MOST: usize = 64 * 1024;

/// `regent_string`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Str {
    pub data: *const c_char,
    pub size: usize,
}

/// `regent_instance` and `regent_request`, as pointers to them arrive.
pub type RawInstance = *mut c_void;
pub type RawRequest = *mut c_void;

// What a module lets unwind is a foreign exception, which `module_call` turns into the end of the process.
pub type ModuleFunction = unsafe extern "C-unwind" fn(*const Api) -> *const ModuleInfo;
pub type Init = unsafe extern "C-unwind" fn(*const Api, RawInstance, *mut *mut c_void) -> c_int;
pub type Cleanup = unsafe extern "C-unwind" fn(*const Api, RawInstance, *mut c_void);
pub type Handler = unsafe extern "C-unwind" fn(*const Api, RawRequest, *mut c_void) -> c_int;

/// `regent_route`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawRoute {
    pub size: usize,
    pub method: *const c_char,
    pub path: *const c_char,
    pub flags: u32,
    pub handler: Option<Handler>,
    pub data: *mut c_void,
}

/// `regent_dependency`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawDependency {
    pub name: *const c_char,
    pub version: *const c_char,
}

/// `regent_module_info`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ModuleInfo {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
    pub name: *const c_char,
    pub version: *const c_char,
    pub dependencies: *const RawDependency,
    pub dependency_count: usize,
    pub init: Option<Init>,
    pub cleanup: Option<Cleanup>,
}

/// `regent_json`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawJson {
    pub size: usize,
    pub kind: u32,
    pub boolean: u32,
    pub integer: i64,
    pub number: f64,
    pub text: Str,
    pub count: usize,
}

/// `regent_statistics`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawStatistics {
    pub size: usize,
    pub requests: u64,
    pub answers: [u64; 6],
    pub running: u64,
    pub bytes: u64,
}

/// `regent_api`.
#[repr(C)]
pub struct Api {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,

    pub configuration: unsafe extern "C" fn(RawInstance, Str) -> Str,
    pub next_configuration: unsafe extern "C" fn(RawInstance, *mut usize, *mut Str, *mut Str) -> c_int,
    pub route: unsafe extern "C" fn(RawInstance, *const RawRoute) -> c_int,
    pub fail: unsafe extern "C" fn(RawInstance, Str) -> c_int,
    pub offer: unsafe extern "C" fn(RawInstance, Str, u32, *const c_void) -> c_int,
    pub find: unsafe extern "C" fn(RawInstance, Str, u32) -> *const c_void,

    pub log: unsafe extern "C" fn(RawInstance, c_int, Str),
    pub statistics: unsafe extern "C" fn(RawInstance, *mut RawStatistics) -> c_int,

    pub method: unsafe extern "C" fn(RawRequest) -> Str,
    pub path: unsafe extern "C" fn(RawRequest) -> Str,
    pub target: unsafe extern "C" fn(RawRequest) -> Str,
    pub query: unsafe extern "C" fn(RawRequest) -> Str,
    pub parameter: unsafe extern "C" fn(RawRequest, Str) -> Str,
    pub query_value: unsafe extern "C" fn(RawRequest, Str, usize) -> Str,
    pub header: unsafe extern "C" fn(RawRequest, Str) -> Str,
    pub next_header: unsafe extern "C" fn(RawRequest, *mut usize, *mut Str, *mut Str) -> c_int,
    pub variable: unsafe extern "C" fn(RawRequest, Str) -> Str,
    pub body_length: unsafe extern "C" fn(RawRequest) -> u64,
    pub read_body: unsafe extern "C" fn(RawRequest, *mut c_void, usize) -> isize,
    pub json: unsafe extern "C" fn(RawRequest, Str, *mut RawJson) -> c_int,
    pub reason: unsafe extern "C" fn(RawRequest) -> Str,
    pub is_gone: unsafe extern "C" fn(RawRequest) -> c_int,

    pub set_status: unsafe extern "C" fn(RawRequest, c_uint) -> c_int,
    pub set_header: unsafe extern "C" fn(RawRequest, Str, Str) -> c_int,
    pub add_header: unsafe extern "C" fn(RawRequest, Str, Str) -> c_int,
    pub write: unsafe extern "C" fn(RawRequest, *const c_void, usize) -> c_int,
    pub flush: unsafe extern "C" fn(RawRequest) -> c_int,
    pub add_trailer: unsafe extern "C" fn(RawRequest, Str, Str) -> c_int,
    pub refuse: unsafe extern "C" fn(RawRequest, c_uint, Str) -> c_int,
}

impl Str {
    /// Nothing, which differs from an empty text.
    pub const NONE: Self = Self { data: std::ptr::null(), size: 0 };

    pub fn new(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), size: bytes.len() }
    }

    pub fn option(bytes: Option<&[u8]>) -> Self {
        bytes.map_or(Self::NONE, Self::new)
    }

    /// # Safety
    /// The bytes must be there, unchanged, for `'a`.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: the caller's promise; an impossible size was not filled in.
        unsafe { bytes(self.data.cast(), self.size) }
    }

    /// As the host's words for people.
    ///
    /// # Safety
    /// As of [`Str::bytes`], for the time of the call.
    pub unsafe fn text(self) -> String {
        // SAFETY: the caller's promise.
        String::from_utf8_lossy(unsafe { self.bytes() }).into_owned()
    }
}

/// Bytes that a module passes; nothing for a NULL or a size that no memory has.
///
/// # Safety
/// The bytes must be there, unchanged, for `'a`.
pub unsafe fn bytes<'a>(data: *const u8, size: usize) -> &'a [u8] {
    if data.is_null() || size > isize::MAX as usize {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data, size) }
}

/// A struct that begins with its size, in bytes.
///
/// # Safety
/// `#[repr(C)]`, its first member is a `usize`, it has no padding that matters, and all bits zero are a valid value.
pub unsafe trait Versioned {
    /// Bytes up to the end of the last member that is needed.
    const LEAST: usize;
}

// SAFETY: pointers, numbers and optional functions.
unsafe impl Versioned for ModuleInfo {
    const LEAST: usize = std::mem::offset_of!(Self, cleanup);
}

// SAFETY: as above.
unsafe impl Versioned for RawRoute {
    const LEAST: usize = std::mem::offset_of!(Self, data);
}

// SAFETY: numbers and a pointer.
unsafe impl Versioned for RawJson {
    const LEAST: usize = std::mem::offset_of!(Self, boolean);
}

// SAFETY: numbers.
unsafe impl Versioned for RawStatistics {
    const LEAST: usize = std::mem::offset_of!(Self, answers);
}

/// Why a struct cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeError {
    Null,
    Misaligned,
    /// What its first word says, in bytes.
    Size(usize),
}

/// Reads as much of a struct as its maker says that there is; members beyond are zero.
///
/// # Safety
/// The memory is as large as its first word says, if that is a size that a version can have.
pub unsafe fn read<T: Versioned + Copy>(from: *const T) -> Result<T, SizeError> {
    // SAFETY: the caller's promise.
    let size = unsafe { claimed_size(from) }?;
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: both hold so many bytes; what is not copied is zero, which `Versioned` says is valid.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), value.as_mut_ptr().cast(), size.min(size_of::<T>()));
        Ok(value.assume_init())
    }
}

/// Fills in as much of a struct as its maker says that there is; its size stays.
///
/// # Safety
/// As of [`read`].
pub unsafe fn write<T: Versioned>(to: *mut T, value: &T) -> Result<(), SizeError> {
    // SAFETY: the caller's promise.
    let size = unsafe { claimed_size(to.cast_const()) }?.min(size_of::<T>());
    let first = size_of::<usize>();
    let from: *const T = value;
    // SAFETY: both hold so many bytes; `size` is at least `LEAST`, which is beyond the first member.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>().add(first), to.cast::<u8>().add(first), size - first);
    }
    Ok(())
}

/// The size of a struct that can be read, or filled in, as its maker says.
///
/// # Safety
/// As of [`read`].
pub unsafe fn claimed_size<T: Versioned>(pointer: *const T) -> Result<usize, SizeError> {
    if pointer.is_null() {
        return Err(SizeError::Null);
    }
    if !pointer.is_aligned() {
        return Err(SizeError::Misaligned);
    }
    // SAFETY: there is a struct, and it begins with its size.
    let size = unsafe { pointer.cast::<usize>().read() };
    if (T::LEAST..=MOST).contains(&size) { Ok(size) } else { Err(SizeError::Size(size)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use std::mem::offset_of;
    use std::process::Command;

    fn assertion(out: &mut String, expression: &str, value: i64) {
        writeln!(out, "_Static_assert({expression} == {value}, \"{expression} is {value}\");").unwrap();
    }

    /// An assertion for each member, and one for the size.
    macro_rules! offsets {
        ($out:ident, $rust:ty, $c:literal, $($field:ident),+) => {
            assertion(&mut $out, concat!("sizeof(", $c, ")"), std::mem::size_of::<$rust>() as i64);
            $(assertion(
                &mut $out,
                concat!("offsetof(", $c, ", ", stringify!($field), ")"),
                offset_of!($rust, $field) as i64,
            );)+
        };
    }

    fn structures(mut out: String) -> String {
        offsets!(out, Str, "regent_string", data, size);
        offsets!(out, RawRoute, "regent_route", size, method, path, flags, handler, data);
        offsets!(out, RawDependency, "regent_dependency", name, version);
        offsets!(out, ModuleInfo, "regent_module_info", size, abi, reserved, name, version, dependencies);
        offsets!(out, ModuleInfo, "regent_module_info", dependency_count, init, cleanup);
        offsets!(out, RawJson, "regent_json", size, kind, boolean, integer, number, text, count);
        offsets!(out, RawStatistics, "regent_statistics", size, requests, answers, running, bytes);
        offsets!(out, Api, "regent_api", size, abi, reserved, configuration, next_configuration, route, fail);
        offsets!(
            out,
            Api,
            "regent_api",
            offer,
            find,
            log,
            statistics,
            method,
            path,
            target,
            query,
            parameter
        );
        offsets!(out, Api, "regent_api", query_value, header, next_header, variable, body_length, read_body);
        offsets!(out, Api, "regent_api", json, reason, is_gone, set_status, set_header, add_header, write);
        offsets!(out, Api, "regent_api", flush, add_trailer, refuse);
        out
    }

    fn constants(mut out: String) -> String {
        let values = [
            ("ABI", i64::from(ABI)),
            ("OK", i64::from(OK)),
            ("ERROR", i64::from(ERROR)),
            ("GONE", i64::from(GONE)),
            ("TOO_LATE", i64::from(TOO_LATE)),
            ("INVALID", i64::from(INVALID)),
            ("MISSING", i64::from(MISSING)),
            ("BAD_REQUEST", i64::from(BAD_REQUEST)),
            ("ROUTE_INLINE", i64::from(ROUTE_INLINE)),
            ("JSON_NULL", i64::from(JSON_NULL)),
            ("JSON_BOOLEAN", i64::from(JSON_BOOLEAN)),
            ("JSON_INTEGER", i64::from(JSON_INTEGER)),
            ("JSON_NUMBER", i64::from(JSON_NUMBER)),
            ("JSON_STRING", i64::from(JSON_STRING)),
            ("JSON_ARRAY", i64::from(JSON_ARRAY)),
            ("JSON_OBJECT", i64::from(JSON_OBJECT)),
            ("LOG_ERROR", crate::Level::Error as i64),
            ("LOG_WARNING", crate::Level::Warning as i64),
            ("LOG_INFO", crate::Level::Info as i64),
            ("LOG_DEBUG", crate::Level::Debug as i64),
        ];
        for (name, value) in values {
            assertion(&mut out, &format!("REGENT_{name}"), value);
        }
        writeln!(out, "_Static_assert(sizeof REGENT_MODULE_SYMBOL == {}, \"symbol\");", SYMBOL.len() + 1)
            .unwrap();
        out
    }

    #[test]
    fn the_c_header_says_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("layout.c");
        let text = constants(structures("#include \"regent.h\"\n".to_owned()));
        std::fs::write(&source, text).unwrap();
        let compiled = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../include"))
            .arg(&source)
            .output()
            .expect("a C compiler named cc");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    }

    fn statistics(size: usize) -> RawStatistics {
        RawStatistics { size, requests: 1, answers: [2; 6], running: 3, bytes: 4 }
    }

    #[test]
    fn a_shorter_struct_is_read_and_written_up_to_its_end() {
        let end = offset_of!(RawStatistics, running);
        let from = statistics(end);
        // SAFETY: the struct is larger than its first word says.
        let read = unsafe { read(&raw const from) }.unwrap();
        assert_eq!((read.answers, read.running, read.bytes), ([2; 6], 0, 0));
        let mut to = RawStatistics { size: end, requests: 0, answers: [0; 6], running: 0, bytes: 0 };
        // SAFETY: as above.
        unsafe { write(&raw mut to, &statistics(0)) }.unwrap();
        assert_eq!((to.size, to.answers, to.running, to.bytes), (end, [2; 6], 0, 0));
    }

    #[test]
    fn a_larger_struct_is_read_no_further_than_it_is_known() {
        #[repr(C)]
        struct Newer(RawStatistics, u64);
        let newer = Newer(statistics(std::mem::size_of::<Newer>()), 7);
        // SAFETY: the struct is as large as its first word says.
        let read = unsafe { read(&raw const newer.0) }.unwrap();
        assert_eq!((read.bytes, newer.1), (4, 7));
    }

    #[test]
    fn sizes_that_no_version_has_are_refused() {
        for size in [0, 15, MOST + 1, usize::MAX] {
            let from = statistics(size);
            // SAFETY: nothing beyond the first word is read.
            assert_eq!(unsafe { read(&raw const from) }.err(), Some(SizeError::Size(size)));
        }
        // SAFETY: nothing is read.
        assert_eq!(unsafe { read::<RawStatistics>(std::ptr::null()) }.err(), Some(SizeError::Null));
        // SAFETY: nothing is read.
        assert_eq!(unsafe { read(9 as *const RawStatistics) }.err(), Some(SizeError::Misaligned));
    }
}
