//! What becomes of a call to a slot table.

/// Why a request was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error("the request's head is larger than a slot holds")]
    HeadTooLarge,
    #[error("the queue is full")]
    QueueFull,
    #[error("the engine has damaged the shared memory")]
    Corrupt,
}

/// Why a response cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The engine died, or released the slot without an end.
    #[error("the engine died while it ran the request")]
    Lost,
    #[error("the engine has damaged the shared memory")]
    Corrupt,
}

/// What [`SlotTable::cancel`](super::SlotTable::cancel) found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It was still waiting and will never run.
    Withdrawn,
    /// A thread is running it, and has been told.
    WhileRunning,
    /// It had ended.
    Ended,
}
