//! What clients may send about dynamic tables where there are none (RFC 9204 §4.3, §4.4): next to nothing.

use super::integer::{self, Missing};

/// An instruction that cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::h3) struct Unexpected;

/// Of a client's encoder.
#[derive(Debug, Default)]
pub(in crate::h3) struct EncoderInstructions;

/// Of a client's decoder.
#[derive(Debug, Default)]
pub(in crate::h3) struct DecoderInstructions {
    /// The beginning of one.
    begun: Vec<u8>,
}

impl EncoderInstructions {
    /// Only that the table has no bytes may be said of it. Returns how many instructions there were.
    pub fn read(&mut self, bytes: &[u8]) -> Result<usize, Unexpected> {
        const NO_CAPACITY: u8 = 0b0010_0000;
        if bytes.iter().all(|byte| *byte == NO_CAPACITY) { Ok(bytes.len()) } else { Err(Unexpected) }
    }
}

impl DecoderInstructions {
    /// Nothing refers to a table, so there is nothing to acknowledge; that a stream is not read further may be said.
    pub fn read(&mut self, bytes: &[u8]) -> Result<usize, Unexpected> {
        self.begun.extend_from_slice(bytes);
        let (mut rest, mut count) = (&self.begun[..], 0);
        while let Some(first) = rest.first() {
            if first >> 6 != 0b01 {
                return Err(Unexpected);
            }
            match integer::read(&mut rest, 6) {
                Ok(_) => count += 1,
                Err(Missing::Cut) => break,
                Err(Missing::TooLarge) => return Err(Unexpected),
            }
        }
        self.begun = rest.to_vec();
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoder_may_only_say_that_it_has_no_table() {
        assert_eq!(EncoderInstructions.read(&[0x20, 0x20]), Ok(2));
        for wrong in [0x3f, 0x80, 0xc1, 0x40, 0x00] {
            assert_eq!(EncoderInstructions.read(&[wrong]), Err(Unexpected));
        }
    }

    #[test]
    fn a_decoder_may_only_cancel_streams() {
        let mut instructions = DecoderInstructions::default();
        assert_eq!(instructions.read(&[0x44, 0x7f]), Ok(1));
        assert_eq!(instructions.read(&[0x80]), Ok(0));
        assert_eq!(instructions.read(&[0x01, 0x48]), Ok(2));
        assert_eq!(instructions.read(&[0x81]), Err(Unexpected), "an acknowledgement");
        assert_eq!(DecoderInstructions::default().read(&[0x01]), Err(Unexpected), "an increment");
        assert_eq!(DecoderInstructions::default().read(&[0x7f; 8]), Ok(4));
    }
}
