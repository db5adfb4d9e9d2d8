//! Where the buckets of histograms end.
//!
//! Bounds are decimal, so that those which Prometheus gets are among them and no count has to be interpolated: in each
//! decade from 1 µs to 1000 s there are 15 buckets from 1 to 2.5, 10 from there to 5 and 10 from there to 10. The widest
//! relative to its beginning is the first, with 10 %; the middle of a bucket is never more than 5 % from what it holds.

use std::time::Duration;

/// One to 1 µs, 35 in each of nine decades, and one for what is longer than 1000 s.
pub(crate) const BUCKETS: usize = 2 + DECADES * DECADE;
/// Upper bounds of the buckets that Prometheus gets, in ns; one without a bound follows.
pub(crate) const COARSE_BOUNDS: [u64; 14] = [
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];
pub(crate) const COARSE_BUCKETS: usize = COARSE_BOUNDS.len() + 1;

const DECADES: usize = 9;
const DECADE: usize = 35;
/// In ns; what is shorter is in the first bucket.
const SHORTEST: u64 = 1_000;

/// A duration whose place in every histogram is known.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub nanos: u64,
    bucket: u16,
}

impl Sample {
    pub fn new(duration: Duration) -> Self {
        let nanos = nanos(duration);
        Self { nanos, bucket: bucket_of(nanos) }
    }

    pub fn bucket(self) -> usize {
        usize::from(self.bucket)
    }

    pub fn coarse_bucket(self) -> usize {
        coarse_bucket(self.bucket())
    }
}

/// The bucket of [`COARSE_BOUNDS`] that contains a bucket.
pub(crate) fn coarse_bucket(bucket: usize) -> usize {
    usize::from(COARSE_OF[bucket])
}

/// In ns, and part of the bucket; `u64::MAX` for the last.
pub(crate) fn upper_bound(bucket: usize) -> u64 {
    UPPER[bucket]
}

/// In ns.
pub(crate) fn middle(bucket: usize) -> u64 {
    let lower = if bucket == 0 { 0 } else { UPPER[bucket - 1] };
    lower + (UPPER[bucket] - lower) / 2
}

/// 584 years at most.
fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(duration.subsec_nanos()))
}

/// Upper bounds belong to their buckets, as `le` of Prometheus says. The bucket is thus the number of bounds below
/// `nanos`: a look-up by the leading bits, within which there is one bound at most.
fn bucket_of(nanos: u64) -> u16 {
    let below = nanos.saturating_sub(1).clamp(1 << FIRST_OCTAVE, LAST_KEYED);
    let first = FIRST_OF[key(below)];
    first + u16::from(UPPER[usize::from(first)] <= below)
}

/// 2⁹ ns, which is less than [`SHORTEST`].
const FIRST_OCTAVE: u32 = 9;
/// 2³⁹ ns to 2⁴⁰ ns, where the longest bound is.
const LAST_OCTAVE: u32 = 39;
const LAST_KEYED: u64 = (2 << LAST_OCTAVE) - 1;
/// The cells of an octave are 2⁵: 3 % wide at most, and no bucket is narrower than 4 %.
const CELL_BITS: u32 = 5;
const CELLS: usize = ((LAST_OCTAVE - FIRST_OCTAVE + 1) as usize) << CELL_BITS;

const fn key(nanos: u64) -> usize {
    let octave = nanos.ilog2();
    let cell = (nanos >> (octave - CELL_BITS)) as usize & ((1 << CELL_BITS) - 1);
    ((octave - FIRST_OCTAVE) as usize) << CELL_BITS | cell
}

const fn start_of_key(key: usize) -> u64 {
    let octave = (key >> CELL_BITS) as u32 + FIRST_OCTAVE;
    let cell = (key & ((1 << CELL_BITS) - 1)) as u64;
    ((1 << CELL_BITS) + cell) << (octave - CELL_BITS)
}

static UPPER: [u64; BUCKETS] = UPPER_BOUNDS;
const UPPER_BOUNDS: [u64; BUCKETS] = upper_bounds();
/// For each cell, the number of bounds that are not greater than its start.
static FIRST_OF: [u16; CELLS] = first_of();
static COARSE_OF: [u8; BUCKETS] = coarse_of();

const fn upper_bounds() -> [u64; BUCKETS] {
    let mut bounds = [u64::MAX; BUCKETS];
    bounds[0] = SHORTEST;
    let mut start = SHORTEST;
    let mut bucket = 1;
    while bucket < BUCKETS - 1 {
        let step = match (bucket - 1) % DECADE {
            0..15 => start / 10,
            15..25 => start / 4,
            _ => start / 2,
        };
        bounds[bucket] = bounds[bucket - 1] + step;
        if bucket % DECADE == 0 {
            start *= 10;
        }
        bucket += 1;
    }
    bounds
}

const fn first_of() -> [u16; CELLS] {
    let mut first = [0; CELLS];
    let mut cell = 0;
    let mut bucket = 0;
    while cell < CELLS {
        while UPPER_BOUNDS[bucket] <= start_of_key(cell) {
            bucket += 1;
        }
        first[cell] = bucket as u16;
        cell += 1;
    }
    first
}

const fn coarse_of() -> [u8; BUCKETS] {
    let mut coarse = [0; BUCKETS];
    let mut bucket = 0;
    let mut bound = 0;
    while bucket < BUCKETS {
        while bound < COARSE_BOUNDS.len() && COARSE_BOUNDS[bound] < UPPER_BOUNDS[bucket] {
            bound += 1;
        }
        coarse[bucket] = bound as u8;
        bucket += 1;
    }
    coarse
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the definition, without tables.
    fn searched(nanos: u64) -> usize {
        UPPER.partition_point(|bound| *bound < nanos)
    }

    #[test]
    fn bounds_grow_from_a_microsecond_to_a_thousand_seconds() {
        assert!(UPPER.is_sorted_by(|a, b| a < b));
        assert_eq!((UPPER[0], UPPER[BUCKETS - 2], UPPER[BUCKETS - 1]), (1_000, 1_000_000_000_000, u64::MAX));
    }

    #[test]
    fn what_prometheus_gets_are_bounds_of_buckets() {
        for (coarse, bound) in COARSE_BOUNDS.iter().enumerate() {
            let bucket = UPPER.binary_search(bound).expect("a bound");
            assert_eq!((coarse_bucket(bucket), coarse_bucket(bucket + 1)), (coarse, coarse + 1));
        }
    }

    #[test]
    fn the_middle_is_within_5_percent() {
        for bucket in 1..BUCKETS - 1 {
            let (lower, middle, upper) = (UPPER[bucket - 1], middle(bucket), UPPER[bucket]);
            assert!((middle - lower) * 20 <= lower && (upper - middle) * 20 <= upper, "bucket {bucket}");
        }
    }

    #[test]
    fn every_bound_is_in_its_bucket_and_the_next_nanosecond_is_not() {
        for (bucket, bound) in UPPER[..BUCKETS - 1].iter().enumerate() {
            assert_eq!(usize::from(bucket_of(*bound)), bucket);
            assert_eq!(usize::from(bucket_of(bound + 1)), bucket + 1);
        }
        assert_eq!((bucket_of(0), usize::from(bucket_of(u64::MAX))), (0, BUCKETS - 1));
    }

    #[test]
    fn a_duration_of_any_length_has_a_place() {
        assert_eq!(Sample::new(Duration::ZERO).bucket(), 0);
        assert_eq!(Sample::new(Duration::MAX).bucket(), BUCKETS - 1);
        assert_eq!(Sample::new(Duration::MAX).nanos, u64::MAX);
    }

    proptest! {
        #[test]
        fn the_look_up_agrees_with_a_search(octave in 0u32..64, fraction: u64) {
            let nanos = (1 << octave) | (fraction & ((1 << octave) - 1));
            prop_assert_eq!(usize::from(bucket_of(nanos)), searched(nanos));
        }
    }
}
