//! What goes on from one configuration to the next, beside engines and hubs.

use regent_control::export::Traces;
use regent_control::{Kept, purging};
use regent_engines::PurgeSink;
use regent_handlers::{Caches, LogOutputs, RateZones, ShutdownNotice, ZoneFigures};
use regent_metrics::RateZoneGauge;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Lasting {
    pub logs: LogOutputs,
    pub caches: Caches,
    pub rates: RateZones,
    pub traces: Traces,
    /// Given when the server is told to stop, and goes on serving for a while.
    pub shutdown: Arc<ShutdownNotice>,
}

impl Lasting {
    /// As metrics have it.
    pub fn kept(&self) -> Kept {
        let gauge = |figures| {
            let ZoneFigures { zone, requests, declined, keys } = figures;
            RateZoneGauge { zone, requests, declined, keys }
        };
        Kept {
            stores: self.caches.all(),
            traces: self.traces.counts(),
            rate_zones: self.rates.figures().into_iter().map(gauge).collect(),
        }
    }

    /// Where an engine puts the purges of its scripts.
    pub fn purges(self: &Arc<Self>) -> PurgeSink {
        let lasting = Arc::downgrade(self);
        purging::sink(move |scope| {
            let lasting = lasting.upgrade()?;
            Some((lasting.caches.scopes.find(scope)?, lasting.caches.all()))
        })
    }
}
