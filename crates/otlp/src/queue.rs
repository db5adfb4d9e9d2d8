//! Finished spans that wait to be sent.

use crate::figures::{Figures, Loss};
use regent_traces::{Span, SpanSink};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The end where spans come in. Never waits, and wakes nobody before there are enough for a batch.
pub(crate) struct Inlet {
    spans: Sender<Span>,
    batch: usize,
    news: Arc<Notify>,
    figures: Arc<Figures>,
}

/// The other end.
pub(crate) struct Outlet {
    spans: Receiver<Span>,
    batch: usize,
    news: Arc<Notify>,
}

/// `most`: spans that wait; `batch`: those that are sent together.
pub(crate) fn queue(most: usize, batch: usize, figures: &Arc<Figures>) -> (Inlet, Outlet) {
    let (sender, receiver) = channel(most);
    let news = Arc::<Notify>::default();
    let inlet = Inlet { spans: sender, batch, news: Arc::clone(&news), figures: Arc::clone(figures) };
    (inlet, Outlet { spans: receiver, batch, news })
}

impl SpanSink for Inlet {
    fn finished(&self, span: Span) {
        match self.spans.try_send(span) {
            Ok(()) if self.spans.max_capacity() - self.spans.capacity() >= self.batch => {
                self.news.notify_one()
            }
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.figures.lost(Loss::QueueFull, 1),
            Err(TrySendError::Closed(_)) => self.figures.lost(Loss::Stopped, 1),
        }
    }
}

impl Outlet {
    /// Ends when there are enough for a batch.
    pub async fn enough(&self) {
        self.news.notified().await;
    }

    /// As many as are sent together, or as there are; none.
    pub fn take(&mut self) -> Vec<Span> {
        let mut spans = Vec::with_capacity(self.batch.min(self.spans.len()));
        while spans.len() < self.batch
            && let Ok(span) = self.spans.try_recv()
        {
            spans.push(span);
        }
        spans
    }

    /// No more come in.
    pub fn close(&mut self) {
        self.spans.close();
    }
}
