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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto;
    use proptest::prelude::*;
    use rustls::quic::{ClientConnection, Version};
    use rustls::{ClientConfig, RootCertStore};
    use std::sync::Arc;

    /// With protocols that make it longer than a record.
    fn hello(protocols: usize) -> Vec<u8> {
        let mut config = ClientConfig::builder_with_provider(crypto::provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        config.alpn_protocols = vec![vec![b'a'; 200]; protocols];
        let name = "example.com".try_into().unwrap();
        let mut client = ClientConnection::new(Arc::new(config), Version::V1, name, vec![1, 2]).unwrap();
        let mut bytes = Vec::new();
        client.write_hs(&mut bytes);
        bytes
    }

    #[test]
    fn the_name_is_known_once_the_hello_is_whole() {
        for protocols in [1, 100] {
            let bytes = hello(protocols);
            for length in [0, 3, 4, 100, bytes.len() - 1] {
                assert!(read(&bytes[..length]).unwrap().is_none(), "{length}");
            }
            let accepted = read(&[&bytes[..], b"more"].concat()).unwrap().unwrap();
            assert_eq!(accepted.client_hello().server_name(), Some("example.com"));
        }
        assert!(hello(100).len() > RECORD);
    }

    #[test]
    fn a_hello_has_a_bound() {
        assert!(read(&[1, 1, 0, 1]).is_err());
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(bytes: Vec<u8>, place in 0_usize..2000, byte: u8) {
            let _ = read(&bytes);
            let mut hello = hello(1);
            let place = place % hello.len();
            hello[place] = byte;
            let _ = read(&hello);
        }
    }
}
