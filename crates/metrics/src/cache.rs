//! The cache, as Prometheus reads it.

use crate::families::{counter, gauge, labels};
use crate::gauges::{CacheDiskGauges, CacheGauges};
use prometheus::proto::MetricFamily;

pub(crate) fn families(cache: &CacheGauges) -> Vec<MetricFamily> {
    let disk = cache.disk.iter().flat_map(disk);
    memory(cache).into_iter().chain(disk).collect()
}

fn memory(cache: &CacheGauges) -> [MetricFamily; 10] {
    let results =
        [("hit", cache.hits), ("stale", cache.stale), ("miss", cache.misses), ("pass", cache.passes)];
    let results = results.map(|(result, count)| (labels(&[("result", result)]), count as f64));
    let one = |value: u64| [(vec![], value as f64)];
    [
        counter(
            "regent_cache_requests_total",
            "Requests that a cache directive was for, by result.",
            results,
        ),
        counter(
            "regent_cache_collapsed_total",
            "Requests that waited for the fetch of another, and had it.",
            one(cache.collapsed),
        ),
        counter(
            "regent_cache_revalidations_total",
            "Stored responses that were found to be good still.",
            one(cache.revalidations),
        ),
        counter("regent_cache_stores_total", "Responses that were stored.", one(cache.stores)),
        counter(
            "regent_cache_evictions_total",
            "Stored responses that made room for others.",
            one(cache.evictions),
        ),
        counter("regent_cache_purged_total", "Stored responses that were purged.", one(cache.purged)),
        gauge("regent_cache_urls", "URLs that the cache knows something of.", one(cache.urls)),
        gauge("regent_cache_bytes", "What the cache has stored.", one(cache.bytes)),
        gauge("regent_cache_limit_bytes", "The bound of what the cache stores.", one(cache.limit)),
        gauge(
            "regent_cache_body_bytes",
            "Bodies of the cache, those on their way in and out with them.",
            one(cache.body_bytes),
        ),
    ]
}

fn disk(disk: &CacheDiskGauges) -> [MetricFamily; 9] {
    let one = |value: u64| [(vec![], value as f64)];
    [
        gauge(
            "regent_cache_disk_working",
            "Whether responses can be written now.",
            one(disk.is_working.into()),
        ),
        counter(
            "regent_cache_disk_hits_total",
            "Requests that were answered with what was read from the disk.",
            one(disk.hits),
        ),
        counter(
            "regent_cache_disk_writes_total",
            "Responses that were written to the disk.",
            one(disk.writes),
        ),
        counter(
            "regent_cache_disk_dropped_total",
            "Responses that were not written: the disk was too slow, or failed.",
            one(disk.dropped),
        ),
        counter(
            "regent_cache_disk_evictions_total",
            "Responses on the disk that made room for others.",
            one(disk.evictions),
        ),
        counter("regent_cache_disk_errors_total", "What went wrong with files.", one(disk.errors)),
        gauge("regent_cache_disk_files", "Responses on the disk.", one(disk.files)),
        gauge("regent_cache_disk_bytes", "What they take.", one(disk.bytes)),
        gauge("regent_cache_disk_limit_bytes", "The bound of that.", one(disk.limit)),
    ]
}
