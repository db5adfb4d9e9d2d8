//! The cache, in the words of the admin API and of the metrics.

use regent_admin::{CacheFigures, CachePurge};
use regent_cache::{Figures, Key, Purge, Store};
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

/// Looks at all that is stored, but for a URL. Returns how many responses there were.
pub fn purge(stores: &[Arc<Store>], purge: CachePurge) -> u64 {
    let purges = match purge {
        CachePurge::Url(url) => urls(&url),
        CachePurge::Prefix(prefix) => vec![Purge::Prefix(prefix)],
        CachePurge::Tags(tags) => vec![Purge::Tags(tags)],
        CachePurge::Everything => vec![Purge::Everything],
    };
    stores.iter().map(|store| purges.iter().map(|purge| store.purge(purge)).sum::<u64>()).sum()
}

/// With either scheme, as by `PURGE`.
fn urls(url: &str) -> Vec<Purge> {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, target) = rest.split_at(end);
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    let keys = ["http", "https"].into_iter().filter_map(|scheme| Key::new(scheme, host, &target));
    keys.map(Purge::Url).collect()
}

/// Of all configurations that are in use.
fn total(stores: &[Arc<Store>]) -> Option<Figures> {
    stores.iter().map(|store| store.figures()).reduce(|one, other| one + other)
}
