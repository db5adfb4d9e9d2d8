//! The first message of a client, and clients that send something else.

use crate::handshakes::HandshakeError;
use crate::plain_http::{self, PlainHttp};
use rustls::server::{Accepted, Acceptor};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What is read at once; a usual hello with a post-quantum key share has 1.8 KiB.
const READ_SIZE: usize = 4096;

/// Of a TLS record, by which it is told from HTTP.
const HEADER_SIZE: usize = 5;

/// Reads the hello. A client that sends something else has been told what is wrong.
pub(crate) async fn read<S>(stream: &mut S, plain: PlainHttp) -> Result<Accepted, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut acceptor = Acceptor::default();
    let mut header = Vec::with_capacity(HEADER_SIZE);
    let mut buffer = [0; READ_SIZE];
    loop {
        let count = stream.read(&mut buffer).await.map_err(HandshakeError::of)?;
        if count == 0 {
            return Err(HandshakeError::Left);
        }
        let earlier = header.len();
        header.extend(buffer[..count].iter().take(HEADER_SIZE - earlier));
        if plain_http::is_http(&header) {
            let begin = [&header[..earlier], &buffer[..count]].concat();
            plain_http::answer(stream, begin, plain).await;
            return Err(HandshakeError::PlainHttp);
        }
        let mut rest = &buffer[..count];
        while !rest.is_empty() && acceptor.read_tls(&mut rest).map_err(HandshakeError::of)? > 0 {}
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok(accepted),
            Ok(None) => {}
            Err((error, mut alert)) => {
                let mut bytes = Vec::new();
                if alert.write_all(&mut bytes).is_ok() && stream.write_all(&bytes).await.is_ok() {
                    // The client may have gone.
                    let _ = stream.flush().await;
                }
                return Err(HandshakeError::Failed(error.to_string()));
            }
        }
    }
}
