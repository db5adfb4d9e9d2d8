//! The chunked coding (RFC 9112 section 7.1), in whatever pieces it arrives.

use super::response::Malformed;

/// Where in the coding the next byte is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chunked {
    /// Before the first digit of a chunk's size.
    #[default]
    Start,
    Size(u64),
    /// What follows a size and is of no interest.
    Extension(u64),
    /// The line feed after a size.
    SizeEnd(u64),
    Data(u64),
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastLf,
    Done,
}

impl Chunked {
    /// Consumes bytes up to the end of the coding at most, and gives the data among them to `body`. Returns how many.
    pub fn take(&mut self, bytes: &[u8], mut body: impl FnMut(&[u8])) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < bytes.len() && *self != Self::Done {
            if let Self::Data(left) = *self {
                let data = prefix(&bytes[at..], left);
                body(data);
                at += data.len();
                *self = after_data(left - data.len() as u64);
            } else {
                *self = self.step(bytes[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// What follows a byte that is not data.
    fn step(self, byte: u8) -> Result<Self, Malformed> {
        Ok(match (self, byte) {
            (Self::Start, _) => Self::Size(digit(byte)?),
            (Self::Size(size) | Self::Extension(size), b'\r') => Self::SizeEnd(size),
            (Self::Size(size), b';' | b' ' | b'\t') => Self::Extension(size),
            (Self::Size(size), _) => Self::Size(append(size, digit(byte)?)?),
            (Self::Extension(_), b'\n') => return Err(Malformed),
            (Self::Extension(size), _) => Self::Extension(size),
            (Self::SizeEnd(0), b'\n') => Self::TrailerStart,
            (Self::SizeEnd(size), b'\n') => Self::Data(size),
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::Start,
            (Self::TrailerStart, b'\r') => Self::LastLf,
            (Self::LastLf, b'\n') => Self::Done,
            (Self::Trailer, b'\r') => Self::TrailerEnd,
            (Self::TrailerEnd, b'\n') => Self::TrailerStart,
            (Self::TrailerStart | Self::Trailer, byte) if byte != b'\n' => Self::Trailer,
            _ => return Err(Malformed),
        })
    }
}

fn prefix(bytes: &[u8], most: u64) -> &[u8] {
    let length = usize::try_from(most).map_or(bytes.len(), |most| most.min(bytes.len()));
    &bytes[..length]
}

fn after_data(left: u64) -> Chunked {
    if left == 0 { Chunked::DataCr } else { Chunked::Data(left) }
}

fn digit(byte: u8) -> Result<u64, Malformed> {
    char::from(byte).to_digit(16).map(u64::from).ok_or(Malformed)
}

fn append(size: u64, digit: u64) -> Result<u64, Malformed> {
    size.checked_mul(16).map(|size| size | digit).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(coding: &[u8]) -> Result<(String, usize, Chunked), Malformed> {
        let (mut state, mut body) = (Chunked::default(), Vec::new());
        let used = state.take(coding, |data| body.extend_from_slice(data))?;
        Ok((String::from_utf8(body).expect("ASCII"), used, state))
    }

    #[test]
    fn extensions_and_trailers_are_passed_over() {
        let coding = b"5;name=\"v\"\r\nhello\r\nA \r\n, world!!\n\r\n0\r\nTrailer: x\r\n\r\n";
        assert_eq!(decode(coding), Ok(("hello, world!!\n".to_owned(), coding.len(), Chunked::Done)));
    }

    #[test]
    fn what_follows_the_end_is_left() {
        assert_eq!(decode(b"0\r\n\r\nHTTP"), Ok((String::new(), 5, Chunked::Done)));
    }

    #[test]
    fn mistakes_are_malformed() {
        for wrong in [
            "\r\n",
            "x\r\n",
            "5\nhello",
            "1\r\nab",
            "1\r\na\n",
            "0\r\nx\n",
            "0\r\n\rx",
            "10000000000000000\r\n",
        ] {
            assert_eq!(decode(wrong.as_bytes()), Err(Malformed), "{wrong:?}");
        }
    }
}
