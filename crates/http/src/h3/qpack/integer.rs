//! Integers with a prefix (RFC 7541 §5.1, RFC 9204 §4.1.1).

/// Longer ones say nothing that has a meaning here: lengths and indices are far below.
const MOST: u64 = 1 << 32;

/// Why there is no integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is not there whole.
    Cut,
    /// It is too large.
    TooLarge,
}

/// Reads one whose first byte has so many bits of it, and moves on behind it.
pub(super) fn read(bytes: &mut &[u8], bits: u32) -> Result<u64, Missing> {
    let most = (1_u64 << bits) - 1;
    let (first, mut rest) = bytes.split_first().ok_or(Missing::Cut)?;
    let mut value = u64::from(*first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (byte, behind) = rest.split_first().ok_or(Missing::Cut)?;
            rest = behind;
            value += u64::from(byte & 0x7f) << shift;
            shift += 7;
            if value > MOST || shift > 35 {
                return Err(Missing::TooLarge);
            }
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *bytes = rest;
    Ok(value)
}

/// Writes one into a first byte that has these bits set beside it.
pub(super) fn write(mut value: u64, bits: u32, flags: u8, out: &mut Vec<u8>) {
    let most = (1_u64 << bits) - 1;
    if value < most {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | most as u8);
    value -= most;
    while value >= 0x80 {
        out.push(0x80 | (value & 0x7f) as u8);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 7541 Appendix C.1.
    #[test]
    fn examples_of_the_standard() {
        for (value, bits, bytes) in
            [(10, 5, &[0b01010][..]), (1337, 5, &[0b11111, 0b1001_1010, 0b1010]), (42, 8, &[42])]
        {
            let mut out = Vec::new();
            write(value, bits, 0, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(read(&mut &bytes[..], bits), Ok(value));
        }
    }

    #[test]
    fn what_is_cut_or_too_large_is_told_apart() {
        assert_eq!(read(&mut &[][..], 5), Err(Missing::Cut));
        assert_eq!(read(&mut &[0x1f, 0x80][..], 5), Err(Missing::Cut));
        assert_eq!(read(&mut &[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..], 5), Err(Missing::TooLarge));
        assert_eq!(read(&mut &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0][..], 5), Err(Missing::TooLarge));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(value in 0..MOST, bits in 3_u32..=8, rest: Vec<u8>) {
            let mut bytes = Vec::new();
            write(value, bits, 0, &mut bytes);
            bytes.extend(&rest);
            let mut left = &bytes[..];
            prop_assert_eq!(read(&mut left, bits), Ok(value));
            prop_assert_eq!(left, &rest[..]);
        }
    }
}
