//! Integers of variable length (RFC 9000 §16).

/// The longest one, in bytes.
pub(super) const LONGEST: usize = 8;

/// The greatest one.
pub(super) const GREATEST: u64 = (1 << 62) - 1;

/// Reads one from the beginning, with the bytes that it has; `None`: it is not there whole.
pub(super) fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let whole = bytes.get(..length)?;
    let value = whole[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some((value, length))
}

/// Writes one in its shortest form. It is [`GREATEST`] at most.
pub(super) fn write(value: u64, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let (length, mark) = match value {
        0..0x40 => (1, 0),
        0x40..0x4000 => (2, 0x40),
        0x4000..0x4000_0000 => (4, 0x80),
        _ => (8, 0xc0),
    };
    let start = out.len();
    out.extend_from_slice(&bytes[bytes.len() - length..]);
    out[start] |= mark;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9000 Appendix A.1.
    #[test]
    fn examples_of_the_standard() {
        assert_eq!(
            read(&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]),
            Some((151_288_809_941_952_652, 8))
        );
        assert_eq!(read(&[0x9d, 0x7f, 0x3e, 0x7d, 1]), Some((494_878_333, 4)));
        assert_eq!(read(&[0x7b, 0xbd]), Some((15_293, 2)));
        assert_eq!(read(&[0x25]), Some((37, 1)));
        assert_eq!(read(&[0x40, 0x25]), Some((37, 2)));
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[0x7b]), None);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(value in 0..=GREATEST, shift in 0..62, rest: Vec<u8>) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            write(value, &mut bytes);
            let length = bytes.len();
            bytes.extend(&rest);
            prop_assert_eq!(read(&bytes), Some((value, length)));
        }
    }
}
