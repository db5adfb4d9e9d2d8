//! WebSocket over streams of HTTP/2 (RFC 8441), to upstreams that speak HTTP/1.1.
#![forbid(unsafe_code)]

use bytes::Bytes;
use http::StatusCode;
use regent_tests::h2::{Http2, Opened};
use regent_tests::h3::{block_on, connect_quic};
use regent_tests::upstream::{Received, Upstream, receive, websocket_answer};
use regent_tests::{Server, Setup, TlsClient, heard, until};
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

fn with_http2() -> Setup {
    Setup::new().global_options("servers {\n\t\tprotocols h1 h2c\n\t}")
}

fn site(directives: &str) -> Setup {
    // What the harness asks for until it is ready is no upstream's.
    let directives =
        format!("handle /is-it-ready.txt {{\n\t\tfile_server\n\t}}\n\thandle {{\n\t{directives}\n\t}}");
    with_http2().site(&directives)
}

fn proxy_to(upstream: &Upstream) -> Server {
    site(&format!("reverse_proxy {}", upstream.address())).start()
}

/// An upstream that agrees to WebSocket, and then gives the connection to `talk`. What it was asked for, and how often `talk` has
/// come to its end.
fn agreeing(
    talk: impl Fn(BufReader<TcpStream>) + Send + Sync + 'static,
) -> (Upstream, Receiver<Received>, Receiver<()>) {
    let ((asked, requests), (ended, ends)) = (channel(), channel());
    let reports = Mutex::new((asked, ended));
    let upstream = Upstream::talking(move |stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        let Some(request) = receive(&mut reader, number) else { return };
        let (asked, ended) = reports.lock().expect("no panic").clone();
        (&stream).write_all(&agreement(&request)).expect("the server reads");
        asked.send(request).expect("a test that waits");
        talk(reader);
        // The test may be over.
        let _ = ended.send(());
    });
    (upstream, requests, ends)
}

fn agreement(request: &Received) -> Vec<u8> {
    let answer = websocket_answer(&request.field("sec-websocket-key"));
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {answer}\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
    )
    .into_bytes()
}

/// Sends back what it gets, and says that it is done.
fn echo(mut reader: BufReader<TcpStream>) {
    let mut stream = reader.get_ref().try_clone().expect("a descriptor");
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
    let _ = stream.write_all(b" bye");
}

async fn open(server: &Server) -> Opened {
    let client = Http2::connect_plain(server.address()).await.expect("a connection");
    client.websocket("/chat?room=1").await.expect(StatusCode::OK)
}

#[test]
fn a_stream_is_joined_with_a_connection_of_the_upstreams() {
    let (upstream, requests, _) = agreeing(echo);
    let server = proxy_to(&upstream);
    block_on(async {
        let client = Http2::connect_plain(server.address()).await.expect("a connection");
        let mut stream = client.websocket("/chat?room=1").await.expect(StatusCode::OK);
        for (name, value) in
            [("sec-websocket-protocol", Some("chat")), ("sec-websocket-accept", None), ("upgrade", None)]
        {
            assert_eq!(stream.header(name), value, "{name}");
        }
        let asked = heard(&requests, "a request");
        assert_eq!(asked.line(), "GET /chat?room=1 HTTP/1.1");
        for (name, value) in [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("x-forwarded-for", "127.0.0.1"),
            ("via", "2.0 Regent"),
            ("content-length", ""),
            ("transfer-encoding", ""),
        ] {
            assert_eq!(asked.field(name), value, "{name}");
        }
        assert_eq!(asked.field("sec-websocket-key").len(), 24);
        stream.send("hello").await;
        assert_eq!(stream.read(5).await, "hello");
        // Others of the connection go on beside it.
        let mut second = client.websocket("/chat").await.expect(StatusCode::OK);
        second.send("two").await;
        assert_eq!(second.read(3).await, "two");
        stream.send("again").await;
        assert_eq!(stream.read(5).await, "again");
        stream.finish();
        assert_eq!(stream.rest().await.expect("an end"), " bye");
    });
    server.stop();
}

#[test]
fn what_is_larger_than_all_windows_passes_both_ways() {
    const LENGTH: usize = 16 << 20;
    let (upstream, _requests, _) = agreeing(echo);
    let server = proxy_to(&upstream);
    block_on(async {
        let (mut sending, mut reading) = open(&server).await.split();
        let sent: Vec<u8> = (0..LENGTH).map(|index| (index / 251) as u8).collect();
        let expected = [&sent[..], b" bye"].concat();
        let sender = tokio::spawn(async move {
            sending.send(Bytes::from(sent)).await;
            sending.finish();
        });
        assert!(reading.rest().await.expect("an end") == expected);
        sender.await.expect("no panic");
    });
    server.stop();
}

#[test]
fn a_client_that_resets_its_stream_ends_the_upstreams_connection() {
    let (upstream, _requests, ends) = agreeing(echo);
    let server = proxy_to(&upstream);
    block_on(async {
        let mut stream = open(&server).await;
        stream.send("hello").await;
        assert_eq!(stream.read(5).await, "hello");
        stream.reset();
        // With its connection, which is still there, nothing has ended.
        let client = Http2::connect_plain(server.address()).await.expect("a connection");
        let dropped = client.websocket("/chat").await.expect(StatusCode::OK);
        drop((dropped, client));
    });
    (0..2).for_each(|_| heard(&ends, "the end of a connection"));
    server.stop();
}

#[test]
fn an_upstream_that_dies_resets_the_stream() {
    let (upstream, _requests, _) = agreeing(|reader| {
        // Closed with bytes unread, a connection is reset.
        let mut first = [0];
        reader.get_ref().peek(&mut first).expect("a byte");
    });
    let server = proxy_to(&upstream);
    block_on(async {
        let mut stream = open(&server).await;
        stream.send("hello").await;
        let error = stream.rest().await.expect_err("no end in good order");
        assert_eq!(error.reason(), Some(h2::Reason::CANCEL));
    });
    server.stop();
}

#[test]
fn an_upstream_may_refuse() {
    let answers: [(&str, &str, u16); 5] = [
        ("/forbidden", "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nX-Why: so\r\n\r\nno", 403),
        ("/page", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage", 501),
        ("/moved", "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", 302),
        ("/other", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n", 502),
        (
            "/unkeyed",
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                      Sec-WebSocket-Accept: x\r\n\r\n",
            502,
        ),
    ];
    let upstream = Upstream::answering(move |request| {
        let answer = answers.iter().find(|(path, ..)| request.line().contains(path));
        answer.expect("an answer").1.as_bytes().to_vec()
    });
    let server = proxy_to(&upstream);
    block_on(async {
        let client = Http2::connect_plain(server.address()).await.expect("a connection");
        for (path, _, status) in answers {
            client.websocket(path).await.expect_refusal(status).await;
        }
        let refused = client.websocket("/forbidden").await.expect_refusal(403).await;
        assert_eq!((refused.header("x-why"), refused.text()), (Some("so"), "no"));
    });
    server.stop();
}

#[test]
fn routes_that_open_no_websocket_say_so() {
    let server = site(
        "handle /text {\n\t\trespond hello\n\t}\n\thandle /file.txt {\n\t\tfile_server\n\t}\n\
         \thandle /old {\n\t\tredir * /new\n\t}\n\tphp_server",
    )
    .file("index.php", "<?php touch(__DIR__.'/ran'); echo 'hello';")
    .file("file.txt", "hello")
    .start();
    block_on(async {
        let client = Http2::connect_plain(server.address()).await.expect("a connection");
        for (path, status) in [("/", 501), ("/text", 501), ("/file.txt", 501), ("/old", 302)] {
            client.websocket(path).await.expect_refusal(status).await;
        }
        // That of a proxy, and one of a protocol that is not spoken.
        for protocol in [None, Some("connect-udp")] {
            client.extended_connect(protocol, "/").await.expect_refusal(501).await;
        }
    });
    assert!(!server.root().join("ran").exists(), "no script ran for what it could not give");
    assert_eq!(server.get("/").expect(200).text(), "hello");
    server.stop();
}

#[test]
fn routes_and_logs_see_the_upgrade_that_it_stands_for() {
    let (upstream, requests, _) = agreeing(echo);
    let server = with_http2().site(&format!(
        "log {{\n\t\toutput file DIRECTORY/access.log\n\t}}\n\
         \t@websockets {{\n\t\tmethod GET\n\t\theader Connection *Upgrade*\n\t\theader Upgrade websocket\n\t}}\n\
         \thandle @websockets {{\n\t\treverse_proxy {}\n\t}}\n\trespond other 418",
        upstream.address()
    ))
    .start();
    block_on(async {
        let mut stream = open(&server).await;
        heard(&requests, "a request");
        stream.finish();
        assert_eq!(stream.rest().await.expect("an end"), " bye");
    });
    server.request("GET", "/chat").send().expect(418);
    let line = until("the line of the request", || {
        let log = std::fs::read_to_string(server.directory().join("access.log")).ok()?;
        log.lines().find(|line| line.contains("HTTP/2.0")).map(str::to_owned)
    });
    assert!(line.contains("\"method\":\"GET\"") && line.contains("\"status\":101"), "{line}");
    server.stop();
}

#[test]
fn it_ends_with_its_directive_where_that_says_so_and_with_the_server() {
    let (upstream, _requests, ends) = agreeing(echo);
    let text = |options: &str, path: &str| {
        format!(
            "{{\n\tadmin ADMIN\n\tservers {{\n\t\tprotocols h1 h2c\n\t}}\n}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\
             \thandle {path} {{\n\t\treverse_proxy {} {{\n\t\t\t{options}\n\t\t}}\n\t}}\n}}\n",
            upstream.address()
        )
    };
    for (options, goes_on) in [("stream_close_delay 10ms", false), ("", true)] {
        let server = Setup::new().caddyfile(&text(options, "/chat")).start();
        block_on(async {
            let mut stream = open(&server).await;
            server.write_caddyfile(&text("lb_policy first", "/other"));
            server.admin().request("POST", "/regent/reload").send().expect(200);
            if !goes_on {
                stream.rest().await.expect_err("its time is over");
                return server.stop();
            }
            stream.send("hello").await;
            assert_eq!(stream.read(5).await, "hello");
            server.stop();
            assert_eq!(stream.rest().await.expect("an end in good order"), "");
        });
        heard(&ends, "the end of a connection");
    }
}

#[test]
fn over_tls_it_is_the_same() {
    let (upstream, requests, _) = agreeing(echo);
    let text = format!(
        "{{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n}}\n\
         localhost {{\n\treverse_proxy {}\n}}\n",
        upstream.address()
    );
    let server = Setup::new().caddyfile(&text).env("XDG_DATA_HOME", "DIRECTORY/data").start();
    let root = server.directory().join("data/caddy/pki/authorities/local/root.crt");
    let tls = TlsClient::trusting(&root);
    block_on(async {
        let client = Http2::connect(&tls, server.tls_address(), "localhost").await.expect("a connection");
        let mut stream = client.websocket("/chat").await.expect(StatusCode::OK);
        assert_eq!(heard(&requests, "a request").field("x-forwarded-proto"), "https");
        stream.send("hello").await;
        assert_eq!(stream.read(5).await, "hello");
    });
    server.stop();
}

/// `CONNECT https://localhost/chat` for WebSocket, of the static table but for names that it does not have.
const CONNECT: &[u8] = b"\x00\x00\xcf\xd7\x50\x09localhost\x51\x05/chat\x27\x02:protocol\x09websocket";

const DATA: u64 = 0;
const HEADERS: u64 = 1;

/// `:status` 200, in the static table.
const OK: u8 = 0xd9;

fn frame(kind: u64, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("a frame") | 0x8000_0000;
    [&[kind as u8][..], &length.to_be_bytes(), content].concat()
}

async fn varint(stream: &mut quinn::RecvStream) -> Option<u64> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes[..1]).await.ok()?;
    let length = 1 << (bytes[0] >> 6);
    stream.read_exact(&mut bytes[1..length]).await.expect("a number");
    bytes[0] &= 0x3f;
    Some(bytes[..length].iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The next frame; `None` at the end of the stream.
async fn next_frame(stream: &mut quinn::RecvStream) -> Option<(u64, Vec<u8>)> {
    let kind = varint(stream).await?;
    let mut content = vec![0; varint(stream).await.expect("a length") as usize];
    stream.read_exact(&mut content).await.expect("a frame");
    Some((kind, content))
}

async fn data(stream: &mut quinn::RecvStream) -> Vec<u8> {
    let mut data = Vec::new();
    while let Some((kind, content)) = next_frame(stream).await {
        assert_eq!(kind, DATA);
        data.extend(content);
    }
    data
}

/// RFC 9220.
#[test]
fn over_http3_it_is_the_same() {
    const LENGTH: usize = 8 << 20;
    let (upstream, requests, ends) = agreeing(echo);
    let text = format!(
        "{{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttp_port PORT\n\thttps_port TLSPORT\n}}\n\
         localhost {{\n\thandle /chat {{\n\t\treverse_proxy {}\n\t}}\n\trespond hello\n}}\n",
        upstream.address()
    );
    let server = Setup::new().caddyfile(&text).env("XDG_DATA_HOME", "DIRECTORY/data").start();
    block_on(async {
        let tls = TlsClient::credulous();
        let connected = connect_quic(&tls, server.tls_address(), "localhost").await;
        let (_endpoint, quic) = connected.expect("a connection");
        let open = async |head: &[u8]| {
            let (mut send, mut receive) = quic.open_bi().await.expect("a stream");
            send.write_all(&frame(HEADERS, head)).await.expect("room");
            let (kind, head) = next_frame(&mut receive).await.expect("a head");
            assert_eq!(kind, HEADERS);
            (send, receive, head)
        };
        let (mut send, mut receive, head) = open(CONNECT).await;
        assert_eq!(head[2], OK);
        assert_eq!(heard(&requests, "a request").field("via"), "3.0 Regent");
        send.write_all(&frame(DATA, b"hello")).await.expect("room");
        assert_eq!(next_frame(&mut receive).await, Some((DATA, b"hello".to_vec())));
        let sender = tokio::spawn(async move {
            for _ in 0..LENGTH / 4096 {
                send.write_all(&frame(DATA, &[7; 4096])).await.expect("room");
            }
            send.finish().expect("a stream");
        });
        let echoed = data(&mut receive).await;
        sender.await.expect("no panic");
        assert!(echoed.len() == LENGTH + 4 && echoed.ends_with(b"\x07 bye"));
        heard(&ends, "the end of a connection");
        // A client that resets it.
        let (mut send, ..) = open(CONNECT).await;
        send.reset(quinn::VarInt::from_u32(0x10c)).expect("a stream");
        heard(&ends, "the end of a connection");
        // What opens none.
        let refused = [CONNECT[..17].to_vec(), b"/text\x27\x02:protocol\x09websocket".to_vec()].concat();
        let (_send, _receive, head) = open(&refused).await;
        assert!(head.windows(3).any(|bytes| bytes == b"501"), "{head:?}");
        // And one that is open when the server stops.
        let (_send, mut receive, head) = open(CONNECT).await;
        assert_eq!(head[2], OK);
        server.stop();
        assert_eq!(next_frame(&mut receive).await, None);
    });
}
