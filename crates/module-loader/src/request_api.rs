//! The functions of `regent_api` that take a request.

use crate::abi::{self, RawJson, RawRequest, Str};
use crate::answer::Refusal;
use crate::request::Request;
use std::ffi::{c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a function's body: a panic of ours ends here, and a module that passes no request gets `otherwise` too.
///
/// # Safety
/// The pointer is NULL, or that of the request whose handler runs, on its thread.
unsafe fn guarded<'a, T>(request: RawRequest, otherwise: T, body: impl FnOnce(&mut Request<'a>) -> T) -> T {
    // SAFETY: the caller's promise. The host touches the request only within these functions while the handler runs,
    // and they do not call each other.
    let Some(request) = (unsafe { request.cast::<Request<'a>>().as_mut() }) else { return otherwise };
    catch_unwind(AssertUnwindSafe(|| body(request))).unwrap_or(otherwise)
}

fn status(result: Result<(), Refusal>) -> c_int {
    result.map_or_else(|refusal| refusal, |()| abi::OK)
}

/// # Safety
/// As of [`guarded`].
unsafe fn variable(request: RawRequest, name: &[u8]) -> Str {
    // SAFETY: the caller's promise.
    unsafe { guarded(request, Str::NONE, |request| Str::option(request.variable(name))) }
}

pub unsafe extern "C" fn method(request: RawRequest) -> Str {
    // SAFETY: regent.h: the request whose handler runs.
    unsafe { variable(request, b"REQUEST_METHOD") }
}

pub unsafe extern "C" fn path(request: RawRequest) -> Str {
    // SAFETY: as above.
    unsafe { guarded(request, Str::NONE, |request| Str::new(request.path)) }
}

pub unsafe extern "C" fn target(request: RawRequest) -> Str {
    // SAFETY: as above.
    unsafe { variable(request, b"REQUEST_URI") }
}

pub unsafe extern "C" fn query(request: RawRequest) -> Str {
    // SAFETY: as above.
    unsafe {
        guarded(request, Str::NONE, |request| Str::new(request.variable(b"QUERY_STRING").unwrap_or_default()))
    }
}

pub unsafe extern "C" fn parameter(request: RawRequest, name: Str) -> Str {
    // SAFETY: as above, and a text for the time of the call.
    unsafe { guarded(request, Str::NONE, |request| Str::option(request.parameter(name.bytes()))) }
}

pub unsafe extern "C" fn query_value(request: RawRequest, name: Str, index: usize) -> Str {
    // SAFETY: as above.
    unsafe { guarded(request, Str::NONE, |request| Str::option(request.query_value(name.bytes(), index))) }
}

pub unsafe extern "C" fn header(request: RawRequest, name: Str) -> Str {
    // SAFETY: as above.
    unsafe { guarded(request, Str::NONE, |request| Str::option(request.header(name.bytes()))) }
}

pub unsafe extern "C" fn next_header(
    request: RawRequest,
    cursor: *mut usize,
    name: *mut Str,
    value: *mut Str,
) -> c_int {
    let next = |request: &mut Request<'_>| {
        if cursor.is_null() || name.is_null() || value.is_null() {
            return abi::INVALID;
        }
        // SAFETY: regent.h: three places of these types.
        unsafe {
            let Some((field, text)) = request.next_header(&mut *cursor) else { return abi::MISSING };
            *name = Str::new(field);
            *value = Str::new(text);
        }
        abi::OK
    };
    // SAFETY: regent.h: the request whose handler runs.
    unsafe { guarded(request, abi::ERROR, next) }
}

/// The function of the interface of that name.
pub unsafe extern "C" fn any_variable(request: RawRequest, name: Str) -> Str {
    // SAFETY: regent.h: the request whose handler runs, and a text for the time of the call.
    unsafe { variable(request, name.bytes()) }
}

pub unsafe extern "C" fn body_length(request: RawRequest) -> u64 {
    // SAFETY: regent.h: the request whose handler runs.
    unsafe { guarded(request, 0, |request| request.head.body_length().unwrap_or(u64::MAX)) }
}

pub unsafe extern "C" fn read_body(request: RawRequest, buffer: *mut c_void, size: usize) -> isize {
    let read = |request: &mut Request<'_>| {
        if buffer.is_null() || size == 0 {
            return abi::INVALID as isize;
        }
        let size = size.min(isize::MAX as usize);
        // SAFETY: regent.h: so many bytes for the time of the call; they may be uninitialised, and are only written.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size) };
        request.read_body(buffer).map_or_else(|refusal| refusal as isize, |count| count as isize)
    };
    // SAFETY: regent.h: the request whose handler runs.
    unsafe { guarded(request, abi::ERROR as isize, read) }
}

pub unsafe extern "C" fn json(request: RawRequest, pointer: Str, out: *mut RawJson) -> c_int {
    let find = |request: &mut Request<'_>| {
        // SAFETY: regent.h: a struct that begins with its size.
        if unsafe { abi::claimed_size(out) }.is_err() {
            return abi::INVALID;
        }
        // SAFETY: regent.h: a text for the time of the call.
        match request.json(unsafe { pointer.bytes() }) {
            // SAFETY: regent.h: a struct that begins with its size.
            Ok(value) => unsafe { abi::write(out, &value) }.map_or(abi::INVALID, |()| abi::OK),
            Err(refusal) => refusal,
        }
    };
    // SAFETY: regent.h: the request whose handler runs.
    unsafe { guarded(request, abi::ERROR, find) }
}

pub unsafe extern "C" fn reason(request: RawRequest) -> Str {
    // SAFETY: as above.
    unsafe { guarded(request, Str::NONE, |request| Str::option(request.reason().map(str::as_bytes))) }
}

pub unsafe extern "C" fn is_gone(request: RawRequest) -> c_int {
    // SAFETY: as above.
    unsafe { guarded(request, 1, |request| c_int::from(request.answer.exchange.is_gone())) }
}

pub unsafe extern "C" fn set_status(request: RawRequest, number: c_uint) -> c_int {
    // SAFETY: as above.
    unsafe { guarded(request, abi::ERROR, |request| status(request.answer.set_status(number))) }
}

pub unsafe extern "C" fn set_header(request: RawRequest, name: Str, value: Str) -> c_int {
    // SAFETY: as above, and texts for the time of the call.
    unsafe {
        guarded(request, abi::ERROR, |request| status(request.answer.set_header(name.bytes(), value.bytes())))
    }
}

pub unsafe extern "C" fn add_header(request: RawRequest, name: Str, value: Str) -> c_int {
    // SAFETY: as above.
    unsafe {
        guarded(request, abi::ERROR, |request| status(request.answer.add_header(name.bytes(), value.bytes())))
    }
}

pub unsafe extern "C" fn write(request: RawRequest, data: *const c_void, size: usize) -> c_int {
    let write = |request: &mut Request<'_>| {
        if data.is_null() && size > 0 || size > isize::MAX as usize {
            return abi::INVALID;
        }
        // SAFETY: regent.h: so many bytes for the time of the call.
        status(request.answer.write(unsafe { abi::bytes(data.cast(), size) }))
    };
    // SAFETY: regent.h: the request whose handler runs.
    unsafe { guarded(request, abi::ERROR, write) }
}

pub unsafe extern "C" fn flush(request: RawRequest) -> c_int {
    // SAFETY: as above.
    unsafe { guarded(request, abi::ERROR, |request| status(request.answer.flush())) }
}

pub unsafe extern "C" fn add_trailer(request: RawRequest, name: Str, value: Str) -> c_int {
    // SAFETY: as above, and texts for the time of the call.
    unsafe {
        guarded(request, abi::ERROR, |request| {
            status(request.answer.add_trailer(name.bytes(), value.bytes()))
        })
    }
}

pub unsafe extern "C" fn refuse(request: RawRequest, number: c_uint, reason: Str) -> c_int {
    // SAFETY: as above.
    unsafe { guarded(request, abi::ERROR, |request| status(request.answer.refuse(number, &reason.text()))) }
}
