//! A part of a body that is put together in memory.

use crate::{Share, Spools};
use bytes::Bytes;

/// Takes small pieces up to a bound. Its memory, not its content, counts as a part of what all spools may have.
pub struct Block {
    bytes: Vec<u8>,
    bound: usize,
    memory: Share,
}

impl Block {
    pub fn new(bound: usize, spools: &Spools) -> Self {
        Self { bytes: Vec::new(), bound, memory: spools.all_memory.share() }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes what there is room for; `false` if something is left of the chunk: the block is full, or no memory is.
    pub fn fill(&mut self, chunk: &mut Bytes) -> bool {
        let taken = self.room_for(chunk.len()).min(chunk.len());
        self.bytes.extend_from_slice(&chunk.split_to(taken));
        chunk.is_empty()
    }

    /// The content, and the memory that it takes until that is dropped.
    pub fn into_parts(self) -> (Bytes, Share) {
        (self.bytes.into(), self.memory)
    }

    /// The content, for a spool, which counts it itself; `None` if there is none. The block is empty then.
    pub fn pass_on(&mut self) -> Option<Bytes> {
        self.memory.give_back(self.bytes.capacity() as u64);
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.shrink_to_fit();
        (!bytes.is_empty()).then(|| bytes.into())
    }

    /// Grows to twice its size at least, so that few bytes are moved, and never beyond its bound.
    fn room_for(&mut self, bytes: usize) -> usize {
        let capacity = self.bytes.capacity();
        let needed = self.bytes.len().saturating_add(bytes).min(self.bound);
        if needed > capacity {
            let grown = needed.max(capacity.saturating_mul(2)).min(self.bound);
            if self.memory.take((grown - capacity) as u64) {
                self.bytes.reserve_exact(grown - self.bytes.len());
            }
        }
        self.bytes.capacity().min(self.bound) - self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_config as config;
    use std::sync::Arc;

    const BOUND: usize = 64 * 1024;

    /// With so many bytes for all.
    fn spools(all: u64) -> Arc<Spools> {
        Spools::open(&config::Spool { memory: all / 256, file: 0, directory: None }).unwrap()
    }

    #[test]
    fn a_block_takes_no_more_than_its_bound_however_the_pieces_come() {
        for piece in [1, 1000, 8192, 40_000, BOUND, BOUND + 1] {
            let spools = spools(1 << 20);
            let mut block = Block::new(BOUND, &spools);
            let mut chunk = Bytes::from(vec![1; piece]);
            while block.fill(&mut chunk) {
                chunk = Bytes::from(vec![1; piece]);
            }
            assert_eq!((block.bytes.len(), block.bytes.capacity()), (BOUND, BOUND), "pieces of {piece}");
            assert_eq!(spools.all_memory.used(), BOUND as u64);
            assert_eq!(block.pass_on().map(|bytes| bytes.len()), Some(BOUND));
            assert_eq!((spools.all_memory.used(), block.pass_on()), (0, None));
        }
    }

    #[test]
    fn memory_counts_whether_it_is_filled_or_not_and_until_it_is_dropped() {
        let spools = spools(1 << 20);
        let mut block = Block::new(BOUND, &spools);
        assert!(block.fill(&mut Bytes::from(vec![1; 10_000])) && block.fill(&mut Bytes::from_static(b"x")));
        assert_eq!(spools.all_memory.used(), block.bytes.capacity() as u64);
        let (bytes, memory) = block.into_parts();
        assert_eq!((bytes.len(), spools.all_memory.used()), (10_001, 20_000));
        drop(memory);
        assert_eq!(spools.all_memory.used(), 0);
    }

    #[test]
    fn without_memory_a_block_takes_nothing_more() {
        let spools = spools(20_480);
        let mut block = Block::new(BOUND, &spools);
        assert!(block.fill(&mut Bytes::from(vec![1; 15_000])));
        let mut chunk = Bytes::from(vec![2; 10_000]);
        assert!(!block.fill(&mut chunk));
        assert_eq!((block.bytes.len(), chunk.len()), (15_000, 10_000));
        assert!(!Block::new(BOUND, &spools).fill(&mut chunk));
    }
}
