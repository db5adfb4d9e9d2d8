//! The first message of a client, and clients that send something else.

use crate::handshakes::HandshakeError;
use rustls::server::{Accepted, Acceptor};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What is read at once; a usual hello with a post-quantum key share has 1.8 KiB.
const READ_SIZE: usize = 4096;

/// Of a TLS record, by which it is told from HTTP.
const HEADER_SIZE: usize = 5;

/// As Go's net/http has it (`tlsRecordHeaderLooksLikeHTTP` and its caller in server.go).
const PLAIN_HTTP: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// As much is read of such a request before the connection is closed: what is left unread then would make the system
/// reset the connection, and the response would be lost.
const DISCARDED: u64 = 64 * 1024;

/// Reads the hello. A client that sends something else has been told what is wrong.
pub(crate) async fn read<S>(stream: &mut S) -> Result<Accepted, HandshakeError>
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
        header.extend(buffer[..count].iter().take(HEADER_SIZE - header.len()));
        if is_http(&header) {
            refuse_http(stream).await;
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

fn is_http(header: &[u8]) -> bool {
    matches!(header, b"GET /" | b"HEAD " | b"POST " | b"PUT /" | b"OPTIO" | b"PATCH" | b"DELET")
}

async fn refuse_http<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) {
    let told = async {
        stream.write_all(PLAIN_HTTP).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(DISCARDED), &mut tokio::io::sink()).await
    };
    // A client that has gone needs no response.
    let _: io::Result<u64> = told.await;
}
