//! Connections to upstreams: sockets, and TLS on them.

use crate::caller::Caller;
use crate::forward;
use crate::resolve::Resolver;
use crate::timed::{Stream, Timed};
use crate::transports::{Purpose, Transport};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use regent_config::{ProxyTransport, UpstreamAddress, UpstreamTls, UpstreamVersions};
use regent_tls::Client;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream, UnixStream};

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
    caller: Caller,
) -> io::Result<Connected> {
    let config = &transport.config.transport;
    let dialing = async {
        let proxy = config.proxy_to(address);
        let mut socket = dial(proxy.map_or(address, |proxy| &proxy.address), config, resolver).await?;
        // What goes through it without TLS, it hands on request by request.
        if let (Some(proxy), Some(_)) = (proxy, config.tls_to(address)) {
            socket = forward::open(socket, address, proxy).await?;
        }
        if let Some(version) = config.proxy_protocol {
            socket.write_all(&caller.header(version)?).await?;
        }
        Ok(socket)
    };
    let socket = within(config.dial_timeout, dialing).await?;
    let (stream, version) = match (transport.client(purpose), config.tls_to(address)) {
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
    config: &ProxyTransport,
    resolver: &Resolver,
) -> io::Result<Box<dyn Stream>> {
    match address {
        UpstreamAddress::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        UpstreamAddress::Tcp { host, port } => {
            let socket = dial_first(resolver.addresses(host, *port).await?, config).await?;
            socket.set_nodelay(true)?;
            let keepalive = config.keepalive_interval;
            if !keepalive.is_zero() {
                let probes = TcpKeepalive::new().with_time(keepalive).with_interval(keepalive);
                SockRef::from(&socket).set_tcp_keepalive(&probes)?;
            }
            Ok(Box::new(socket))
        }
    }
}

/// The first of the addresses that answers. Each is tried as soon as the one before has failed, or has had its head start.
async fn dial_first(addresses: Vec<SocketAddr>, config: &ProxyTransport) -> io::Result<TcpStream> {
    let from = config.local_address;
    let mut addresses =
        addresses.into_iter().filter(|to| from.is_none_or(|from| from.is_ipv4() == to.is_ipv4()));
    let mut tries = FuturesUnordered::new();
    let mut error =
        io::Error::new(io::ErrorKind::NotFound, "it has no address of the family of `local_address`");
    loop {
        let next = addresses.next();
        let is_last = next.is_none();
        tries.extend(next.map(|to| dial_one(to, from)));
        let head_start = async {
            match config.head_start {
                Some(head_start) if !is_last => tokio::time::sleep(head_start).await,
                _ => std::future::pending().await,
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

/// `from`: the address that the upstream is to see.
async fn dial_one(to: SocketAddr, from: Option<IpAddr>) -> io::Result<TcpStream> {
    let Some(from) = from else { return TcpStream::connect(to).await };
    let socket = if from.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind(SocketAddr::new(from, 0))?;
    socket.connect(to).await
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
