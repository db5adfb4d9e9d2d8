//! The end of a program with an application: how long the archive before it is, and its sum.

use crate::{EmbedError, Mark};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// At the very end; the digit is the version of the format.
const MAGIC: [u8; 16] = *b"\nREGENT-EMBED-1\n";
const LENGTH: usize = 8 + 8 + 32 + MAGIC.len();

/// What is known of an archive before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footer {
    /// Bytes of the archive.
    pub length: u64,
    /// Bytes of what is in it, which no archive may pass.
    pub unpacked: u64,
    pub sha256: [u8; 32],
}

impl Footer {
    /// That of this program, at `path`. `None`: nothing is appended to it.
    pub fn of_program(path: &Path) -> Result<Option<Self>, EmbedError> {
        match (Mark::own(), Self::read(path)?) {
            (Mark::Plain, _) => Ok(None),
            (Mark::Appended, None) => Err(EmbedError::CutOff),
            (Mark::Appended, footer) => Ok(footer),
        }
    }

    /// `None`: there is none.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, EmbedError> {
        let reading = EmbedError::file("reading", path);
        let mut bytes = [0; LENGTH];
        let end = (|| {
            let mut file = File::open(path)?;
            let end = file.seek(SeekFrom::End(0))?;
            if end >= LENGTH as u64 {
                file.seek(SeekFrom::End(-(LENGTH as i64)))?;
                file.read_exact(&mut bytes)?;
            }
            Ok(end)
        })()
        .map_err(reading)?;
        let Some(footer) = Self::parse(&bytes) else { return Ok(None) };
        if footer.length > end - LENGTH as u64 {
            return Err(EmbedError::Damaged("a part of it is missing".into()));
        }
        Ok(Some(footer))
    }

    fn parse(bytes: &[u8; LENGTH]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (unpacked, rest) = rest.split_first_chunk()?;
        let (sha256, magic) = rest.split_first_chunk()?;
        (magic == MAGIC).then_some(Self {
            length: u64::from_le_bytes(*length),
            unpacked: u64::from_le_bytes(*unpacked),
            sha256: *sha256,
        })
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let numbers = [self.length.to_le_bytes(), self.unpacked.to_le_bytes()].concat();
        [&numbers, self.sha256.as_slice(), &MAGIC].concat()
    }

    /// The archive, which stands before it.
    pub(crate) fn open(&self, path: &Path) -> Result<impl Read + use<>, EmbedError> {
        let open = || {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::End(-(LENGTH as i64) - i64::try_from(self.length).unwrap_or(i64::MAX)))?;
            Ok(file.take(self.length))
        };
        open().map_err(EmbedError::file("reading", path))
    }

    /// The beginning of the sum, in hexadecimal: a name that is another one for any other archive.
    pub fn name(&self) -> String {
        self.sha256[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_off_is_told_from_what_was_never_there() {
        let footer = Footer { length: 3, unpacked: 9, sha256: [7; 32] };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Footer::read(&path)
        };
        let whole = [b"ELFabc".as_slice(), &footer.to_bytes()].concat();
        assert_eq!(read(&whole).unwrap(), Some(footer));
        let mut archive = String::new();
        footer.open(&path).unwrap().read_to_string(&mut archive).unwrap();
        assert_eq!((archive.as_str(), footer.name().len()), ("abc", 32));
        assert_eq!(read(&whole[..whole.len() - 1]).unwrap(), None);
        assert_eq!(read(b"ELF").unwrap(), None);
        assert!(matches!(
            read(&[b"ab".as_slice(), &footer.to_bytes()].concat()),
            Err(EmbedError::Damaged(_))
        ));
    }
}
