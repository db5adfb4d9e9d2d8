use super::*;
use proptest::prelude::*;

fn header(client: &str, local: &str, length: usize) -> Result<Parsed, BadHeader> {
    let addresses = Addresses { client: client.parse().unwrap(), local: local.parse().unwrap() };
    Ok(Parsed::Header(ProxyHeader { addresses: Some(addresses) }, length))
}

const NONE: ProxyHeader = ProxyHeader { addresses: None };

#[test]
fn lines_of_text() {
    let v4 = b"PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\nGET";
    assert_eq!(parse_proxy_header(v4), header("192.0.2.1:4711", "198.51.100.2:443", v4.len() - 3));
    let v6 = b"PROXY TCP6 2001:db8::1 ::1 1 65535\r\n";
    assert_eq!(parse_proxy_header(v6), header("[2001:db8::1]:1", "[::1]:65535", v6.len()));
    assert_eq!(parse_proxy_header(b"PROXY UNKNOWN what ever\r\n"), Ok(Parsed::Header(NONE, 25)));
    for bad in [
        "PROXY TCP4 192.0.2.1 198.51.100.2 4711\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 4711 443 1\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 04711 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 65536 443\r\n",
        "PROXY TCP4 192.0.2.1  198.51.100.2 1 443\r\n",
        "PROXY TCP4 ::1 ::1 1 443\r\n",
        "PROXY TCP6 192.0.2.1 192.0.2.1 1 443\r\n",
        "PROXY UDP4 192.0.2.1 192.0.2.1 1 443\r\n",
        "PROXY \r\n",
    ] {
        assert_eq!(parse_proxy_header(bad.as_bytes()), Err(BadHeader), "{bad}");
    }
    let endless = [b"PROXY UNKNOWN ", &[b'x'; 200][..]].concat();
    assert_eq!(parse_proxy_header(&endless), Err(BadHeader));
}

#[test]
fn binary_headers() {
    let signature = b"\r\n\r\n\0\r\nQUIT\n";
    let with = |rest: &[u8]| [signature, rest].concat();
    let v4 = with(&[0x21, 0x11, 0, 15, 192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x67, 1, 0xbb, 4, 0, 0]);
    assert_eq!(parse_proxy_header(&v4), header("192.0.2.1:4711", "198.51.100.2:443", v4.len()));
    let mut v6 = with(&[0x21, 0x21, 0, 36]);
    v6.extend([[0; 15].as_slice(), &[1], &[0; 15], &[2], &[0, 1, 0, 2]].concat());
    assert_eq!(parse_proxy_header(&v6), header("[::1]:1", "[::2]:2", v6.len()));
    assert_eq!(parse_proxy_header(&with(&[0x20, 0, 0, 0])), Ok(Parsed::Header(NONE, 16)), "a health check");
    assert_eq!(parse_proxy_header(&with(&[0x21, 0, 0, 1, 7])), Ok(Parsed::Header(NONE, 17)));
    for bad in
        [&[0x11, 0x11, 0, 12][..], &[0x22, 0x11, 0, 12], &[0x21, 0x11, 0, 3, 1, 2, 3], &[0x21, 0x41, 0, 0]]
    {
        assert_eq!(parse_proxy_header(&with(bad)), Err(BadHeader), "{bad:?}");
    }
}

#[test]
fn requests_and_handshakes_are_no_headers() {
    for other in ["GET / HTTP/1.1", "POST /", "PROXX", "PROXYING", "\x16\x03\x01", "\r\n\r\nGET"] {
        assert_eq!(parse_proxy_header(other.as_bytes()), Ok(Parsed::Absent), "{other:?}");
    }
}

#[tokio::test]
async fn what_follows_a_header_is_left() {
    let bytes = b"PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\nGET / HTTP/1.1\r\n";
    for part in [1, 7, bytes.len()] {
        let (mut client, mut server) = tokio::io::duplex(part);
        let sending =
            tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut client, bytes).await });
        let mut read = BytesMut::new();
        let header = read_proxy_header(&mut server, &mut read).await.unwrap().unwrap();
        assert_eq!(header.addresses.unwrap().client, "192.0.2.1:4711".parse().unwrap());
        let mut rest = read.to_vec();
        server.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"GET / HTTP/1.1\r\n");
        sending.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_is_an_error() {
    let (mut client, mut server) = tokio::io::duplex(64);
    tokio::io::AsyncWriteExt::write_all(&mut client, b"PROXY TCP4").await.unwrap();
    drop(client);
    let error = read_proxy_header(&mut server, &mut BytesMut::new()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

/// What the crate `ppp` makes of it, where it makes anything of it: the addresses, and the length.
fn oracle(bytes: &[u8]) -> Option<(Option<Addresses>, usize)> {
    use ppp::{HeaderResult, v1, v2};
    match HeaderResult::parse(bytes) {
        HeaderResult::V1(Ok(header)) => {
            let addresses = match header.addresses {
                v1::Addresses::Tcp4(of) => Some(Addresses {
                    client: (of.source_address, of.source_port).into(),
                    local: (of.destination_address, of.destination_port).into(),
                }),
                v1::Addresses::Tcp6(of) => Some(Addresses {
                    client: (of.source_address, of.source_port).into(),
                    local: (of.destination_address, of.destination_port).into(),
                }),
                v1::Addresses::Unknown => None,
            };
            Some((addresses, header.header.len()))
        }
        HeaderResult::V2(Ok(header)) => {
            let addresses = match header.addresses {
                // A family without a protocol is as none at all, as for Caddy (go-proxyproto's `IsUnspec`).
                _ if header.command == v2::Command::Local || header.protocol == v2::Protocol::Unspecified => {
                    None
                }
                v2::Addresses::IPv4(of) => Some(Addresses {
                    client: (of.source_address, of.source_port).into(),
                    local: (of.destination_address, of.destination_port).into(),
                }),
                v2::Addresses::IPv6(of) => Some(Addresses {
                    client: (of.source_address, of.source_port).into(),
                    local: (of.destination_address, of.destination_port).into(),
                }),
                _ => None,
            };
            Some((addresses, header.len()))
        }
        _ => None,
    }
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u16>(), any::<u16>()).prop_map(|(a, b, c, d)| {
        format!("PROXY TCP4 {} {} {c} {d}\r\n", std::net::Ipv4Addr::from(a), std::net::Ipv4Addr::from(b))
    });
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<u16>(), any::<u16>()).prop_map(|(a, b, c, d)| {
        format!("PROXY TCP6 {} {} {c} {d}\r\n", std::net::Ipv6Addr::from(a), std::net::Ipv6Addr::from(b))
    });
    prop_oneof![v4, v6].prop_map(String::into_bytes)
}

fn binary() -> impl Strategy<Value = Vec<u8>> {
    let kinds =
        prop_oneof![Just(0x00u8), Just(0x11), Just(0x12), Just(0x21), Just(0x22), Just(0x31), any::<u8>()];
    let commands = prop_oneof![Just(0x20u8), Just(0x21), any::<u8>()];
    (commands, kinds, proptest::collection::vec(any::<u8>(), 0..60)).prop_map(|(command, kind, rest)| {
        let length = (rest.len() as u16).to_be_bytes();
        [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[command, kind], &length[..], &rest].concat()
    })
}

proptest! {
    #[test]
    fn headers_mean_what_they_mean_to_ppp(header in prop_oneof![text(), binary()], behind in proptest::collection::vec(any::<u8>(), 0..8)) {
        let bytes = [header, behind].concat();
        if let Some((addresses, length)) = oracle(&bytes) {
            prop_assert_eq!(parse_proxy_header(&bytes), Ok(Parsed::Header(ProxyHeader { addresses }, length)));
        }
    }

    #[test]
    fn no_bytes_are_a_panic_and_a_header_that_is_cut_is_incomplete(
        header in prop_oneof![text(), binary()], cut in any::<prop::sample::Index>(), noise in proptest::collection::vec(any::<u8>(), 0..200)
    ) {
        let _ = parse_proxy_header(&noise);
        if let Ok(Parsed::Header(_, length)) = parse_proxy_header(&header) {
            prop_assert_eq!(parse_proxy_header(&header[..cut.index(length)]), Ok(Parsed::Incomplete));
        }
    }
}
