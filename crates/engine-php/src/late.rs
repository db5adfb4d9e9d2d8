//! The callbacks by which PHP's side tells of requests that take long, and of opcache. They come from any thread, and touch no
//! other.

use crate::ffi::{self, Str};
use crate::host;
use regent_wire::control::{Event, Overdue, OverdueEnd, Slow};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bytes of a script's name or a URI in an event.
const LONGEST_TEXT: usize = 500;

/// A request whose time was over has ended, or its thread is written off.
pub extern "C" fn overdue(request: *const ffi::Overdue) {
    tell(|| {
        // SAFETY: law 5: the C side's struct, for the time of the call.
        let request = unsafe { &*request };
        Event::Overdue(Overdue {
            index: request.thread as u16,
            script: text(request.script, LONGEST_TEXT),
            uri: text(request.uri, LONGEST_TEXT),
            limit_ms: milliseconds(request.limit),
            ran_ms: milliseconds(request.ran),
            departed: request.departed != 0,
            end: match request.end {
                0 => OverdueEnd::Opcode,
                1 => OverdueEnd::Signal,
                2 => OverdueEnd::Socket,
                _ => OverdueEnd::WrittenOff,
            },
            stack: text(request.trace, usize::MAX),
        })
    });
}

/// A request does not end for now, though its time is over.
pub extern "C" fn straggles(thread: u32, started: i64) {
    let started_ns = u64::try_from(started).unwrap_or(0);
    tell(|| Event::Straggles { index: thread as u16, started_ns });
}

/// A request has been running for long, and goes on.
pub extern "C" fn slow(request: *const ffi::Slow) {
    tell(|| {
        // SAFETY: law 5: as above.
        let request = unsafe { &*request };
        Event::Slow(Slow {
            index: request.thread as u16,
            script: text(request.script, LONGEST_TEXT),
            uri: text(request.uri, LONGEST_TEXT),
            ran_ms: milliseconds(request.ran),
            stack: text(request.trace, usize::MAX),
            omitted: request.omitted,
        })
    });
}

/// opcache is to be emptied, because this script wants it or, if it has no name, because opcache does.
pub extern "C" fn restart_wanted(reason: Str, script: Str) {
    tell(|| {
        let script = text(script, LONGEST_TEXT);
        let script = (!script.is_empty()).then_some(script);
        Event::RestartWanted { reason: text(reason, LONGEST_TEXT), script }
    });
}

/// What a thread is at, which the server has asked for.
pub extern "C" fn traced(thread: u32, trace: Str) {
    tell(|| Event::Traced { index: thread as u16, stack: text(trace, usize::MAX) });
}

/// A panic ends here (law 4).
fn tell(event: impl FnOnce() -> Event) {
    if let (Ok(event), Some(reporter)) = (catch_unwind(AssertUnwindSafe(event)), host::reporter()) {
        reporter.send(&event);
    }
}

fn milliseconds(nanoseconds: i64) -> u64 {
    u64::try_from(nanoseconds / 1_000_000).unwrap_or(0)
}

fn text(text: Str, longest: usize) -> String {
    // SAFETY: law 5: (pointer, length) for the time of the call.
    let bytes = unsafe { text.bytes() };
    String::from_utf8_lossy(&bytes[..bytes.len().min(longest)]).into_owned()
}
