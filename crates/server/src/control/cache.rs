//! The cache, in the words of the admin API and of the metrics.

use crate::lasting::Caches;
use regent_admin::CacheFigures;
use regent_cache::Figures;
use regent_metrics::CacheGauges;

pub(super) fn figures(caches: &Caches) -> CacheFigures {
    let total = total(caches).unwrap_or_default();
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
pub(super) fn gauges(caches: &Caches) -> Option<CacheGauges> {
    let total = total(caches)?;
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
fn total(caches: &Caches) -> Option<Figures> {
    caches.all().iter().map(|store| store.figures()).reduce(|one, other| one + other)
}
