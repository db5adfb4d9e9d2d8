//! Why a request is turned away, in the log, in metrics and in the admin API.

use std::fmt;

/// Why a request was refused, or given up, without an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// `max_queue` requests waited already.
    QueueFull,
    /// It waited, or would have had to wait, longer than `max_wait_time`.
    WaitTime,
    /// It could not have been answered by its deadline.
    Deadline,
    /// `max_connections` requests were with the service already.
    Connections,
    /// The client left while it waited.
    ClientGone,
    /// Requests like it have killed their engine again and again: [`crate::circuits`].
    Circuit,
}

impl Reason {
    pub const ALL: [Self; 6] =
        [Self::QueueFull, Self::WaitTime, Self::Deadline, Self::Connections, Self::ClientGone, Self::Circuit];

    /// As in the log and as the label of metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::WaitTime => "wait_time",
            Self::Deadline => "deadline",
            Self::Connections => "max_connections",
            Self::ClientGone => "client_gone",
            Self::Circuit => "circuit",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QueueFull => "as many requests wait as max_queue allows",
            Self::WaitTime => "it would have to wait longer than max_wait_time",
            Self::Deadline => "it could not be answered by its deadline",
            Self::Connections => "as many requests as it may have at once",
            Self::ClientGone => "its client has left",
            Self::Circuit => "its circuit is open: requests like it have killed their engine",
        })
    }
}
