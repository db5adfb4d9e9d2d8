//! Calls into a module.

use crate::exchange::{Level, LogSink};

/// Calls a function of a module. What unwinds out of it ends the process, with a line in the log: nothing can be said
/// any more of the state of the module, and other frames of its thread must not be skipped.
pub fn contained<T>(log: &LogSink, module: &str, function: &str, call: impl FnOnce() -> T) -> T {
    let escape = Escape { log, module, function };
    let value = call();
    std::mem::forget(escape);
    value
}

struct Escape<'a> {
    log: &'a LogSink,
    module: &'a str,
    function: &'a str,
}

impl Drop for Escape<'_> {
    fn drop(&mut self) {
        let Self { log, module, function } = self;
        log(
            Level::Error,
            &format!(
                "{module}: an exception has left its {function}, so this process ends; catch it in the module"
            ),
        );
        std::process::abort();
    }
}
