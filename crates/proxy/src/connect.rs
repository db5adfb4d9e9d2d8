//! Connections to upstreams: sockets, and TLS on them.

use crate::resolve::Resolver;
use crate::timed::{Stream, Timed};
use crate::transports::{Purpose, Transport};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use regent_config::{UpstreamAddress, UpstreamTls, UpstreamVersions};
use regent_tls::Client;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// How long one address of a name is tried before the next is, too (RFC 8305 §5).
const HEAD_START: Duration = Duration::from_millis(300);

/// A connection that nothing has been sent over.
pub(crate) struct Connected {
    pub stream: Timed,
    pub version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

pub(crate) async fn connect(
    address: &UpstreamAddress,
    transport: &Transport,
    purpose: Purpose,
    resolver: &Resolver,
) -> io::Result<Connected> {
    let config = &transport.config.transport;
    let socket = within(config.dial_timeout, dial(address, config.keepalive_interval, resolver)).await?;
    let (stream, version) = match (transport.client(purpose), &config.tls) {
        (Some(client), Some(tls)) => {
            within(tls.handshake_timeout, secure(client, tls, address, socket)).await?
        }
        _ if config.versions == UpstreamVersions::H2c => (socket, Version::Http2),
        _ => (socket, Version::Http1),
    };
    Ok(Connected { stream: Timed::new(stream, config.read_timeout, config.write_timeout), version })
}

async fn dial(
    address: &UpstreamAddress,
    keepalive: Duration,
    resolver: &Resolver,
) -> io::Result<Box<dyn Stream>> {
    match address {
        UpstreamAddress::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        UpstreamAddress::Tcp { host, port } => {
            let socket = dial_first(resolver.addresses(host, *port).await?).await?;
            socket.set_nodelay(true)?;
            if !keepalive.is_zero() {
                let probes = TcpKeepalive::new().with_time(keepalive).with_interval(keepalive);
                SockRef::from(&socket).set_tcp_keepalive(&probes)?;
            }
            Ok(Box::new(socket))
        }
    }
}

/// The first of the addresses that answers. Each is tried as soon as the one before has failed, or has had its head start.
async fn dial_first(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut addresses = addresses.into_iter();
    let mut tries = FuturesUnordered::new();
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    loop {
        let next = addresses.next();
        let is_last = next.is_none();
        tries.extend(next.map(TcpStream::connect));
        let head_start = async {
            match is_last {
                true => std::future::pending().await,
                false => tokio::time::sleep(HEAD_START).await,
            }
        };
        tokio::select! {
            tried = tries.next() => match tried {
                Some(Ok(socket)) => return Ok(socket),
                Some(Err(failed)) => error = failed,
                None => return Err(error),
            },
            () = head_start => {}
        }
    }
}

async fn secure(
    client: &Client,
    tls: &UpstreamTls,
    address: &UpstreamAddress,
    socket: Box<dyn Stream>,
) -> io::Result<(Box<dyn Stream>, Version)> {
    let name = match (&tls.server_name, address) {
        (Some(name), _) => name,
        (None, UpstreamAddress::Tcp { host, .. }) if !host.is_empty() => host,
        _ => "localhost",
    };
    let stream = client.connect(name, socket).await?;
    let version = if stream.speaks_h2() { Version::Http2 } else { Version::Http1 };
    Ok((Box::new(stream), version))
}

/// A limit of 0 is none.
async fn within<T>(limit: Duration, connecting: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    if limit.is_zero() {
        return connecting.await;
    }
    // Boxed, so that requests over a connection that is there carry no room for it.
    match Box::pin(tokio::time::timeout(limit, connecting)).await {
        Ok(connected) => connected,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no connection within {} ms", limit.as_millis()),
        )),
    }
}
