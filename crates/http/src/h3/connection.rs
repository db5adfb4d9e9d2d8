//! One HTTP/3 connection. Its streams are futures of its own task, so they end with it, whatever ends it.

use crate::allowance::Allowance;
use crate::date::DateField;
use crate::h1::Settings;
use crate::h3::failure::{self, Failure};
use crate::h3::incoming::Bodies;
use crate::h3::stream::{self, Outcome, Shared};
use crate::h3::{code, control, endpoint, frames, varint};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::{Request, Response};
use http_body::Body;
use quinn::{Connection, ConnectionError, RecvStream, SendStream, VarInt};
use regent_exchange::{Informational, RequestBody};
use regent_net::Drain;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Type of our control stream.
const CONTROL: u64 = 0x00;

/// The setting for the bytes that a request's fields may have (RFC 9114 §7.2.4.1).
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;

/// The setting that says by 1 that streams can carry WebSocket (RFC 9220 §3).
const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;

/// A frame type that means nothing to anybody (RFC 9114 §7.2.8).
const RESERVED: u64 = 0x21;

/// While requests run, the client hears this often from a server that has nothing to say: neither it nor what stands between takes the
/// connection for dead.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Resets of streams at once and a second; a response that was taken whole pays for one. As in HTTP/2.
const RESETS: (u32, u32) = (200, 10);

/// Frames and instructions that ask for nothing, at once and a second; a request pays for two. As in HTTP/2.
const CONTROL_FRAMES: (u32, u32) = (1000, 100);
const CONTROL_FRAMES_OF_REQUEST: u32 = 2;

/// Between the first word of the end and the last, at most: what a client has sent before it knew arrives meanwhile.
const LAST_CALL: Duration = Duration::from_secs(1);

/// How long a connection that was closed here is kept at most, for its client to be told.
const LAST_WORD: Duration = Duration::from_secs(1);

/// No request has this number (RFC 9114 §5.2).
const BEYOND_ALL: u64 = varint::GREATEST - 3;

/// Whether a connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    GoesOn,
    /// The client was told that it ends.
    LastCall,
    /// With its streams; others are not served.
    Ends,
}

/// What a connection waits for, beside its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Idle,
    Busy,
    LastCall,
}

/// Serves an HTTP/3 connection to its end: until the client closes it, a limit is reached, or, once `leave` has begun, its streams have
/// ended; those that carry WebSocket end when `drain` has begun. Must be called in a `LocalSet` or a local runtime, with a timer.
///
/// `service` makes the response to a request. It is also told how long the request's head took to come (zero if it came whole), and
/// given a way for informational responses. It is dropped as soon as the client resets the stream. Requests are in origin form and have
/// a `Host` field.
///
/// An error is one of the client's making, almost always.
pub async fn serve<S, R, B>(
    connection: endpoint::Connection,
    settings: &Settings,
    leave: &Drain,
    drain: &Drain,
    service: S,
) -> Result<(), Failure>
where
    S: Fn(Request<RequestBody>, Duration, Rc<dyn Informational>) -> R,
    R: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error = io::Error>,
{
    let endpoint::Connection { quic: connection, driver } = connection;
    let shared = Rc::new(Shared {
        service,
        drain,
        connection: connection.clone(),
        read_header: settings.read_header,
        write: settings.write,
        max_header_size: settings.max_header_size,
        date: DateField::default(),
        bodies: Rc::default(),
    });
    let bodies = Rc::clone(&shared.bodies);
    let start = |send, receive| stream::run(send, receive, Rc::clone(&shared));
    let ended = converse(&connection, settings, leave, &bodies, start).await;
    if let Err(Failure::Stalled) = ended {
        connection.close(code::NO_ERROR, b"");
    }
    if let Some(driver) = driver.filter(|_| is_closed_here(&connection)) {
        // The thread may end after this, or the one that has the socket, and then nobody would tell the client.
        let _ = timeout(LAST_WORD, driver.ended()).await;
    }
    ended
}

fn is_closed_here(connection: &Connection) -> bool {
    matches!(connection.close_reason(), Some(ConnectionError::LocallyClosed))
}

async fn converse<T, X>(
    connection: &Connection,
    settings: &Settings,
    leave: &Drain,
    bodies: &Bodies,
    start: T,
) -> Result<(), Failure>
where
    T: Fn(SendStream, RecvStream) -> X,
    X: Future<Output = Outcome>,
{
    let control_frames = Allowance::new(CONTROL_FRAMES.0, CONTROL_FRAMES.1);
    let mut incoming = pin!(control::read(connection, &control_frames));
    let mut own = OwnControl::open(connection, settings).await?;
    let (mut streams, resets) = (FuturesUnordered::new(), Allowance::new(RESETS.0, RESETS.1));
    let (mut course, mut wait, mut next_id) = (Course::GoesOn, Wait::Idle, 0);
    let mut timer = pin!(sleep(settings.idle));
    let fail = |code: VarInt| {
        connection.close(code, b"");
        Err(Failure::of(code))
    };
    loop {
        let is_idle = streams.is_empty() && bodies.are_none();
        if course == Course::Ends && is_idle {
            connection.close(code::NO_ERROR, b"");
            return Ok(());
        }
        let (now, length) = match (course, is_idle) {
            (Course::LastCall, _) => (Wait::LastCall, connection.rtt().min(LAST_CALL)),
            (_, true) => (Wait::Idle, settings.idle),
            (_, false) => (Wait::Busy, SIGN_OF_LIFE),
        };
        if now != wait {
            wait = now;
            timer.set(sleep(length));
        }
        tokio::select! {
            biased;
            code = &mut incoming => return fail(code),
            Some(outcome) = streams.next(), if !streams.is_empty() => match outcome {
                Outcome::Complete => resets.give(1),
                Outcome::Broken => {}
                Outcome::Reset | Outcome::Refused if resets.take() => {}
                Outcome::Reset | Outcome::Refused => return fail(code::EXCESSIVE_LOAD),
                Outcome::Fatal(code) => return fail(code),
            },
            () = bodies.changed() => if let Some(code) = bodies.wrong() {
                return fail(code);
            },
            accepted = connection.accept_bi() => match accepted {
                Ok((send, receive)) if course == Course::Ends => reject(send, receive),
                Ok((send, receive)) => {
                    next_id = u64::from(VarInt::from(send.id())) + 4;
                    control_frames.give(CONTROL_FRAMES_OF_REQUEST);
                    streams.push(start(send, receive));
                }
                Err(error) => return failure::end(error),
            },
            () = leave.begun(), if course == Course::GoesOn => {
                own.say_goodbye(BEYOND_ALL).await?;
                course = Course::LastCall;
            }
            () = &mut timer => match wait {
                Wait::LastCall => {
                    own.say_goodbye(next_id).await?;
                    course = Course::Ends;
                }
                Wait::Idle => {
                    connection.close(code::NO_ERROR, b"");
                    return Ok(());
                }
                Wait::Busy => {
                    own.say(RESERVED, &[]).await?;
                    timer.as_mut().reset(Instant::now() + SIGN_OF_LIFE);
                }
            },
        }
    }
}

/// RFC 9114 §5.2: the client may send this request again, over another connection.
fn reject(mut send: SendStream, mut receive: RecvStream) {
    // Errors say that the client has ended it.
    let _ = receive.stop(code::REQUEST_REJECTED);
    let _ = send.reset(code::REQUEST_REJECTED);
}

/// Our control stream.
struct OwnControl {
    stream: SendStream,
    limit: Duration,
}

impl OwnControl {
    async fn open(connection: &Connection, settings: &Settings) -> Result<Self, Failure> {
        let opened = timeout(settings.read_header, connection.open_uni()).await;
        let stream = opened.map_err(|_| Failure::Stalled)?.map_err(Failure::Lost)?;
        let mut control = Self { stream, limit: settings.write };
        let mut content = Vec::new();
        varint::write(MAX_FIELD_SECTION_SIZE, &mut content);
        varint::write(settings.max_header_size as u64, &mut content);
        varint::write(ENABLE_CONNECT_PROTOCOL, &mut content);
        varint::write(1, &mut content);
        varint::write(RESERVED, &mut content);
        varint::write(0, &mut content);
        let mut bytes = vec![CONTROL as u8];
        frames::write_head(frames::SETTINGS, content.len(), &mut bytes);
        bytes.extend(content);
        control.write(&bytes).await?;
        Ok(control)
    }

    /// Requests from this number on are not served.
    async fn say_goodbye(&mut self, id: u64) -> Result<(), Failure> {
        let mut content = Vec::new();
        varint::write(id, &mut content);
        self.say(frames::GOAWAY, &content).await
    }

    async fn say(&mut self, kind: u64, content: &[u8]) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        frames::write_head(kind, content.len(), &mut bytes);
        bytes.extend_from_slice(content);
        self.write(&bytes).await
    }

    /// A client has room for it, unless it means to stop its own connection.
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match timeout(self.limit, self.stream.write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(quinn::WriteError::ConnectionLost(error))) => {
                failure::end(error).and(Err(Failure::Stalled))
            }
            Ok(Err(_)) => Err(Failure::Protocol(code::CLOSED_CRITICAL_STREAM.into_inner())),
            Err(_) => Err(Failure::Stalled),
        }
    }
}
