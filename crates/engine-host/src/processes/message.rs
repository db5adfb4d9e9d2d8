//! What the processes of an engine say to each other: JSON, as between server and engine.

use regent_wire::control::{Event, ThreadStart};
use serde::{Deserialize, Serialize};

/// Manager → zygote, a line each.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToZygote {
    /// Makes a process for this thread, in the place of one that is renewed or not.
    Fork { thread: ThreadStart, renews: bool },
    /// Asks a process what it is at, by this signal.
    Signal { index: u16, number: i32 },
    /// Ends a process that nothing else ends.
    Kill { index: u16 },
}

/// Zygote and its processes → manager, a datagram each.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromProcess {
    /// For the server.
    Event(Box<Event>),
    /// A process was made for a thread.
    Forked { index: u16, pid: i32 },
    /// A thread has asked for its first request.
    Ready { index: u16 },
    /// No process could be made.
    NotForked { index: u16, error: String },
    /// A thread has ended in an orderly way, and its process is about to.
    Done { index: u16, replace: bool },
    /// A process has ended. `how`: as the log says it; `signal`: by which, if by one.
    Ended { index: u16, how: String, signal: Option<i32> },
}
