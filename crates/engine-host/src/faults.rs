//! In which thread a fault ends this process: the request that it runs is to blame, and not those beside it.

use libc::{c_int, c_void, siginfo_t};
use regent_wire::Engine;
use std::sync::{Arc, OnceLock};

/// What is raised in the thread that is at fault.
const FAULTS: [c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGSYS, libc::SIGTRAP];

/// Whose faults are told of. A handler of signals is given nothing else to find it by.
static TOLD: OnceLock<Told> = OnceLock::new();

struct Told {
    engine: Arc<Engine>,
    /// What is forked from it has the handler too, and is not the engine.
    process: u32,
}

/// From now on the memory says in which thread a fault has ended the process. Before any other thread runs.
///
/// This takes the place of Rust's handler, which looks for overflows of its own stacks and lets a signal that was sent, not
/// raised, pass; an engine that gets one must end, so that the next can start.
pub(crate) fn tell(engine: &Arc<Engine>) {
    // There is one engine in a process.
    let _ = TOLD.set(Told { engine: Arc::clone(engine), process: std::process::id() });
    for signal in FAULTS {
        // SAFETY: law 7: all zeros are a valid `sigaction`.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_fault as *const () as usize;
        // The next one finds the default, which ends the process and leaves a core dump. An overflow of the stack leaves
        // no room but on another.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
        // SAFETY: law 7: the handler only does what handlers may; before any other thread runs.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

/// Returns into what has raised the signal, which does it again.
extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    // SAFETY: law 7: the kernel passes what the flags of the action ask for.
    let code = unsafe { (*info).si_code };
    // By kill(2), it says nothing of the thread; abort(3) sends it to its own.
    let is_own = code > 0 || code == libc::SI_TKILL;
    if let Some(told) = TOLD.get()
        && is_own
        && told.process == std::process::id()
    {
        told.engine.note_fault();
    }
    if code <= 0 {
        // SAFETY: law 7: sends a signal to this thread, which gets it when this returns. Nobody else sends it again.
        unsafe { libc::raise(signal) };
    }
}
