//! A name server for the CA: every name is this machine, and TXT records are files that the DNS hook writes, or updates
//! (RFC 2136). Its only zone is `test`.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const A: u16 = 1;
const SOA: u16 = 6;
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

/// A name that is not compressed, and where it ends.
fn name(query: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    while query.get(at)? != &0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8_lossy(query.get(at + 1..end)?).to_ascii_lowercase());
        at = end;
    }
    Some((format!("{}.", labels.join(".")), at + 1))
}

/// RFC 2136 §2: one TXT record, which is added or, with the class NONE, removed.
fn update(message: &[u8], records: &Path) -> Option<Vec<u8>> {
    const NONE: u8 = 254;
    let (zone, end) = name(message, 12)?;
    let (name, at) = name(message, end + 4)?;
    assert!(zone == "test." && name.ends_with(".test."), "{zone} {name}");
    let file = records.join(name);
    if message.get(at + 3)? == &NONE {
        std::fs::remove_file(file).unwrap();
    } else {
        std::fs::write(file, message.get(at + 11..)?).unwrap();
    }
    Some([&message[..2], &[0xa8, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat())
}

/// RFC 1035 §4.1.
fn response_to(query: &[u8], records: &Path) -> Option<Vec<u8>> {
    if query.get(2)? >> 3 == 5 {
        return update(query, records);
    }
    let (name, end) = name(query, 12)?;
    let end = end + 4;
    let kind = u16::from_be_bytes(query.get(end - 4..end - 2)?.try_into().ok()?);
    let data = match kind {
        A => Some(Ipv4Addr::LOCALHOST.octets().to_vec()),
        TXT => std::fs::read(records.join(name)).ok().map(as_text),
        SOA if name == "test." => Some(vec![0; 22]),
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
