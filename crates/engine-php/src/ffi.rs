//! `sapi/regent_sapi.h` as Rust sees it: the same structs, by hand, so that no user's build needs bindgen.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::AtomicU32;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    pub ptr: *const c_char,
    pub len: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Var {
    pub key: u32,
    pub name: Str,
    pub value: Str,
}

#[repr(C)]
pub struct Request {
    pub method: Str,
    pub uri: Str,
    pub query_string: Str,
    pub content_type: Str,
    pub content_length: i64,
    pub cookie: Str,
    pub authorization: Str,
    pub script_filename: Str,
    pub path_translated: Str,
    pub proto_num: c_int,
    pub vars: *const Var,
    pub n_vars: usize,
    pub env: *const Var,
    pub n_env: usize,
    pub started: i64,
    pub time_limit: i64,
    pub given_up: *const AtomicU32,
}

#[repr(C)]
pub struct Emit {
    pub has_head: c_int,
    pub status: c_int,
    pub headers: *const Str,
    pub n_headers: usize,
    pub reason: Str,
    pub body: *const c_char,
    pub body_len: usize,
    pub informational: c_int,
    pub end: c_int,
    pub overdue: c_int,
    pub truncated: c_int,
    pub memory: u64,
}

#[repr(C)]
pub struct Overdue {
    pub thread: u32,
    pub script: Str,
    pub uri: Str,
    pub limit: i64,
    pub ran: i64,
    pub departed: c_int,
    pub end: c_int,
    pub trace: Str,
}

#[repr(C)]
pub struct Slow {
    pub thread: u32,
    pub script: Str,
    pub uri: Str,
    pub ran: i64,
    pub trace: Str,
    pub omitted: u64,
}

pub const OK: c_int = 0;
pub const CLIENT_GONE: c_int = 1;

#[repr(C)]
pub struct Callbacks {
    pub next_request: extern "C" fn(*mut c_void, *mut Request) -> c_int,
    pub read_body: extern "C" fn(*mut c_void, *mut c_char, usize) -> i64,
    pub emit: extern "C" fn(*mut c_void, *const Emit) -> c_int,
    pub client_gone: extern "C" fn(*mut c_void) -> c_int,
    pub release: extern "C" fn(*mut c_void),
    pub log: extern "C" fn(*mut c_void, c_int, Str, Str),
    pub restart_wanted: extern "C" fn(Str, Str),
    pub overdue: extern "C" fn(*const Overdue),
    pub publish: extern "C" fn(*mut c_void, *const Publication, *mut c_char) -> c_int,
    pub purge: extern "C" fn(*mut c_void, *const Purge, *mut u64) -> c_int,
    pub slow: extern "C" fn(*const Slow),
    pub straggles: extern "C" fn(u32, i64),
    pub traced: extern "C" fn(u32, Str),
}

#[repr(C)]
pub struct Publication {
    pub topics: *const Str,
    pub n_topics: usize,
    pub data: Str,
    pub private_update: c_int,
    pub id: Str,
    pub kind: Str,
    pub retry: i64,
}

/// A `url` or `prefix` without a pointer is none.
#[repr(C)]
pub struct Purge {
    pub tags: *const Str,
    pub n_tags: usize,
    pub url: Str,
    pub prefix: Str,
}

/// Bytes of an id that was made, with the NUL behind it.
pub const UPDATE_ID: usize = 64;

#[repr(C)]
pub struct Options {
    pub threads: c_int,
    pub ini: *const c_char,
    pub software: *const c_char,
    pub well_known: *const Str,
    pub n_well_known: usize,
    pub interrupt_signal: c_int,
    pub slow_after: i64,
    pub departed_after: i64,
    pub trace_signal: c_int,
    pub socket: c_int,
}

#[repr(C)]
pub struct ThreadOptions {
    pub worker_script: *const c_char,
    pub worker_env: *const Var,
    pub n_worker_env: usize,
    pub number: u32,
}

/// `regent_function`: addresses that stand for texts.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function {
    pub name: usize,
    pub scope: usize,
    pub file: usize,
    pub process: i64,
}

/// `REGENT_MOST_FUNCTIONS`
pub const MOST_FUNCTIONS: usize = 256;
/// Bytes of a URI in a sample.
pub const MOST_URI: usize = 256;

/// `regent_sample`
#[repr(C)]
pub struct Sample {
    pub cpu: i64,
    pub n_functions: usize,
    pub functions: [Function; MOST_FUNCTIONS],
    pub uri_length: usize,
    pub uri: [u8; MOST_URI],
}

/// Why `regent_php_thread` returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadEnd {
    Stopped,
    Recycle,
    WorkerEnded,
    WorkerBootFailed,
    WorkerCrashed,
    /// This thread of the system is not to be used for PHP again.
    WornOut,
    Failed,
}

impl ThreadEnd {
    pub fn from_code(code: c_int) -> Self {
        match code {
            0 => Self::Stopped,
            1 => Self::Recycle,
            2 => Self::WorkerEnded,
            3 => Self::WorkerBootFailed,
            5 => Self::WorkerCrashed,
            6 => Self::WornOut,
            _ => Self::Failed,
        }
    }
}

unsafe extern "C" {
    pub fn regent_php_start(options: *const Options, callbacks: *const Callbacks) -> c_int;
    pub fn regent_php_enter_process() -> c_int;
    pub fn regent_php_stop();
    pub fn regent_php_version() -> *const c_char;
    pub fn regent_php_opcache_enabled() -> c_int;
    pub fn regent_php_ini_name(index: usize) -> Str;
    pub fn regent_php_sample(
        thread: u32,
        process: c_int,
        with_functions: c_int,
        sample: *mut Sample,
    ) -> c_int;
    pub fn regent_php_function_name(function: *const Function, text: *mut c_char, size: usize) -> usize;
    pub fn regent_php_function_file(function: *const Function, text: *mut c_char, size: usize) -> usize;
    pub fn regent_php_trace(thread: u32, text: *mut c_char, size: usize) -> usize;
    pub fn regent_php_thread(thread: *mut c_void, options: *const ThreadOptions) -> c_int;
}

impl Sample {
    pub const EMPTY: Self = Self {
        cpu: 0,
        n_functions: 0,
        functions: [Function { name: 0, scope: 0, file: 0, process: 0 }; MOST_FUNCTIONS],
        uri_length: 0,
        uri: [0; MOST_URI],
    };

    /// The innermost first.
    pub fn functions(&self) -> &[Function] {
        &self.functions[..self.n_functions.min(MOST_FUNCTIONS)]
    }

    pub fn uri(&self) -> &[u8] {
        &self.uri[..self.uri_length.min(MOST_URI)]
    }
}

impl Str {
    pub const EMPTY: Self = Self { ptr: c"".as_ptr(), len: 0 };

    pub fn new(bytes: &[u8]) -> Self {
        Self { ptr: bytes.as_ptr().cast(), len: bytes.len() }
    }

    /// # Safety
    /// The C side gave it, and it is valid for the call that gave it.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: law 5: (pointer, length) of memory that outlives the callback.
        unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.len) }
    }
}

impl Var {
    pub const OTHER: u32 = 0xFFFF;

    pub fn named(name: &[u8], value: &[u8]) -> Self {
        Self { key: Self::OTHER, name: Str::new(name), value: Str::new(value) }
    }
}
