//! What `module!` is made of.

use crate::abi::{self, Api, ApiHead, Dependency, Instance, ModuleInfo, Text};
use crate::app::{App, Kept};
use crate::error::{Error, Result};
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// A module's `init`.
pub trait Setup {
    fn setup(app: &mut App) -> Result<()>;
}

/// Whether the host has all that this crate calls.
pub fn suits(api: &ApiHead) -> bool {
    api.size >= size_of::<Api>()
}

/// Both end with a NUL. An empty version: any.
pub const fn needs(name: &'static str, version: &'static str) -> Dependency {
    assert!(is_c_string(name) && is_c_string(version), "text without NUL");
    let version = if version.len() == 1 { ptr::null() } else { version.as_ptr().cast() };
    Dependency { name: name.as_ptr().cast(), version }
}

/// Name and version end with a NUL.
pub const fn describe<S: Setup>(
    name: &'static str,
    version: &'static str,
    needs: &'static [Dependency],
) -> ModuleInfo {
    assert!(is_c_string(name) && is_c_string(version), "name and version are text without NUL");
    ModuleInfo {
        size: size_of::<ModuleInfo>(),
        abi: abi::ABI,
        reserved: 0,
        name: name.as_ptr().cast(),
        version: version.as_ptr().cast(),
        dependencies: needs.as_ptr(),
        dependency_count: needs.len(),
        init: init::<S>,
        cleanup: Some(cleanup),
    }
}

/// What `call` returns; a panic as an error.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the handlers of a module share after a panic is their own affair, as it is for threads.
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|panic| Err(Error::failed(format!("panicked: {}", message_of(&*panic)))))
}

/// # Safety
/// As `regent_module_info.init` says.
unsafe extern "C" fn init<S: Setup>(
    api: &'static Api,
    instance: *mut Instance,
    state: *mut *mut c_void,
) -> c_int {
    let kept = guarded(|| {
        let mut app = App::new(api, instance);
        S::setup(&mut app)?;
        app.finish()
    });
    match kept {
        Ok(kept) => {
            // SAFETY: the host's own, to be written.
            unsafe { *state = Box::into_raw(Box::new(kept)).cast() };
            abi::OK
        }
        Err(error) => {
            // SAFETY: the instance is valid within init; what is passed in is copied at once.
            unsafe { (api.fail)(instance, Text::new(error.to_string().as_bytes())) };
            abi::ERROR
        }
    }
}

/// # Safety
/// As `regent_module_info.cleanup` says: after the last handler, with the state of `init`.
unsafe extern "C" fn cleanup(_: &'static Api, _: *mut Instance, state: *mut c_void) {
    // SAFETY: `init` made it, and cleanup is called once.
    let Kept { instance, values } = *unsafe { Box::from_raw(state.cast::<Kept>()) };
    let dropped = guarded(|| {
        drop(values);
        Ok(())
    });
    if let Err(error) = dropped {
        instance.error(format!("cleanup: {error}"));
    }
    instance.close();
}

const fn is_c_string(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut index = 0;
    while index < bytes.len() && bytes[index] != 0 {
        index += 1;
    }
    index + 1 == bytes.len()
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("without a message")
}
