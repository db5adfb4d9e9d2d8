//! What has become of spans.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why a span got nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// More were finished than the collector took.
    QueueFull,
    /// The collector did not want it.
    Refused,
    /// It could not be reached, or not in time.
    Unreachable,
    /// It was finished when nothing was sent any more, or was not sent before the end.
    Stopped,
}

/// Spans since the server was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub exported: u64,
    lost: [u64; Loss::ALL.len()],
}

#[derive(Default)]
pub(crate) struct Figures {
    exported: AtomicU64,
    lost: [AtomicU64; Loss::ALL.len()],
}

impl Loss {
    pub const ALL: [Self; 4] = [Self::QueueFull, Self::Refused, Self::Unreachable, Self::Stopped];

    /// As metrics have it.
    pub fn label(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Stopped => "stopped",
        }
    }
}

impl Counts {
    /// By reason, all of them.
    pub fn lost(&self) -> impl Iterator<Item = (Loss, u64)> {
        Loss::ALL.into_iter().zip(self.lost)
    }
}

impl Figures {
    pub fn exported(&self, spans: u64) {
        self.exported.fetch_add(spans, Ordering::Relaxed);
    }

    pub fn lost(&self, loss: Loss, spans: u64) {
        self.lost[loss as usize].fetch_add(spans, Ordering::Relaxed);
    }

    pub fn counts(&self) -> Counts {
        Counts {
            exported: self.exported.load(Ordering::Relaxed),
            lost: self.lost.each_ref().map(|lost| lost.load(Ordering::Relaxed)),
        }
    }
}
