//! Whose PROXY headers are believed.

use bytes::BytesMut;
use regent_config::{Networks, ProxyPolicy, ProxyProtocol, timeout};
use regent_exchange::Connection;
use regent_net::{CoarseInstant, Drain, Prefixed, ProxyHeader, Stream, read_proxy_header};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// Reads the headers of the connections to a listening address.
#[derive(Debug)]
pub struct ProxyHeaders {
    timeout: Duration,
    allow: Networks,
    deny: Networks,
    fallback: ProxyPolicy,
}

impl ProxyHeaders {
    pub fn new(config: &ProxyProtocol) -> Self {
        Self {
            timeout: timeout(config.timeout),
            allow: Networks::new(&config.allow),
            deny: Networks::new(&config.deny),
            fallback: config.fallback,
        }
    }

    /// Reads the header of a connection, if there is one, and puts its addresses in the place of the connection's. `None`: the
    /// server drains.
    ///
    /// # Errors
    /// If the connection is not to go on.
    pub async fn take<S: Stream>(
        &self,
        mut stream: S,
        connection: &mut Connection,
        drain: &Drain,
        last_request: Duration,
    ) -> io::Result<Option<Prefixed<S>>> {
        let policy = self.policy(connection.remote.map(|remote| remote.ip()));
        let mut read = BytesMut::new();
        let came = CoarseInstant::now();
        if policy != ProxyPolicy::Skip {
            let header = tokio::select! {
                biased;
                header = read_proxy_header(&mut stream, &mut read) => header?,
                // A client that has said nothing may be one that waits with its request.
                () = tokio::time::sleep(self.timeout) => match read.is_empty() {
                    true => None,
                    false => return Err(io::ErrorKind::TimedOut.into()),
                },
                () = drain.begun_for_client_of(came, last_request) => return Ok(None),
            };
            apply(policy, header, connection)?;
        }
        Ok(Some(Prefixed::new(read.freeze(), stream)))
    }

    /// `remote`: `None` on a Unix socket, whose permissions say who is believed.
    fn policy(&self, remote: Option<IpAddr>) -> ProxyPolicy {
        match remote {
            None => ProxyPolicy::Use,
            Some(remote) if self.deny.contain(remote) => ProxyPolicy::Reject,
            Some(remote) if self.allow.contain(remote) => ProxyPolicy::Use,
            Some(_) => self.fallback,
        }
    }
}

fn apply(policy: ProxyPolicy, header: Option<ProxyHeader>, connection: &mut Connection) -> io::Result<()> {
    match (policy, header) {
        (ProxyPolicy::Use | ProxyPolicy::Require, Some(header)) => {
            if let Some(addresses) = header.addresses {
                connection.remote = Some(addresses.client);
                connection.local = Some(addresses.local);
            }
            Ok(())
        }
        (ProxyPolicy::Require, None) => Err(io::Error::other("the client has sent no PROXY header")),
        (ProxyPolicy::Reject, Some(_)) => Err(io::Error::other("the client may send no PROXY header")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const HEADER: &str = "PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\n";

    fn headers(fallback: ProxyPolicy) -> ProxyHeaders {
        ProxyHeaders::new(&ProxyProtocol {
            allow: vec![([10, 0, 0, 0].into(), 8)],
            deny: vec![([10, 1, 0, 0].into(), 16)],
            fallback,
            ..ProxyProtocol::default()
        })
    }

    /// The address that the client has then, and the first bytes behind the header.
    async fn taken(fallback: ProxyPolicy, remote: Option<&str>, said: &str) -> io::Result<(String, String)> {
        let (mut client, server) = tokio::io::duplex(256);
        client.write_all(said.as_bytes()).await.unwrap();
        let mut connection =
            Connection { remote: remote.map(|remote| remote.parse().unwrap()), ..Connection::default() };
        let taken = headers(fallback).take(server, &mut connection, &Drain::default(), Duration::MAX).await?;
        drop(client);
        let mut rest = String::new();
        taken.unwrap().read_to_string(&mut rest).await.unwrap();
        Ok((connection.remote.map(|remote| remote.to_string()).unwrap_or_default(), rest))
    }

    #[tokio::test]
    async fn those_that_are_allowed_are_believed() {
        let said = format!("{HEADER}GET");
        for remote in [Some("10.0.0.1:1"), None] {
            let (client, rest) = taken(ProxyPolicy::Ignore, remote, &said).await.unwrap();
            assert_eq!((client.as_str(), rest.as_str()), ("192.0.2.1:4711", "GET"));
        }
        let (client, rest) = taken(ProxyPolicy::Ignore, Some("10.0.0.1:1"), "GET /").await.unwrap();
        assert_eq!((client.as_str(), rest.as_str()), ("10.0.0.1:1", "GET /"));
        assert!(taken(ProxyPolicy::Use, Some("10.1.0.1:1"), &said).await.is_err(), "denied");
    }

    #[tokio::test]
    async fn the_others_are_treated_as_the_policy_says() {
        let said = format!("{HEADER}GET");
        let other = Some("11.0.0.1:1");
        let with = |policy| taken(policy, other, &said);
        assert_eq!(with(ProxyPolicy::Ignore).await.unwrap(), ("11.0.0.1:1".into(), "GET".into()));
        assert_eq!(with(ProxyPolicy::Use).await.unwrap(), ("192.0.2.1:4711".into(), "GET".into()));
        assert_eq!(with(ProxyPolicy::Skip).await.unwrap(), ("11.0.0.1:1".into(), said.clone()));
        assert!(with(ProxyPolicy::Reject).await.is_err());
        assert!(taken(ProxyPolicy::Require, other, "GET /").await.is_err());
        assert_eq!(taken(ProxyPolicy::Reject, other, "GET /").await.unwrap().1, "GET /");
    }

    #[tokio::test(start_paused = true)]
    async fn a_header_is_not_waited_for_for_ever() {
        let (mut client, server) = tokio::io::duplex(256);
        let mut connection = Connection::default();
        let (headers, drain) = (headers(ProxyPolicy::Use), Drain::default());
        let silent = headers.take(server, &mut connection, &drain, Duration::MAX).await.unwrap();
        assert!(silent.is_some(), "it may send a request yet");
        drop(silent);
        assert!(client.write_all(b"x").await.is_err());
        let (mut client, server) = tokio::io::duplex(256);
        client.write_all(b"PROXY TC").await.unwrap();
        let error =
            headers.take(server, &mut connection, &drain, Duration::MAX).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
