//! The cache, in the words of the admin API and of the metrics.

use regent_admin::CacheFigures;
use regent_cache::{Figures, Store};
use regent_metrics::CacheGauges;
use std::sync::Arc;

pub fn figures(stores: &[Arc<Store>]) -> CacheFigures {
    let total = total(stores).unwrap_or_default();
    CacheFigures {
        hits: total.hits,
        stale: total.stale,
        misses: total.misses,
        passes: total.passes,
        collapsed: total.collapsed,
        revalidations: total.revalidations,
        stores: total.stores,
        evictions: total.evictions,
        purged: total.purged,
        urls: total.entries,
        bytes: total.bytes,
        limit: total.limit,
    }
}

/// `None`: no site has one.
pub(crate) fn gauges(stores: &[Arc<Store>]) -> Option<CacheGauges> {
    let total = total(stores)?;
    Some(CacheGauges {
        hits: total.hits,
        stale: total.stale,
        misses: total.misses,
        passes: total.passes,
        collapsed: total.collapsed,
        revalidations: total.revalidations,
        stores: total.stores,
        evictions: total.evictions,
        purged: total.purged,
        urls: total.entries,
        bytes: total.bytes,
        limit: total.limit,
        body_bytes: total.bodies,
    })
}

/// Of all configurations that are in use.
fn total(stores: &[Arc<Store>]) -> Option<Figures> {
    stores.iter().map(|store| store.figures()).reduce(|one, other| one + other)
}
