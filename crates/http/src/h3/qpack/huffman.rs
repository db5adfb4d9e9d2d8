//! The Huffman code of strings (RFC 7541 §5.2 and Appendix B, RFC 9204 §4.1.2).
//!
//! The code is canonical: codes of one length follow each other in the order of their symbols, and those of the next length follow
//! them. So it is known by the lengths alone.

/// Bits of the code of each symbol; the last is the end of a string, which none may have.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

const SYMBOLS: usize = 257;
const END: u16 = 256;
const SHORTEST: usize = 5;
const LONGEST: usize = 30;

const CODE: Code = Code::of(&LENGTHS);

/// A string that is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Decodes a string; `None` if it would have more bytes than this.
pub(super) fn decode(bytes: &[u8], most: usize) -> Result<Option<Vec<u8>>, Malformed> {
    let mut decoded = Vec::with_capacity((bytes.len() * 8 / SHORTEST).min(most));
    let (mut window, mut bits, mut rest) = (0_u64, 0_usize, bytes.iter());
    loop {
        while bits <= 32
            && let Some(byte) = rest.next()
        {
            window |= u64::from(*byte) << (56 - bits);
            bits += 8;
        }
        let Some((symbol, length)) = CODE.symbol(window).filter(|(_, length)| *length <= bits) else {
            // Padding: fewer than 8 bits, all of them 1, as the beginning of the end.
            let is_padding = bits < 8 && window == padding(bits);
            return if is_padding { Ok(Some(decoded)) } else { Err(Malformed) };
        };
        if symbol == END {
            return Err(Malformed);
        }
        if decoded.len() == most {
            return Ok(None);
        }
        decoded.push(symbol as u8);
        window <<= length;
        bits -= length;
    }
}

/// So many bits that are 1, and then 0.
const fn padding(bits: usize) -> u64 {
    if bits == 0 { 0 } else { u64::MAX << (64 - bits) }
}

/// A canonical code.
struct Code {
    /// By length: the codes of this length and shorter ones are below it, from bit 63 down.
    ends: [u64; LONGEST + 1],
    /// By length: the first code, and the place of its symbol.
    firsts: [(u64, usize); LONGEST + 1],
    /// In the order of their codes.
    symbols: [u16; SYMBOLS],
}

impl Code {
    const fn of(lengths: &[u8; SYMBOLS]) -> Self {
        let mut code = Self { ends: [0; LONGEST + 1], firsts: [(0, 0); LONGEST + 1], symbols: [0; SYMBOLS] };
        let (mut next, mut place, mut length) = (0_u64, 0, 1);
        while length <= LONGEST {
            next <<= 1;
            code.firsts[length] = (next, place);
            let mut symbol = 0;
            while symbol < SYMBOLS {
                if lengths[symbol] as usize == length {
                    code.symbols[place] = symbol as u16;
                    place += 1;
                    next += 1;
                }
                symbol += 1;
            }
            // The codes of the greatest length end with all bits 1: then it is one bit too long.
            code.ends[length] = if next >> length == 1 { u64::MAX } else { next << (64 - length) };
            length += 1;
        }
        code
    }

    /// The symbol that these bits begin with, and the bits of its code. What is missing at the end is 0.
    fn symbol(&self, window: u64) -> Option<(u16, usize)> {
        let length = (SHORTEST..=LONGEST).find(|length| window < self.ends[*length])?;
        let (first, place) = self.firsts[length];
        let symbol = self.symbols.get(place + ((window >> (64 - length)) - first) as usize)?;
        Some((*symbol, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(text: &[u8]) -> Vec<u8> {
        let mut bits = String::new();
        for byte in text {
            let place = CODE.symbols.iter().position(|symbol| *symbol == u16::from(*byte)).unwrap();
            let length = usize::from(LENGTHS[usize::from(*byte)]);
            let (first, first_place) = CODE.firsts[length];
            bits += &format!("{:0length$b}", first + (place - first_place) as u64);
        }
        bits.extend(std::iter::repeat_n('1', bits.len().next_multiple_of(8) - bits.len()));
        let byte = |bits: &[u8]| u8::from_str_radix(std::str::from_utf8(bits).unwrap(), 2).unwrap();
        bits.as_bytes().chunks(8).map(byte).collect()
    }

    fn hex(text: &str) -> Vec<u8> {
        text.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// RFC 7541 Appendix C.4 and C.6.
    #[test]
    fn examples_of_the_standard() {
        for (coded, text) in [
            ("f1e3c2e5f23a6ba0ab90f4ff", "www.example.com"),
            ("a8eb10649cbf", "no-cache"),
            ("25a849e95ba97d7f", "custom-key"),
            ("d07abe941054d444a8200595040b8166e082a62d1bff", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("9d29ad171863c78f0b97c8e9ae82ae43d3", "https://www.example.com"),
        ] {
            assert_eq!(decode(&hex(coded), 100).unwrap().unwrap(), text.as_bytes());
            assert_eq!(encode(text.as_bytes()), hex(coded));
        }
    }

    #[test]
    fn every_code_is_used() {
        let part = |length: &u8| 1_u64 << (LONGEST - usize::from(*length));
        assert_eq!(LENGTHS.iter().map(part).sum::<u64>(), 1 << LONGEST);
    }

    #[test]
    fn wrong_padding_and_the_end_are_malformed() {
        // `a` is 00011: its padding is 111.
        assert_eq!(decode(&[0b0001_1111], 9), Ok(Some(b"a".to_vec())));
        for wrong in [&[0b0001_1110][..], &[0b0001_1111, 0xff], &[0xff], &[0xff; 4], &[0xff; 5]] {
            assert_eq!(decode(wrong, 9), Err(Malformed), "{wrong:x?}");
        }
        assert_eq!(decode(&[], 9), Ok(Some(Vec::new())));
    }

    #[test]
    fn a_bound_is_kept() {
        let coded = encode(b"abcd");
        assert_eq!(decode(&coded, 4), Ok(Some(b"abcd".to_vec())));
        assert_eq!(decode(&coded, 3), Ok(None));
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes), bytes.len()), Ok(Some(bytes)));
        }

        #[test]
        fn nothing_breaks_it(bytes: Vec<u8>) {
            if let Ok(Some(decoded)) = decode(&bytes, 1000) {
                prop_assert_eq!(encode(&decoded), bytes);
            }
        }
    }
}
