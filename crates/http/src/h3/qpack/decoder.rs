//! Field sections of clients.

use super::integer::{self, Missing};
use super::{huffman, static_table};
use bytes::Bytes;

/// What a field counts beside its name and value (RFC 9114 §4.2.2).
const OVERHEAD: usize = 32;

/// A name and a value, as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::h3) struct Field {
    pub name: Bytes,
    pub value: Bytes,
}

/// Why a field section is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::h3) enum Malformed {
    /// It is none, or refers to a dynamic table.
    Wrong,
    /// It has more bytes than the client was told.
    TooLarge,
}

impl From<Missing> for Malformed {
    fn from(_: Missing) -> Self {
        Self::Wrong
    }
}

/// Decodes a field section of so many bytes at most, as RFC 9114 §4.2.2 counts them.
pub(in crate::h3) fn decode(mut bytes: &[u8], most: usize) -> Result<Vec<Field>, Malformed> {
    // Without a dynamic table nothing is required of it, and the base means nothing.
    if integer::read(&mut bytes, 8)? != 0 {
        return Err(Malformed::Wrong);
    }
    integer::read(&mut bytes, 7)?;
    let (mut fields, mut left) = (Vec::new(), most);
    while !bytes.is_empty() {
        left = left.checked_sub(OVERHEAD).ok_or(Malformed::TooLarge)?;
        fields.push(field(&mut bytes, &mut left)?);
    }
    Ok(fields)
}

fn field(bytes: &mut &[u8], left: &mut usize) -> Result<Field, Malformed> {
    let first = *bytes.first().ok_or(Malformed::Wrong)?;
    match first {
        // Of the static table, whole.
        0b1100_0000.. => {
            let (name, value) = entry(bytes, 6)?;
            let field = Field { name: Bytes::from_static(name), value: Bytes::from_static(value) };
            take(left, name.len() + value.len())?;
            Ok(field)
        }
        // A name of the static table.
        0b0101_0000..=0b0101_1111 | 0b0111_0000..=0b0111_1111 => {
            let (name, _) = entry(bytes, 4)?;
            take(left, name.len())?;
            Ok(Field { name: Bytes::from_static(name), value: string(bytes, 7, left)? })
        }
        // All of it literal.
        0b0010_0000..=0b0011_1111 => {
            Ok(Field { name: string(bytes, 3, left)?, value: string(bytes, 7, left)? })
        }
        // The rest refer to the dynamic table.
        _ => Err(Malformed::Wrong),
    }
}

fn entry(bytes: &mut &[u8], bits: u32) -> Result<(&'static [u8], &'static [u8]), Malformed> {
    let index = usize::try_from(integer::read(bytes, bits)?).map_err(|_| Malformed::Wrong)?;
    let (name, value) = static_table::ENTRIES.get(index).ok_or(Malformed::Wrong)?;
    Ok((name.as_bytes(), value.as_bytes()))
}

/// A string whose length has so many bits of the first byte, behind the one that says whether it is coded.
fn string(bytes: &mut &[u8], bits: u32, left: &mut usize) -> Result<Bytes, Malformed> {
    let is_coded = bytes.first().is_some_and(|first| first >> bits & 1 == 1);
    let length = usize::try_from(integer::read(bytes, bits)?).map_err(|_| Malformed::Wrong)?;
    let (text, rest) = bytes.split_at_checked(length).ok_or(Malformed::Wrong)?;
    *bytes = rest;
    let text = match is_coded {
        false => Bytes::copy_from_slice(text),
        true => {
            huffman::decode(text, *left).map_err(|_| Malformed::Wrong)?.ok_or(Malformed::TooLarge)?.into()
        }
    };
    take(left, text.len())?;
    Ok(text)
}

fn take(left: &mut usize, length: usize) -> Result<(), Malformed> {
    *left = left.checked_sub(length).ok_or(Malformed::TooLarge)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{FieldSection, Line};
    use super::*;
    use proptest::prelude::*;

    fn decoded(bytes: &[u8]) -> Result<Vec<(String, String)>, Malformed> {
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        Ok(decode(bytes, 1000)?.iter().map(|field| (text(&field.name), text(&field.value))).collect())
    }

    fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// RFC 9204 Appendix B.1.
    #[test]
    fn an_example_of_the_standard() {
        let bytes = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(decoded(bytes), Ok(pairs(&[(":path", "/index.html")])));
    }

    #[test]
    fn strings_can_be_coded() {
        let bytes = b"\x00\x00\x2f\x01\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x86\xa8\xeb\x10\x64\x9c\xbf\xd1";
        assert_eq!(decoded(bytes), Ok(pairs(&[("custom-key", "no-cache"), (":method", "GET")])));
    }

    #[test]
    fn what_refers_to_a_dynamic_table_is_wrong() {
        let wrong: [&[u8]; 9] = [
            b"",
            b"\x00",
            b"\x01\x00\xc1",
            b"\x00\x00\x80",
            b"\x00\x00\x10",
            b"\x00\x00\x00\x01a",
            b"\x00\x00\x40\x01a",
            b"\x00\x00\xff\x40",
            b"\x00\x00\x51\x0b/cut",
        ];
        for bytes in wrong {
            assert_eq!(decode(bytes, 1000), Err(Malformed::Wrong), "{bytes:x?}");
        }
    }

    #[test]
    fn a_section_has_a_bound_however_small_it_came() {
        // 7 + 3 and 32 more.
        let one = b"\x00\x00\xd1";
        assert_eq!(decode(one, 42).map(|fields| fields.len()), Ok(1));
        assert_eq!(decode(one, 41), Err(Malformed::TooLarge));
        let bomb = [&b"\x00\x00"[..], &[0xd1; 10_000]].concat();
        assert_eq!(decode(&bomb, 64 * 1024), Err(Malformed::TooLarge));
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(fields: Vec<(String, String)>) {
            let mut section = FieldSection::default();
            for (name, value) in &fields {
                section.push(Line { name: name.as_bytes(), value: value.as_bytes() });
            }
            let most = fields.iter().map(|(name, value)| name.len() + value.len() + OVERHEAD).sum();
            let expected = fields.into_iter().map(|(name, value)| Field { name: name.into(), value: value.into() });
            prop_assert_eq!(decode(&section.into_bytes(), most), Ok(expected.collect::<Vec<_>>()));
        }

        #[test]
        fn nothing_breaks_it(bytes: Vec<u8>) {
            let _ = decode(&bytes, 1000);
            let _ = decode(&[&[0, 0], &bytes[..]].concat(), 1000);
        }
    }
}
