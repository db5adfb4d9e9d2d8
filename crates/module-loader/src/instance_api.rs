//! The functions of `regent_api` that take an instance.

use crate::abi::{self, RawInstance, RawRoute, RawStatistics, Str};
use crate::exchange::Level;
use crate::instance::Instance;
use crate::router::{Execution, Route};
use crate::setup::{Offer, Setup};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a function's body: a panic of ours ends here, and a module that passes no instance gets `otherwise` too.
///
/// # Safety
/// The pointer is NULL, or that of an instance that lives.
unsafe fn guarded<'a, T>(instance: RawInstance, otherwise: T, body: impl FnOnce(&'a Instance) -> T) -> T {
    // SAFETY: the caller's promise.
    let Some(instance) = (unsafe { instance.cast::<Instance>().as_ref() }) else { return otherwise };
    catch_unwind(AssertUnwindSafe(|| body(instance))).unwrap_or(otherwise)
}

pub unsafe extern "C" fn configuration(instance: RawInstance, name: Str) -> Str {
    // SAFETY: regent.h: the pointer that init was given, and a text for the time of the call.
    unsafe {
        guarded(instance, Str::NONE, |instance| {
            Str::option(instance.configuration(name.bytes()).map(str::as_bytes))
        })
    }
}

pub unsafe extern "C" fn next_configuration(
    instance: RawInstance,
    cursor: *mut usize,
    name: *mut Str,
    value: *mut Str,
) -> c_int {
    let next = |instance: &Instance| {
        if cursor.is_null() || name.is_null() || value.is_null() {
            return abi::INVALID;
        }
        // SAFETY: regent.h: three places of these types.
        unsafe {
            let Some((found, text)) = instance.configuration_at(*cursor) else { return abi::MISSING };
            *cursor += 1;
            *name = Str::new(found.as_bytes());
            *value = Str::new(text.as_bytes());
        }
        abi::OK
    };
    // SAFETY: regent.h: the pointer that init was given.
    unsafe { guarded(instance, abi::ERROR, next) }
}

pub unsafe extern "C" fn route(instance: RawInstance, route: *const RawRoute) -> c_int {
    let add = |setup: &mut Setup| {
        // SAFETY: regent.h: the struct begins with its size, and has texts that end with a NUL.
        let added = unsafe {
            abi::read(route)
                .map_err(|_| "its size is none of a regent_route")
                .and_then(|raw| add_route(setup, &raw))
        };
        match added {
            Ok(status) => status,
            Err(what) => {
                setup.bad_route(what);
                abi::INVALID
            }
        }
    };
    // SAFETY: regent.h: the pointer that init was given.
    unsafe { guarded(instance, abi::ERROR, |instance| instance.with_setup(add).unwrap_or(abi::TOO_LATE)) }
}

/// # Safety
/// Method and path are NULL, or end with a NUL.
unsafe fn add_route(setup: &mut Setup, raw: &RawRoute) -> Result<c_int, &'static str> {
    // SAFETY: the caller's promise.
    let path = unsafe { text(raw.path)? }.ok_or("it has no path")?;
    // SAFETY: the caller's promise.
    let method = unsafe { text(raw.method)? };
    let handler = raw.handler.ok_or("it has no handler")?;
    if raw.flags & !abi::ROUTE_INLINE != 0 {
        return Err("it has a flag that this Regent does not know");
    }
    let execution = if raw.flags & abi::ROUTE_INLINE == 0 { Execution::Engine } else { Execution::Inline };
    let added = setup.route(method, path, Route::new(handler, raw.data, execution));
    Ok(if added.is_ok() { abi::OK } else { abi::INVALID })
}

/// # Safety
/// NULL, or a text that ends with a NUL.
unsafe fn text<'a>(pointer: *const c_char) -> Result<Option<&'a str>, &'static str> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(pointer) }.to_str().map(Some).map_err(|_| "its method or path is not UTF-8")
}

pub unsafe extern "C" fn fail(instance: RawInstance, reason: Str) -> c_int {
    // SAFETY: regent.h: the pointer that init was given, and a text for the time of the call.
    unsafe {
        guarded(instance, abi::ERROR, |instance| {
            let failed = instance.with_setup(|setup| setup.fail(reason.text()));
            if failed.is_some() { abi::OK } else { abi::TOO_LATE }
        })
    }
}

pub unsafe extern "C" fn offer(
    instance: RawInstance,
    name: Str,
    version: u32,
    interface: *const c_void,
) -> c_int {
    let add = |setup: &mut Setup| {
        // SAFETY: regent.h: a text for the time of the call.
        let name = unsafe { name.bytes() };
        if name.is_empty() || interface.is_null() || setup.offers.iter().any(|offer| offer.is(name, version))
        {
            return abi::INVALID;
        }
        setup.offers.push(Offer { name: name.to_vec(), version, interface });
        abi::OK
    };
    // SAFETY: regent.h: the pointer that init was given.
    unsafe { guarded(instance, abi::ERROR, |instance| instance.with_setup(add).unwrap_or(abi::TOO_LATE)) }
}

pub unsafe extern "C" fn find(instance: RawInstance, name: Str, version: u32) -> *const c_void {
    let find = |setup: &mut Setup| {
        // SAFETY: regent.h: a text for the time of the call.
        let name = unsafe { name.bytes() };
        setup.visible.iter().find(|offer| offer.is(name, version)).map(|offer| offer.interface)
    };
    let nothing = std::ptr::null();
    // SAFETY: regent.h: the pointer that init was given.
    unsafe { guarded(instance, nothing, |instance| instance.with_setup(find).flatten().unwrap_or(nothing)) }
}

pub unsafe extern "C" fn log(instance: RawInstance, level: c_int, message: Str) {
    // SAFETY: regent.h: the pointer that init was given, and a text for the time of the call.
    unsafe { guarded(instance, (), |instance| instance.log(Level::nearest(level), &message.text())) }
}

pub unsafe extern "C" fn statistics(instance: RawInstance, out: *mut RawStatistics) -> c_int {
    // SAFETY: regent.h: the pointer that init was given, and a struct that begins with its size.
    unsafe {
        guarded(instance, abi::ERROR, |instance| {
            abi::write(out, &instance.statistics.sum()).map_or(abi::INVALID, |()| abi::OK)
        })
    }
}
