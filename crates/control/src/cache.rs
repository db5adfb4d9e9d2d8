//! The cache, in the words of the admin API and of the metrics.

use regent_admin::{CacheDiskFigures, CacheFigures};
use regent_cache::{DiskFigures, Figures, Store};
use regent_metrics::{CacheDiskGauges, CacheGauges};
use std::sync::Arc;

pub fn figures(stores: &[Arc<Store>]) -> CacheFigures {
    let total = total(stores).unwrap_or_default();
    let disk = total.disk;
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
        disk: CacheDiskFigures {
            hits: disk.hits,
            writes: disk.writes,
            dropped: disk.dropped,
            evictions: disk.evictions,
            errors: disk.errors,
            files: disk.files,
            bytes: disk.bytes,
            limit: disk.limit,
            working: disk.working == disk.disks && disk.disks > 0,
        },
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
        disk: (total.disk.disks > 0).then(|| disk_gauges(&total.disk)),
    })
}

fn disk_gauges(disk: &DiskFigures) -> CacheDiskGauges {
    CacheDiskGauges {
        hits: disk.hits,
        writes: disk.writes,
        dropped: disk.dropped,
        evictions: disk.evictions,
        errors: disk.errors,
        files: disk.files,
        bytes: disk.bytes,
        limit: disk.limit,
        is_working: disk.working == disk.disks,
    }
}

/// Of all configurations that are in use.
fn total(stores: &[Arc<Store>]) -> Option<Figures> {
    stores.iter().map(|store| store.figures()).reduce(|one, other| one + other)
}
