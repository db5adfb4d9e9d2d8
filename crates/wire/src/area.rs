//! The bytes of a ring, in memory that two processes map. The only place that touches them.

use std::marker::PhantomData;
use std::ptr::NonNull;

/// A power of two of bytes, addressed by positions that count on for ever.
#[derive(Clone, Copy)]
pub(crate) struct Area<'a> {
    start: NonNull<u8>,
    capacity: usize,
    mapping: PhantomData<&'a u8>,
}

impl Area<'_> {
    /// # Safety
    /// `start` points to `capacity` bytes that stay mapped as long as the area is used, and `capacity` is a power of
    /// two.
    pub unsafe fn new(start: NonNull<u8>, capacity: usize) -> Self {
        debug_assert!(capacity.is_power_of_two());
        Self { start, capacity, mapping: PhantomData }
    }

    /// Bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Copies bytes, no more than the capacity, to a position.
    pub fn copy_in(&self, position: u64, bytes: &[u8]) {
        assert!(bytes.len() <= self.capacity);
        let (first, second) = bytes.split_at(self.contiguous(position).min(bytes.len()));
        // SAFETY: law 8: both parts lie within the area, by `contiguous` and the assertion; the peer may race on the
        // bytes, which changes what they say but not where they are.
        unsafe {
            self.at(position).copy_from_nonoverlapping(NonNull::from(first).cast(), first.len());
            self.start.copy_from_nonoverlapping(NonNull::from(second).cast(), second.len());
        }
    }

    /// Copies bytes, no more than the capacity, from a position.
    pub fn copy_out(&self, position: u64, bytes: &mut [u8]) {
        assert!(bytes.len() <= self.capacity);
        let split = self.contiguous(position).min(bytes.len());
        let (first, second) = bytes.split_at_mut(split);
        // SAFETY: as in `copy_in`.
        unsafe {
            self.at(position).copy_to_nonoverlapping(NonNull::from(&mut *first).cast(), first.len());
            self.start.copy_to_nonoverlapping(NonNull::from(&mut *second).cast(), second.len());
        }
    }

    /// Bytes from a position to the end of the memory.
    fn contiguous(&self, position: u64) -> usize {
        self.capacity - self.offset(position)
    }

    fn offset(&self, position: u64) -> usize {
        (position & (self.capacity as u64 - 1)) as usize
    }

    fn at(&self, position: u64) -> NonNull<u8> {
        // SAFETY: law 8: `offset` is below the capacity.
        unsafe { self.start.add(self.offset(position)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_wrap_around_and_nothing_beside_them_changes() {
        let mut memory = [0xEE_u8; 24];
        // SAFETY: eight bytes in the middle of an array that outlives the area.
        let area = unsafe { Area::new(NonNull::from(&mut memory[8..16]).cast(), 8) };
        for position in [0, 5, 8, 13, u64::MAX - 2] {
            area.copy_in(position, b"abcdefgh");
            let mut read = [0; 8];
            area.copy_out(position, &mut read);
            assert_eq!(&read, b"abcdefgh", "at {position}");
        }
        assert!(memory[..8].iter().chain(&memory[16..]).all(|byte| *byte == 0xEE));
    }
}
