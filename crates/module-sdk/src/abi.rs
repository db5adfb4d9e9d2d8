//! `include/regent.h` in Rust. Names and meanings are explained there; a test compares the layouts.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

pub const ABI: u32 = 1;

pub const OK: c_int = 0;
pub const ERROR: c_int = -1;
pub const GONE: c_int = -2;
pub const TOO_LATE: c_int = -3;
pub const INVALID: c_int = -4;

pub const ROUTE_INLINE: u32 = 1;

/// `regent_string`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Text {
    pub data: *const c_char,
    pub size: usize,
}

impl Text {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), size: bytes.len() }
    }

    pub(crate) const NONE: Self = Self { data: ptr::null(), size: 0 };

    /// # Safety
    /// The text was given by the host, and `'a` ends before the handler (or init) returns.
    pub(crate) unsafe fn bytes<'a>(self) -> Option<&'a [u8]> {
        if self.data.is_null() {
            return None;
        }
        // SAFETY: the caller's promise; the host hands out (pointer, length) of readable bytes.
        Some(unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) })
    }
}

/// `regent_instance`.
#[repr(C)]
pub struct Instance {
    opaque: [u8; 0],
}

/// `regent_request`.
#[repr(C)]
pub struct Request {
    opaque: [u8; 0],
}

pub type Handler = unsafe extern "C" fn(&'static Api, *mut Request, *mut c_void) -> c_int;

#[repr(C)]
pub struct Route {
    pub size: usize,
    pub method: *const c_char,
    pub path: *const c_char,
    pub flags: u32,
    pub handler: Handler,
    pub data: *mut c_void,
}

#[repr(C)]
pub struct Dependency {
    pub name: *const c_char,
    pub version: *const c_char,
}

// SAFETY: points at constants only; `module::needs` is what makes them.
unsafe impl Sync for Dependency {}

pub type Init = unsafe extern "C" fn(&'static Api, *mut Instance, *mut *mut c_void) -> c_int;
pub type Cleanup = unsafe extern "C" fn(&'static Api, *mut Instance, *mut c_void);

#[repr(C)]
pub struct ModuleInfo {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
    pub name: *const c_char,
    pub version: *const c_char,
    pub dependencies: *const Dependency,
    pub dependency_count: usize,
    pub init: Init,
    pub cleanup: Option<Cleanup>,
}

// SAFETY: points at constants only; `module::describe` is what makes them.
unsafe impl Sync for ModuleInfo {}

#[derive(Default)]
#[repr(C)]
pub struct Statistics {
    pub size: usize,
    pub requests: u64,
    pub answers: [u64; 6],
    pub running: u64,
    pub bytes: u64,
}

/// What `regent_api` begins with in every version: all that may be read before its size is known.
#[repr(C)]
pub struct ApiHead {
    pub size: usize,
    pub abi: u32,
    pub reserved: u32,
}

/// `regent_api`.
#[repr(C)]
pub struct Api {
    pub head: ApiHead,
    pub configuration: unsafe extern "C" fn(*mut Instance, Text) -> Text,
    pub next_configuration: unsafe extern "C" fn(*mut Instance, &mut usize, &mut Text, &mut Text) -> c_int,
    pub route: unsafe extern "C" fn(*mut Instance, &Route) -> c_int,
    pub fail: unsafe extern "C" fn(*mut Instance, Text) -> c_int,
    pub offer: unsafe extern "C" fn(*mut Instance, Text, u32, *const c_void) -> c_int,
    pub find: unsafe extern "C" fn(*mut Instance, Text, u32) -> *const c_void,
    pub log: unsafe extern "C" fn(*mut Instance, c_int, Text),
    pub statistics: unsafe extern "C" fn(*mut Instance, &mut Statistics) -> c_int,
    pub method: unsafe extern "C" fn(*mut Request) -> Text,
    pub path: unsafe extern "C" fn(*mut Request) -> Text,
    pub target: unsafe extern "C" fn(*mut Request) -> Text,
    pub query: unsafe extern "C" fn(*mut Request) -> Text,
    pub parameter: unsafe extern "C" fn(*mut Request, Text) -> Text,
    pub query_value: unsafe extern "C" fn(*mut Request, Text, usize) -> Text,
    pub header: unsafe extern "C" fn(*mut Request, Text) -> Text,
    pub next_header: unsafe extern "C" fn(*mut Request, &mut usize, &mut Text, &mut Text) -> c_int,
    pub variable: unsafe extern "C" fn(*mut Request, Text) -> Text,
    pub body_length: unsafe extern "C" fn(*mut Request) -> u64,
    pub read_body: unsafe extern "C" fn(*mut Request, *mut c_void, usize) -> isize,
    /// Not used here: serde reads the body.
    pub json: unsafe extern "C" fn(*mut Request, Text, *mut c_void) -> c_int,
    pub reason: unsafe extern "C" fn(*mut Request) -> Text,
    pub is_gone: unsafe extern "C" fn(*mut Request) -> c_int,
    pub set_status: unsafe extern "C" fn(*mut Request, c_uint) -> c_int,
    pub set_header: unsafe extern "C" fn(*mut Request, Text, Text) -> c_int,
    pub add_header: unsafe extern "C" fn(*mut Request, Text, Text) -> c_int,
    pub write: unsafe extern "C" fn(*mut Request, *const c_void, usize) -> c_int,
    pub flush: unsafe extern "C" fn(*mut Request) -> c_int,
    pub add_trailer: unsafe extern "C" fn(*mut Request, Text, Text) -> c_int,
    pub refuse: unsafe extern "C" fn(*mut Request, c_uint, Text) -> c_int,
}
