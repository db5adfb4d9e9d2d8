//! Bytes of a client on a connection, as they come in one piece and in many: no panic, as many answers as requests that
//! were seen (and at most one refusal), each of them whole, the same requests however the bytes were cut, and of requests
//! in the strictest spelling exactly those.
//!
//! The first byte says where the bytes are cut.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use regent_exchange::RequestBody;
use regent_http::{Settings, serve};
use regent_net::Drain;
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SETTINGS: Settings = Settings {
    read_header: Duration::from_secs(10),
    idle: Duration::from_secs(10),
    last_request: Duration::from_secs(2),
    write: Duration::from_secs(10),
    max_header_size: 8 * 1024,
};

/// So often the connection is polled with all bytes before it.
const POLLS: usize = 100;

/// A request as the service saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    method: String,
    target: String,
    /// `None`: it broke off, or was malformed.
    body: Option<Bytes>,
}

pub fn run(data: &[u8]) {
    let Some((&cut, bytes)) = data.split_first() else { return };
    let (seen, answers) = talk(bytes, bytes.len().max(1));
    assert_answers(&answers, &seen);
    let (seen_in_parts, answers_in_parts) = talk(bytes, usize::from(cut % 64) + 1);
    assert_answers(&answers_in_parts, &seen_in_parts);
    assert_eq!(seen_in_parts, seen, "what is seen depends on how the bytes came");
    if let Some(expected) = strict(bytes) {
        assert_eq!(seen, expected, "not the requests that were sent");
    }
}

/// What the service saw, and what the client got until the end of the connection.
fn talk(bytes: &[u8], part: usize) -> (Vec<Seen>, Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(async {
        let (client, server) = tokio::io::duplex(64 * 1024);
        let (mut reader, mut writer) = tokio::io::split(client);
        let seen = Rc::new(RefCell::new(Vec::new()));
        let service = |request: Request<RequestBody>, _| answer(request, Rc::clone(&seen));
        let (drain, mut answers) = (Drain::default(), Vec::new());
        let send = async {
            for part in bytes.chunks(part) {
                // It is closed after a broken request.
                if writer.write_all(part).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            // All that has come is answered by then; a client that left earlier would not be.
            for _ in 0..POLLS {
                tokio::task::yield_now().await;
            }
            // Nothing more will come: no time-out is waited for.
            let _ = writer.shutdown().await;
        };
        let served = serve(server, Rc::default(), &SETTINGS, &drain, Rc::default(), service);
        // An error is one of the client's making.
        let _ = tokio::join!(served, send, reader.read_to_end(&mut answers));
        (Rc::unwrap_or_clone(seen).into_inner(), answers)
    })
}

type Answering = Pin<Box<dyn Future<Output = Response<Full<Bytes>>>>>;

fn answer(request: Request<RequestBody>, seen: Rc<RefCell<Vec<Seen>>>) -> Answering {
    let (head, body) = request.into_parts();
    let number = seen.borrow().len();
    seen.borrow_mut().push(Seen { method: head.method.to_string(), target: head.uri.to_string(), body: None });
    Box::pin(async move {
        let body = body.collect().await.map(|body| body.to_bytes()).ok();
        let mut response = Response::new(Full::from(format!("answer {number}")));
        if body.is_none() {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        seen.borrow_mut()[number].body = body;
        response
    })
}

/// Each answer has a head that can be read and the body that it announces.
fn assert_answers(mut bytes: &[u8], seen: &[Seen]) {
    let mut requests = seen.iter();
    let mut refusals = 0;
    while !bytes.is_empty() {
        assert_eq!(refusals, 0, "an answer behind the refusal");
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Response::new(&mut fields);
        let Ok(httparse::Status::Complete(length)) = head.parse(bytes) else {
            panic!("no answer: {}", String::from_utf8_lossy(bytes));
        };
        let status = head.code.expect("it is complete");
        if status == 100 {
            bytes = &bytes[length..];
            continue;
        }
        assert!((200..600).contains(&status));
        let request = requests.next();
        refusals += usize::from(request.is_none());
        let announced = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"));
        let announced = announced.map_or(0, |field| std::str::from_utf8(field.value).unwrap().parse().unwrap());
        let body = if request.is_some_and(|request| request.method == "HEAD") { 0 } else { announced };
        bytes = bytes.get(length + body..).expect("an answer is whole");
    }
}

/// The requests if all of the bytes are well-formed ones of HTTP/1.1 in a spelling that leaves nothing to
/// interpretation; `None` otherwise.
fn strict(mut bytes: &[u8]) -> Option<Vec<Seen>> {
    let mut requests = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        bytes = &bytes[end + 4..];
        let mut lines = head.split("\r\n");
        let [method, target, "HTTP/1.1"] = lines.next()?.split(' ').collect::<Vec<_>>()[..] else { return None };
        let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_plain = ["GET", "POST"].contains(&method) && target.strip_prefix('/').is_some_and(is_word);
        if !is_plain || lines.next()? != "Host: a" {
            return None;
        }
        let body;
        (body, bytes) = match (lines.next(), lines.next()) {
            (None, None) => (Bytes::new(), bytes),
            (Some("Transfer-Encoding: chunked"), None) => strict_chunks(bytes)?,
            (Some(field), None) => {
                let length = strict_number(field.strip_prefix("Content-Length: ")?, 10)?;
                let (body, rest) = bytes.split_at_checked(length)?;
                (Bytes::copy_from_slice(body), rest)
            }
            _ => return None,
        };
        requests.push(Seen { method: method.to_owned(), target: target.to_owned(), body: Some(body) });
    }
    Some(requests)
}

/// RFC 9112 §7.1, without extensions and trailers.
fn strict_chunks(mut bytes: &[u8]) -> Option<(Bytes, &[u8])> {
    let mut body = Vec::new();
    loop {
        let end = bytes.iter().position(|byte| *byte == b'\r')?;
        let length = strict_number(std::str::from_utf8(&bytes[..end]).ok()?, 16)?;
        let (chunk, rest) = bytes[end..].strip_prefix(b"\r\n")?.split_at_checked(length)?;
        bytes = rest.strip_prefix(b"\r\n")?;
        if length == 0 {
            return Some((body.into(), bytes));
        }
        body.extend_from_slice(chunk);
    }
}

/// A few digits and no sign.
fn strict_number(text: &str, radix: u32) -> Option<usize> {
    let is_number = (1..=5).contains(&text.len()) && text.chars().all(|digit| digit.is_digit(radix));
    if is_number { usize::from_str_radix(text, radix).ok() } else { None }
}
