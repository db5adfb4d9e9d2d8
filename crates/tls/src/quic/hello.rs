//! The first message of a client within QUIC, by which its site is chosen before anything is answered.

use rustls::Error;
use rustls::server::{Accepted, Acceptor};

/// As much of a hello is kept until it is there whole; a usual one with a post-quantum key share has 1.8 KiB.
const LONGEST: usize = 64 * 1024;

/// Type and length (RFC 8446 §4).
const HEADER: usize = 4;

/// Bytes of a record's content (RFC 8446 §5.1).
const RECORD: usize = 16 * 1024;

/// Reads a hello; `None`: more is to come. What follows it is not looked at.
pub(super) fn read(bytes: &[u8]) -> Result<Option<Accepted>, Error> {
    let Some(&[_, high, middle, low]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let length = HEADER + u32::from_be_bytes([0, high, middle, low]) as usize;
    if length > LONGEST {
        return Err(Error::General("the hello is too long".to_owned()));
    }
    let Some(message) = bytes.get(..length) else { return Ok(None) };
    // rustls reads hellos from a stream of records only, which QUIC does without.
    let mut acceptor = Acceptor::default();
    for content in message.chunks(RECORD) {
        let length = u16::try_from(content.len()).expect("invariant: it is 16 KiB at most");
        let mut record = vec![22, 3, 1];
        record.extend(length.to_be_bytes());
        record.extend(content);
        let mut rest = &record[..];
        while !rest.is_empty() {
            if acceptor.read_tls(&mut rest).map_err(|error| Error::General(error.to_string()))? == 0 {
                break;
            }
            match acceptor.accept() {
                Ok(None) => {}
                Ok(accepted) => return Ok(accepted),
                Err((error, _)) => return Err(error),
            }
        }
    }
    Err(Error::General("the hello is cut".to_owned()))
}
