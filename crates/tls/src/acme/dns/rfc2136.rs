//! A name server that takes dynamic updates (RFC 2136), by TCP.

mod message;
mod tsig;

use crate::acme::error::OrderError;
use crate::acme::options::DnsUpdateServer;
use crate::outgoing;
use message::{Change, Message, Name, Reader, TTL};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tsig::Signer;

/// Of all that is done for a record.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Sets a TXT record beside those that are there.
pub(super) async fn add(
    server: &DnsUpdateServer,
    fqdn: &str,
    value: &str,
    ttl: Option<u32>,
) -> Result<(), OrderError> {
    update(server, fqdn, value, Change::Add { ttl: ttl.unwrap_or(TTL) }).await
}

/// Removes this record and no other.
pub(super) async fn remove(server: &DnsUpdateServer, fqdn: &str, value: &str) -> Result<(), OrderError> {
    update(server, fqdn, value, Change::Remove).await
}

async fn update(server: &DnsUpdateServer, fqdn: &str, value: &str, change: Change) -> Result<(), OrderError> {
    let done = async {
        let name = Name::parse(fqdn)?;
        let mut session = Session::open(server).await?;
        let zone = session.zone_of(&name).await?;
        session.send(&message::update(&zone, &name, value, change)).await?;
        Ok::<_, String>(zone)
    };
    let late = || Err(format!("did not answer within {} s", TIMEOUT.as_secs()));
    match tokio::time::timeout(TIMEOUT, done).await.unwrap_or_else(|_| late()) {
        Ok(zone) => {
            tracing::info!(server = server.host, fqdn, zone = %zone, ?change, "changed a record of a DNS challenge");
            Ok(())
        }
        Err(reason) => {
            Err(OrderError::DnsUpdate { server: format!("{}:{}", server.host, server.port), reason })
        }
    }
}

/// A connection to the server.
struct Session {
    stream: TcpStream,
    signer: Option<Signer>,
}

impl Session {
    async fn open(server: &DnsUpdateServer) -> Result<Self, String> {
        let signer = server.key.as_ref().map(Signer::new).transpose()?;
        let stream = outgoing::connect(&server.host, server.port).await;
        Ok(Self { stream: stream.map_err(|error| format!("cannot be reached: {error}"))?, signer })
    }

    /// The zone that the name is in: the server says so with the SOA record of it (RFC 2308 §3, RFC 1035 §4.3.1).
    async fn zone_of(&mut self, name: &Name) -> Result<Name, String> {
        for candidate in name.ancestors() {
            let response = self.send(&message::question(&candidate, message::SOA)).await?;
            if let Some(zone) = response.soa_owner()?.filter(|zone| name.is_below(zone)) {
                return Ok(zone);
            }
        }
        Err(format!("knows no zone that {name} is in"))
    }

    async fn send(&mut self, message: &Message) -> Result<Reader, String> {
        let mut bytes = message.bytes();
        let request_mac = self.signer.as_ref().map(|signer| signer.sign(&mut bytes));
        let broken = |error: std::io::Error| format!("broke the connection off: {error}");
        let length = u16::try_from(bytes.len()).map_err(|_| "would get too long a message".to_owned())?;
        // As one segment; some servers read it with one call.
        self.stream.write_all(&[&length.to_be_bytes()[..], &bytes].concat()).await.map_err(broken)?;
        let length = self.stream.read_u16().await.map_err(broken)?;
        let mut bytes = vec![0; usize::from(length)];
        self.stream.read_exact(&mut bytes).await.map_err(broken)?;
        let response = Reader::new(bytes, message.id)?;
        response.check(self.signer.as_ref())?;
        if let (Some(signer), Some(mac)) = (&self.signer, request_mac) {
            signer.verify(&response, &mac)?;
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests;
