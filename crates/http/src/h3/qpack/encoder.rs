//! Field sections of responses. What the static table has is written as its number; the rest as it is: the Huffman code would
//! save a fifth of it for ten times the work.

use super::{integer, static_table};

/// A name and a value.
#[derive(Debug, Clone, Copy)]
pub(in crate::h3) struct Line<'a> {
    /// In lower case.
    pub name: &'a [u8],
    pub value: &'a [u8],
}

/// A field section that is being written.
pub(in crate::h3) struct FieldSection(Vec<u8>);

impl Default for FieldSection {
    /// Nothing is required of a dynamic table, and the base is 0.
    fn default() -> Self {
        Self(vec![0, 0])
    }
}

impl FieldSection {
    pub fn push(&mut self, line: Line<'_>) {
        let out = &mut self.0;
        match find(line) {
            Found::Line(index) => integer::write(index, 6, 0b1100_0000, out),
            Found::Name(index) => {
                integer::write(index, 4, 0b0101_0000, out);
                string(line.value, 7, 0, out);
            }
            Found::Nothing => {
                string(line.name, 3, 0b0010_0000, out);
                string(line.value, 7, 0, out);
            }
        }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// By their numbers in the static table.
enum Found {
    Line(u64),
    Name(u64),
    Nothing,
}

fn find(line: Line<'_>) -> Found {
    let mut found = Found::Nothing;
    for (index, (name, value)) in (0..).zip(static_table::ENTRIES) {
        if name.as_bytes() != line.name {
            continue;
        }
        if value.as_bytes() == line.value {
            return Found::Line(index);
        }
        if matches!(found, Found::Nothing) {
            found = Found::Name(index);
        }
    }
    found
}

fn string(text: &[u8], bits: u32, flags: u8, out: &mut Vec<u8>) {
    integer::write(text.len() as u64, bits, flags, out);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_static_table_has_is_its_number() {
        let section = |name: &str, value: &str| {
            let mut section = FieldSection::default();
            section.push(Line { name: name.as_bytes(), value: value.as_bytes() });
            section.into_bytes()
        };
        assert_eq!(section(":status", "200"), [0, 0, 0b1100_0000 | 25]);
        assert_eq!(section("x-frame-options", "sameorigin"), [0, 0, 0xff, 98 - 63]);
        assert_eq!(section("content-security-policy", "a"), [0, 0, 0x5f, 85 - 15, 1, b'a']);
        assert_eq!(section("x", "y"), [0, 0, 0b0010_0001, b'x', 1, b'y']);
    }
}
