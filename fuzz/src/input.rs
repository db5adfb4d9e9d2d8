//! Cutting an input into values, so that a small change of the bytes is a small change of what they stand for.

/// The bytes that are left. What is asked for beyond the end is zero, or empty.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let (&byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        byte
    }

    /// Less than `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// Two bytes, the lower one first.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Eight bytes, the lowest one first.
    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Up to the next line feed, which is dropped.
    pub fn line(&mut self) -> &'a [u8] {
        self.until(b'\n')
    }

    /// Up to the next such byte, which is dropped.
    pub fn until(&mut self, end: u8) -> &'a [u8] {
        let length = self.0.iter().position(|byte| *byte == end).unwrap_or(self.0.len());
        let taken = self.take(length);
        self.byte();
        taken
    }

    /// As [`Input::line`], if it is UTF-8, and nothing otherwise.
    pub fn text_line(&mut self) -> &'a str {
        std::str::from_utf8(self.line()).unwrap_or_default()
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}
