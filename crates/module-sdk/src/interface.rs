//! What modules call each other by.

/// A struct of functions that one module offers to others, by name and version.
///
/// # Safety
/// The struct is `#[repr(C)]`, and the same in every module that uses this name and version; other modules may be written in
/// another language and by another compiler. Its functions are `extern "C"`, let no panic out, and may be called by any
/// thread. A module uses what it has found until its own handlers are dropped, and no longer: it ends threads of its
/// own by then.
pub unsafe trait Interface: Sync + 'static {
    const NAME: &'static str;
    const VERSION: u32;
}
