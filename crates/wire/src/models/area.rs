//! The bytes of a ring as loom's cells, which report every access that is not ordered with a write of the other side.

use loom::cell::UnsafeCell;

/// Stands in for the area over mapped memory.
#[derive(Clone, Copy)]
pub(crate) struct Area<'a>(pub &'a [UnsafeCell<u8>]);

impl Area<'_> {
    pub fn capacity(&self) -> usize {
        self.0.len()
    }

    pub fn copy_in(&self, position: u64, bytes: &[u8]) {
        for (position, byte) in (position..).zip(bytes) {
            // SAFETY: loom fails the model if the other side accesses the cell at the same time.
            self.cell(position).with_mut(|cell| unsafe { *cell = *byte });
        }
    }

    pub fn copy_out(&self, position: u64, bytes: &mut [u8]) {
        for (position, byte) in (position..).zip(bytes) {
            // SAFETY: as in `copy_in`.
            *byte = self.cell(position).with(|cell| unsafe { *cell });
        }
    }

    fn cell(&self, position: u64) -> &UnsafeCell<u8> {
        &self.0[(position & (self.0.len() as u64 - 1)) as usize]
    }
}
