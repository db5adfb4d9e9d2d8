//! Clients that break HTTP/3, or have too much of it, frame by frame.
#![forbid(unsafe_code)]

use quinn::{ReadError, RecvStream, VarInt, WriteError};
use regent_tests::h3::{Http3, begin_quic, block_on, closed, connect_quic};
use regent_tests::{DEADLINE, Server, Setup, TlsClient};
use std::net::UdpSocket;

const CONTROL: u8 = 0x00;
const ENCODER: u8 = 0x02;
const DECODER: u8 = 0x03;

/// The field section of `GET https://localhost/`, of the static table alone but for the name of the host.
const GET: &[u8] = b"\x00\x00\xd1\xd7\x50\x09localhost\xc1";

fn server(options: &str) -> Server {
    let text = format!(
        "{{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n\tservers {{\n\t\t{options}\n\t}}\n}}\n\
         localhost {{\n\troot * ROOT\n\trequest_body {{\n\t\tmax_size 1MB\n\t}}\n\trespond hello\n}}\n"
    );
    Setup::new().caddyfile(&text).env("XDG_DATA_HOME", "DIRECTORY/data").start()
}

/// A connection without HTTP/3 above it.
struct Raw {
    quic: quinn::Connection,
    _endpoint: quinn::Endpoint,
}

impl Raw {
    async fn connect(server: &Server) -> Self {
        let connected = connect_quic(&TlsClient::credulous(), server.tls_address(), "localhost").await;
        let (endpoint, quic) = connected.expect("a connection");
        Self { quic, _endpoint: endpoint }
    }

    /// A stream that begins with these bytes, and stays open.
    async fn open_uni(&self, bytes: &[u8]) {
        let mut stream = self.quic.open_uni().await.expect("a stream");
        stream.write_all(bytes).await.expect("room");
        // Dropped, it would end.
        std::mem::forget(stream);
    }

    /// A request's stream with these bytes, which ends behind them.
    async fn request(&self, bytes: &[u8]) -> RecvStream {
        let (mut send, receive) = self.quic.open_bi().await.expect("a stream");
        // The server may have enough before that.
        let _ = send.write_all(bytes).await;
        let _ = send.finish();
        receive
    }

    /// The code that the server ends the connection with.
    async fn end(&self) -> u64 {
        closed(&self.quic).await
    }
}

fn varint(value: u64) -> Vec<u8> {
    match value {
        0..0x40 => vec![value as u8],
        0x40..0x4000 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        _ => (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

fn frame(kind: u64, content: &[u8]) -> Vec<u8> {
    [varint(kind), varint(content.len() as u64), content.to_vec()].concat()
}

/// The bytes of a response, or the code of its reset.
async fn read(mut stream: RecvStream) -> Result<Vec<u8>, u64> {
    stream.read_to_end(1 << 20).await.map_err(|error| match error {
        quinn::ReadToEndError::Read(ReadError::Reset(code)) => code.into_inner(),
        error => panic!("{error}"),
    })
}

/// Whether a response has this status, which the static table does not have.
fn has_status(response: &[u8], status: &str) -> bool {
    response.windows(3).any(|bytes| bytes == status.as_bytes())
}

async fn is_served(server: &Server) {
    let mut client = Http3::connect(&TlsClient::credulous(), server.tls_address(), "localhost")
        .await
        .expect("a connection");
    assert_eq!(client.get("/").await.expect(200).text(), "hello");
}

#[test]
fn what_is_no_http3_ends_its_connection_alone() {
    let server = server("protocols h1 h3");
    let settings = || frame(4, &[]);
    let control = |frames: &[Vec<u8>]| [vec![CONTROL], frames.concat()].concat();
    let streams: [(&str, Vec<Vec<u8>>, u64); 13] = [
        ("a frame before the settings", vec![control(&[frame(0x21, &[])])], 0x10a),
        ("settings twice", vec![control(&[settings(), settings()])], 0x105),
        ("a setting twice", vec![control(&[frame(4, &[6, 1, 6, 1])])], 0x109),
        ("a setting of HTTP/2", vec![control(&[frame(4, &[2, 1])])], 0x109),
        ("data on the control stream", vec![control(&[settings(), frame(0, b"a")])], 0x105),
        ("a frame of HTTP/2", vec![control(&[settings(), frame(6, b"a")])], 0x105),
        ("a promise that was never made is cancelled", vec![control(&[settings(), frame(3, &[0])])], 0x108),
        ("two control streams", vec![control(&[settings()]), control(&[settings()])], 0x103),
        ("a push of a client", vec![vec![1, 0]], 0x103),
        ("an entry for the dynamic table", vec![vec![ENCODER, 0xc1, 1, b'a']], 0x201),
        ("an acknowledgement of nothing", vec![vec![DECODER, 0x80]], 0x202),
        ("endless settings", vec![control(&[[varint(4), varint(1 << 40)].concat()])], 0x107),
        ("a flood of nothing", vec![control(&[settings(), frame(0x21, &[]).repeat(2000)])], 0x107),
    ];
    let requests: [(&str, Vec<u8>, u64); 7] = [
        ("data before the head", frame(0, b"a"), 0x105),
        ("settings in a request", frame(4, &[]), 0x105),
        ("a promise of a client", [frame(1, GET), frame(5, &[0])].concat(), 0x105),
        ("a frame of HTTP/2", frame(9, b"a"), 0x105),
        ("a head that is cut", [1, 20, 0, 0].to_vec(), 0x106),
        ("a field of the dynamic table", frame(1, &[0, 0, 0x80]), 0x200),
        ("a head that refers to entries", frame(1, &[2, 0, 0x80]), 0x200),
    ];
    block_on(async {
        for (what, streams, code) in streams {
            let client = Raw::connect(&server).await;
            for bytes in streams {
                client.open_uni(&bytes).await;
            }
            assert_eq!(client.end().await, code, "{what}");
        }
        for (what, bytes, code) in requests {
            let client = Raw::connect(&server).await;
            let _stream = client.request(&bytes).await;
            assert_eq!(client.end().await, code, "{what}");
        }
        let client = Raw::connect(&server).await;
        let mut ended = client.quic.open_uni().await.expect("a stream");
        ended.write_all(&control(&[settings()])).await.expect("room");
        ended.finish().expect("a stream");
        assert_eq!(client.end().await, 0x104, "the control stream ends");
        is_served(&server).await;
    });
    server.stop();
}

#[test]
fn a_malformed_request_ends_its_stream_alone() {
    let server = server("protocols h1 h3");
    let with = |lines: &[u8]| [frame(1, &[GET, lines].concat())].concat();
    let requests: [(&str, Vec<u8>, u64); 8] = [
        ("nothing", Vec::new(), 0x10d),
        ("a name in capitals", with(b"\x21X\x011"), 0x10e),
        ("a second path", with(b"\xc1"), 0x10e),
        ("an unknown pseudo-header field", with(b"\x22:x\x011"), 0x10e),
        ("a field of a connection", with(b"\x27\x03connection\x05close"), 0x10e),
        ("a line break in a value", with(b"\x21x\x03a\r\n"), 0x10e),
        ("no path", frame(1, b"\x00\x00\xd1\xd7\x50\x09localhost"), 0x10e),
        ("less than was declared", with(b"\x54\x013"), 0x10e),
    ];
    block_on(async {
        let client = Raw::connect(&server).await;
        client.open_uni(&[&[CONTROL][..], &frame(4, &[])].concat()).await;
        for (what, bytes, code) in requests {
            assert_eq!(read(client.request(&bytes).await).await, Err(code), "{what}");
        }
        let response = read(client.request(&frame(1, GET)).await).await.expect("a response");
        assert!(response.ends_with(b"hello"), "the connection goes on");
    });
    server.stop();
}

/// Frames that mean nothing are skipped, wherever they are.
#[test]
fn a_host_beside_another_authority_is_not_served() {
    let server = server("protocols h1 h3");
    let with =
        |host: &str| frame(1, &[GET, b"\x24host", &varint(host.len() as u64), host.as_bytes()].concat());
    block_on(async {
        let client = Raw::connect(&server).await;
        for (host, is_served) in [("localhost", true), ("evil.test", false), ("localhost.evil.test", false)] {
            let response = read(client.request(&with(host)).await).await.expect("a response");
            assert_eq!(response.ends_with(b"hello"), is_served, "{host}");
        }
    });
    server.stop();
}

#[test]
fn unknown_frames_and_streams_are_ignored() {
    let server = server("protocols h1 h3");
    block_on(async {
        let client = Raw::connect(&server).await;
        client
            .open_uni(&[&[CONTROL][..], &frame(4, &[0x21, 1]), &frame(0x21, b"x"), &frame(7, &[0])].concat())
            .await;
        client.open_uni(&[ENCODER, 0x20]).await;
        client.open_uni(&[DECODER, 0x40]).await;
        client.open_uni(&[0x21, 1, 2, 3]).await;
        let bytes = [
            frame(0x21, &[7; 100_000]),
            frame(1, GET),
            frame(0x21, &[]),
            frame(0, b"body"),
            frame(0x21, b"y"),
        ]
        .concat();
        let response = read(client.request(&bytes).await).await.expect("a response");
        assert!(response.ends_with(b"hello"));
    });
    server.stop();
}

#[test]
fn a_head_has_a_bound() {
    let server = server("protocols h1 h3\n\t\tmax_header_size 8KiB");
    block_on(async {
        let client = Raw::connect(&server).await;
        let value = [&b"\x21x\x7f\xb9\x3e"[..], &[b'a'; 8120]].concat();
        let literal = frame(1, &[GET, &value].concat());
        // 4,000 fields of the static table in as many bytes.
        let bomb = frame(1, &[GET, &[0xdd; 4000]].concat());
        let endless = [varint(1), varint(1 << 60), vec![0; 100_000]].concat();
        for (what, bytes) in [("a literal", literal), ("a bomb", bomb), ("no end", endless)] {
            let response = read(client.request(&bytes).await).await.expect("a response");
            assert!(has_status(&response, "431"), "{what}: {response:?}");
        }
        let response = read(client.request(&frame(1, GET)).await).await.expect("a response");
        assert!(response.ends_with(b"hello"), "the connection goes on");
    });
    server.stop();
}

/// CVE-2023-44487.
#[test]
fn a_client_that_cancels_all_that_it_asks_for_is_sent_away() {
    let server = server("protocols h1 h3");
    block_on(async {
        let client = Raw::connect(&server).await;
        let code = VarInt::from_u32(0x10c);
        let flood = async {
            loop {
                let Ok((mut send, mut receive)) = client.quic.open_bi().await else { return };
                if matches!(send.write_all(&[1, 30]).await, Err(WriteError::ConnectionLost(_))) {
                    return;
                }
                let _ = (send.reset(code), receive.stop(code));
            }
        };
        flood.await;
        assert_eq!(client.end().await, 0x107);
        is_served(&server).await;
    });
    server.stop();
}

#[test]
fn half_a_head_is_not_waited_for_for_ever() {
    let server = server("protocols h1 h3\n\t\ttimeouts {\n\t\t\tread_header 1s\n\t\t}");
    block_on(async {
        let client = Raw::connect(&server).await;
        let (mut send, receive) = client.quic.open_bi().await.expect("a stream");
        send.write_all(&[1, 30]).await.expect("room");
        assert_eq!(read(receive).await, Err(0x10d));
        is_served(&server).await;
    });
    server.stop();
}

/// Its packets come more often than QUIC itself would take it for gone.
#[test]
fn a_client_that_only_shows_that_it_is_alive_does_not_stay() {
    let server = server("protocols h1 h3\n\t\ttimeouts {\n\t\t\tidle 5s\n\t\t}");
    block_on(async {
        let client = Raw::connect(&server).await;
        let busy = async {
            loop {
                let Ok(mut stream) = client.quic.open_uni().await else { return };
                if stream.write_all(&[0x21]).await.is_err() || stream.finish().is_err() {
                    return;
                }
                #[expect(clippy::disallowed_methods, reason = "a client that says something now and then")]
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            code = client.end() => assert_eq!(code, 0x100),
            () = busy => assert_eq!(client.end().await, 0x100),
        }
        is_served(&server).await;
    });
    server.stop();
}

/// RFC 9000 section 8.1.2. The clients behind the relay hear nothing, so their handshakes stay under way.
#[test]
fn from_many_unfinished_handshakes_on_clients_prove_their_addresses() {
    const CLIENTS: usize = 300;
    let server = server("protocols h1 h3");
    let relay = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    relay.set_read_timeout(Some(DEADLINE)).expect("a socket");
    block_on(async {
        let address = relay.local_addr().expect("an address");
        let client = TlsClient::credulous();
        let begun: Vec<_> = (0..CLIENTS).map(|_| begin_quic(&client, address, "localhost")).collect();
        let mut datagram = [0; 2000];
        loop {
            let (length, from) = relay.recv_from(&mut datagram).expect("a datagram");
            if from != server.tls_address() {
                relay.send_to(&datagram[..length], server.tls_address()).expect("the server listens");
            } else if datagram[0] & 0xf0 == 0xf0 {
                // A long header, of the type Retry.
                break;
            }
        }
        is_served(&server).await;
        drop(begun);
    });
    server.stop();
}
