//! Connections to other servers.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// To one address, so that one that is not reachable (often that of IPv6) leaves time for the others.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// Tries all addresses of the host. `host`: a name, or an address without brackets.
///
/// # Errors
/// That of the last address; it names host and address.
pub(crate) async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses = tokio::net::lookup_host((host, port))
        .await
        .map_err(|error| io::Error::other(format!("cannot look up {host}: {error}")))?;
    let mut last = io::Error::other(format!("{host} has no address"));
    for address in addresses {
        match connect_to(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = io::Error::other(format!("cannot connect to {host} ({address}): {error}")),
        }
    }
    Err(last)
}

async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    timeout(CONNECT_TIMEOUT, TcpStream::connect(address))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
