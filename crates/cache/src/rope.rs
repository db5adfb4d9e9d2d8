//! Bodies in blocks, so that one that grows is not copied again and again.

use crate::room::{Full, Room, Taken};
use crate::store::Store;
use bytes::Bytes;
use std::sync::Arc;

/// Most bytes of a block.
const BLOCK: usize = 64 * 1024;

/// The body of a stored response. A copy is one count more.
#[derive(Debug, Clone)]
pub struct Rope(Arc<Blocks>);

#[derive(Debug)]
struct Blocks {
    blocks: Box<[Bytes]>,
    len: usize,
    _taken: Taken,
}

/// A body on its way into the cache: the bytes that have come so far. Each block has the memory of its bytes and no more, but
/// for the last.
#[derive(Debug)]
pub struct Gathering {
    room: Arc<Room>,
    taken: Taken,
    blocks: Vec<Bytes>,
    last: Vec<u8>,
    len: usize,
}

impl Rope {
    pub fn len(&self) -> usize {
        self.0.len
    }

    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The blocks of a part, which lies within. They are freed with the rope, of which whoever reads them keeps a copy.
    pub fn slice(&self, start: usize, len: usize) -> Vec<Bytes> {
        let (mut skipped, mut left) = (start, len);
        let mut found = Vec::new();
        for block in &self.0.blocks {
            if skipped >= block.len() {
                skipped -= block.len();
                continue;
            }
            let end = block.len().min(skipped.saturating_add(left));
            if end > skipped {
                found.push(block.slice(skipped..end));
            }
            left -= end - skipped;
            skipped = 0;
            if left == 0 {
                break;
            }
        }
        found
    }
}

impl Gathering {
    pub fn new(store: &Store) -> Self {
        Self::in_room(store.room())
    }

    pub(crate) fn in_room(room: &Arc<Room>) -> Self {
        let (room, taken) = (Arc::clone(room), Taken::nothing(room));
        Self { room, taken, blocks: Vec::new(), last: Vec::new(), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What has come, for a file, and the room that it takes until it is there. Nothing is left.
    pub fn take(&mut self) -> (Vec<Bytes>, Taken) {
        self.seal();
        self.len = 0;
        let taken = std::mem::replace(&mut self.taken, Taken::nothing(&self.room));
        (std::mem::take(&mut self.blocks), taken)
    }

    /// Room for copies of the pieces on their way to a client.
    pub fn copies(&self) -> Taken {
        Taken::nothing(&self.room)
    }

    /// Copies: a piece may be a part of a buffer that is much larger.
    pub fn push(&mut self, mut piece: &[u8]) -> Result<(), Full> {
        if self.taken.bytes() + piece.len() as u64 > self.room.object {
            return Err(Full);
        }
        self.taken.grow(piece.len())?;
        self.len += piece.len();
        while !piece.is_empty() {
            let (now, later) = piece.split_at(piece.len().min(BLOCK - self.last.len()));
            self.last.extend_from_slice(now);
            piece = later;
            if self.last.len() == BLOCK {
                self.seal();
            }
        }
        Ok(())
    }

    /// The whole body.
    pub fn finish(mut self) -> Rope {
        self.seal();
        Rope(Arc::new(Blocks { blocks: self.blocks.into(), len: self.len, _taken: self.taken }))
    }

    fn seal(&mut self) {
        if !self.last.is_empty() {
            self.blocks.push(std::mem::take(&mut self.last).into_boxed_slice().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Limits;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_part_is_the_same_as_of_the_whole(
            pieces in prop::collection::vec(0_usize..90_000, 0..5), start in 0.0..1.0, len in 0.0..1.0,
        ) {
            let whole: Vec<u8> = (0..pieces.iter().sum()).map(|index: usize| index as u8).collect();
            let mut gathering = Gathering::new(&Store::new(Limits { memory: 1 << 20, object: 1 << 20 }));
            let mut rest = &whole[..];
            for piece in pieces {
                let (now, later) = rest.split_at(piece);
                gathering.push(now).unwrap();
                rest = later;
            }
            let rope = gathering.finish();
            prop_assert_eq!(rope.len(), whole.len());
            let start = (whole.len() as f64 * start) as usize;
            let len = ((whole.len() - start) as f64 * len) as usize;
            prop_assert_eq!(rope.slice(start, len).concat(), &whole[start..start + len]);
        }
    }
}
