//! How a program knows that something was appended to it.

use memchr::memmem::Finder;
use std::hint::black_box;

/// In the program's own data, and nowhere else in it.
#[used]
static MARK: [u8; LENGTH] = *b"REGENT: what is behind this program is appended to it: N";
const LENGTH: usize = 56;
const IS_APPENDED: u8 = b'Y';

/// Whether an application was appended to a program, whatever has become of it since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A program as it was built.
    Plain,
    Appended,
}

impl Mark {
    /// Of this program.
    pub fn own() -> Self {
        // What the compiler knows of it need not be so any more.
        match black_box(&MARK)[LENGTH - 1] {
            IS_APPENDED => Self::Appended,
            _ => Self::Plain,
        }
    }

    /// Marks the bytes of a program. `false`: it is none of ours, or is marked already.
    pub(crate) fn set(program: &mut [u8]) -> bool {
        let mark = black_box(&MARK);
        if mark[LENGTH - 1] == IS_APPENDED {
            return false;
        }
        // Debug information may have it once more.
        let finder = Finder::new(mark);
        let found: Vec<_> = finder.find_iter(program).collect();
        for at in &found {
            program[at + LENGTH - 1] = IS_APPENDED;
        }
        !found.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_marked_once() {
        assert_eq!(Mark::own(), Mark::Plain);
        let mut program = [b"RREGENT: ELF".as_slice(), &MARK, b"rest"].concat();
        assert!(Mark::set(&mut program));
        assert!(!Mark::set(&mut program), "it is marked already");
        assert_eq!(program.iter().filter(|byte| **byte == IS_APPENDED).count(), 1);
        assert!(!Mark::set(&mut b"another program".to_vec()));
    }
}
