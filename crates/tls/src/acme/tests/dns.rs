//! A name server for the CA: every name is this machine, and TXT records are files that the DNS hook writes.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const A: u16 = 1;
const TXT: u16 = 16;

/// pebble asks by TCP.
pub(super) async fn serve(listener: TcpListener, records: PathBuf) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(respond(stream, records.clone()));
    }
}

async fn respond(mut stream: TcpStream, records: PathBuf) -> Option<()> {
    loop {
        let length = stream.read_u16().await.ok()?;
        let mut query = vec![0; usize::from(length)];
        stream.read_exact(&mut query).await.ok()?;
        let response = response_to(&query, &records)?;
        stream.write_u16(response.len().try_into().ok()?).await.ok()?;
        stream.write_all(&response).await.ok()?;
    }
}

/// RFC 1035 §4.1.
fn response_to(query: &[u8], records: &Path) -> Option<Vec<u8>> {
    let mut labels = Vec::new();
    let mut at = 12;
    while query.get(at)? != &0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8_lossy(query.get(at + 1..end)?).to_ascii_lowercase());
        at = end;
    }
    let end = at + 5;
    let kind = u16::from_be_bytes(query.get(at + 1..at + 3)?.try_into().ok()?);
    let data = match kind {
        A => Some(Ipv4Addr::LOCALHOST.octets().to_vec()),
        TXT => std::fs::read(records.join(format!("{}.", labels.join(".")))).ok().map(as_text),
        _ => None,
    };
    let answers = u8::from(data.is_some());
    let mut response = [&query[..2], &[0x84, 0, 0, 1, 0, answers, 0, 0, 0, 0]].concat();
    response.extend(query.get(12..end)?);
    if let Some(data) = data {
        response.extend([0xc0, 12]);
        response.extend(kind.to_be_bytes());
        response.extend([0, 1, 0, 0, 0, 0]);
        response.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        response.extend(data);
    }
    Some(response)
}

fn as_text(value: Vec<u8>) -> Vec<u8> {
    let value = value.trim_ascii();
    [&[value.len() as u8], value].concat()
}
