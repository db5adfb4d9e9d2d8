//! What encoders hold, which is far more than other responses do.

use regent_config::{EncodeFormat, ZstdLevel};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MIB: u64 = 1 << 20;

/// Bytes that the encoders of one listening address may hold, all together. What comes beyond is sent as it is.
const MOST: u64 = 512 * MIB;

/// Of one listening address, shared by the I/O threads.
#[derive(Debug, Default)]
pub(crate) struct EncoderMemory(AtomicU64);

/// Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    memory: Arc<EncoderMemory>,
    bytes: u64,
}

impl EncoderMemory {
    /// For one encoder. `None`: there is no room.
    pub(crate) fn reserve(self: &Arc<Self>, format: EncodeFormat) -> Option<Reserved> {
        let bytes = most_of(format);
        let added = |held: u64| held.checked_add(bytes).filter(|held| *held <= MOST);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).ok()?;
        Some(Reserved { memory: Arc::clone(self), bytes })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Measured, and rounded up; see [`Encoder`](super::encoder::Encoder).
const fn most_of(format: EncodeFormat) -> u64 {
    match format {
        EncodeFormat::Gzip { .. } => MIB / 2,
        EncodeFormat::Zstd { level: ZstdLevel::Fastest | ZstdLevel::Default, .. } => 2 * MIB,
        EncodeFormat::Zstd { level: ZstdLevel::Better | ZstdLevel::Best, .. } => 4 * MIB,
        EncodeFormat::Brotli { level: ..=5 } => 3 * MIB,
        EncodeFormat::Brotli { level: 6 } => 5 * MIB,
        EncodeFormat::Brotli { level: 7 } => 10 * MIB,
        EncodeFormat::Brotli { level: 8.. } => 36 * MIB,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_had_again() {
        let memory = Arc::<EncoderMemory>::default();
        let format = EncodeFormat::Brotli { level: 9 };
        let mut held: Vec<_> = std::iter::from_fn(|| memory.reserve(format)).collect();
        assert_eq!(held.len(), 14);
        let small = EncodeFormat::Gzip { level: 5 };
        assert!(memory.reserve(small).is_some(), "what is left does for another");
        held.pop();
        assert!(memory.reserve(format).is_some());
        drop(held);
        assert_eq!(memory.0.load(Ordering::Relaxed), 0);
    }
}
