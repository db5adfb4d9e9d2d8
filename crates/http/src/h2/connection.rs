//! One HTTP/2 connection.
//!
//! Its streams are futures of the connection's own task. So they end with it, whatever ends it; what they write is sent in the
//! same turn, without waking another task first; and no stream needs a channel to tell the connection how it ended.

use crate::date::DateField;
use crate::h1::Settings;
use crate::h2::activity::{Activity, Course, Expired, Load};
use crate::h2::failure::{Failure, Stalled};
use crate::h2::socket::ObservedStream;
use crate::h2::stream::{self, Outcome, Shared};
use crate::timeouts::Timeouts;
use ::h2::server::{self, SendResponse};
use ::h2::{Reason, RecvStream};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, Stream};
use http::{Request, Response};
use http_body::Body;
use regent_exchange::{Informational, RequestBody};
use regent_net::{CoarseInstant, Drain, DrainWatch};
use std::future::{Future, poll_fn};
use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep};

/// Streams at once. RFC 9113 §6.5.2 recommends no fewer than 100.
const STREAMS: u32 = 100;

/// Bytes of a request's body that a client may send ahead of who reads it, and those of all streams together: more than one
/// may, so that an upload which nobody reads does not keep others from coming.
const STREAM_WINDOW: u32 = 512 * 1024;
const CONNECTION_WINDOW: u32 = 4 * STREAM_WINDOW;

/// Bytes of a frame, the smallest limit that there is.
const FRAME: u32 = 16 * 1024;

/// Bytes of the table of header compression.
const HEADER_TABLE: u32 = 4 * 1024;

/// Bytes of a response that wait in a stream.
const SEND_BUFFER: usize = 64 * 1024;

/// Streams that a client has reset before they were seen here, at once (CVE-2023-44487).
const UNSEEN_RESETS: usize = 20;

/// Streams that a client makes the h2 crate reset, in all (CVE-2025-8671).
const PROVOKED_RESETS: usize = 100;

/// Streams that were reset, and for how long what their client had sent before it knew is ignored: a body that nobody reads
/// any more is no error.
const REMEMBERED_RESETS: usize = 100;
const RESET_MEMORY: Duration = Duration::from_secs(10);

/// What holds the count of bodies while there is none: the connection, and what its streams share.
const BODIES_OF_NONE: usize = 2;

/// Turns that a connection takes before other tasks of the thread have theirs, and requests that it accepts in each.
const TURNS: usize = 16;
const REQUESTS_OF_A_TURN: usize = 32;

/// Serves an HTTP/2 connection, whose client has yet to send its preface, to its end: until the client closes it, a limit is
/// reached, or, once `leave` has begun, its streams have ended. Those that carry WebSocket end when `drain` has begun. Must be called in a `LocalSet` or a local runtime, with a timer.
///
/// `service` makes the response to a request. It is also told how long the request's head took to come, from its first byte
/// to its last (zero if it came whole), and given a way for informational responses. It is dropped as soon as the client
/// resets the stream. Requests are in origin form and have a `Host` field.
///
/// An error is one of the client's making, almost always; see [`Failure::blame`].
pub async fn serve<S, F, R, B>(
    stream: S,
    settings: &Settings,
    leave: &Drain,
    drain: &Drain,
    service: F,
) -> Result<(), Failure>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Fn(Request<RequestBody>, Duration, Rc<dyn Informational>) -> R,
    R: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error = io::Error>,
{
    let activity = Rc::new(Activity::new());
    let stream = ObservedStream::new(stream, Rc::clone(&activity));
    let handshake = builder(settings).handshake(stream);
    let came = CoarseInstant::now();
    let h2 = tokio::select! {
        biased;
        h2 = handshake => h2?,
        () = sleep(settings.read_header) => return Err(Failure::Stalled(Stalled::Preface)),
        () = leave.begun_for_client_of(came, settings.last_request) => return Ok(()),
    };
    let date = DateField::default();
    let shared = Rc::new(Shared { service, drain, write: settings.write, date, bodies: Rc::default() });
    let bodies = Rc::clone(&shared.bodies);
    let timeouts = Timeouts { idle: settings.idle, head: settings.read_header, write: settings.write };
    let timer = pin!(sleep(Activity::longest_sleep(&timeouts, Course::GoesOn)));
    let mut connection = Connection {
        h2,
        start: |request, respond, head_time| stream::run(request, respond, head_time, Rc::clone(&shared)),
        streams: FuturesUnordered::new(),
        bodies,
        activity,
        timeouts,
        timer,
        leave: leave.watch(),
        course: Course::GoesOn,
        first_request: FirstRequest { came, patience: settings.last_request, timer: None, has_come: false },
        failure: None,
    };
    poll_fn(|context| connection.poll(context)).await
}

fn builder(settings: &Settings) -> server::Builder {
    let mut builder = server::Builder::new();
    // The budget of small DATA frames follows the connection's window by default (RUSTSEC-2026-0258).
    builder
        .max_concurrent_streams(STREAMS)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .max_header_list_size(u32::try_from(settings.max_header_size).unwrap_or(u32::MAX))
        .header_table_size(HEADER_TABLE)
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(UNSEEN_RESETS)
        .max_local_error_reset_streams(Some(PROVOKED_RESETS))
        .max_concurrent_reset_streams(REMEMBERED_RESETS)
        .reset_stream_duration(RESET_MEMORY)
        // RFC 8441 §3: for all, since routes may change while a connection lasts, and it cannot be taken back.
        .enable_connect_protocol();
    builder
}

/// A connection behind its preface. `start` makes the future of a stream.
struct Connection<'a, S, T, X>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    h2: server::Connection<ObservedStream<S>, Bytes>,
    start: T,
    streams: FuturesUnordered<X>,
    /// Held by bodies, too.
    bodies: Rc<()>,
    activity: Rc<Activity>,
    timeouts: Timeouts,
    timer: Pin<&'a mut Sleep>,
    leave: DrainWatch<'a>,
    course: Course,
    first_request: FirstRequest,
    /// Why the connection is being closed, if it is for a reason of its own.
    failure: Option<Failure>,
}

/// That of a client which has just come. Told that the connection ends, it would not send it, nor know what to do instead.
struct FirstRequest {
    came: CoarseInstant,
    patience: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    has_come: bool,
}

impl FirstRequest {
    fn is_awaited(&mut self, context: &mut Context<'_>) -> bool {
        let left = || Box::pin(sleep(CoarseInstant::now().left(self.came, self.patience)));
        !self.has_come && self.timer.get_or_insert_with(left).as_mut().poll(context).is_pending()
    }
}

/// What a turn has brought.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Something,
    Nothing,
}

impl<S, T, X> Connection<'_, S, T, X>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: Fn(Request<RecvStream>, SendResponse<Bytes>, Duration) -> X,
    X: Future<Output = Outcome>,
{
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        if self.course == Course::GoesOn
            && self.leave.poll_begun(context)
            && !self.first_request.is_awaited(context)
        {
            self.course = Course::Ends;
            self.h2.graceful_shutdown();
            // It has to look sooner from now on.
            self.timer.set(sleep(Activity::longest_sleep(&self.timeouts, self.course)));
        }
        for _ in 0..TURNS {
            let accepted = match self.accept(context) {
                ControlFlow::Break(result) => return Poll::Ready(self.failure.take().map_or(result, Err)),
                ControlFlow::Continue(turn) => turn,
            };
            let checked = self.check_frames();
            let ended = self.poll_streams(context);
            if [accepted, checked, ended] == [Turn::Nothing; 3] {
                self.activity.rests(self.load(), self.course);
                return self.poll_expired(context);
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Receives and sends, and starts what has come. Breaks with the end of the connection.
    fn accept(&mut self, context: &mut Context<'_>) -> ControlFlow<Result<(), Failure>, Turn> {
        for count in 0..REQUESTS_OF_A_TURN {
            match self.h2.poll_accept(context) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    if !std::mem::replace(&mut self.first_request.has_come, true) {
                        // The connection may end from now on.
                        context.waker().wake_by_ref();
                    }
                    let head_time = self.activity.accepted(respond.stream_id().as_u32());
                    self.streams.push((self.start)(request, respond, head_time));
                }
                Poll::Ready(Some(Err(error))) => return ControlFlow::Break(Err(error.into())),
                Poll::Ready(None) => return ControlFlow::Break(Ok(())),
                Poll::Pending if count == 0 => return ControlFlow::Continue(Turn::Nothing),
                Poll::Pending => break,
            }
        }
        ControlFlow::Continue(Turn::Something)
    }

    /// Ends the connection if its client's frames are no good.
    fn check_frames(&mut self) -> Turn {
        if self.course == Course::Closes {
            return Turn::Nothing;
        }
        if self.activity.breaks_preface() {
            self.close(Reason::PROTOCOL_ERROR, Some(Failure::Protocol(Reason::PROTOCOL_ERROR.into())));
        } else if let Some(flood) = self.activity.flood() {
            self.close(Reason::ENHANCE_YOUR_CALM, Some(Failure::Flood(flood)));
        } else {
            return Turn::Nothing;
        }
        Turn::Something
    }

    fn poll_streams(&mut self, context: &mut Context<'_>) -> Turn {
        let mut turn = Turn::Nothing;
        while let Poll::Ready(Some(outcome)) = Pin::new(&mut self.streams).poll_next(context) {
            turn = Turn::Something;
            match outcome {
                Outcome::Complete => self.activity.completed(),
                Outcome::Refused => self.activity.offended(),
                Outcome::Reset | Outcome::Broken => {}
            }
        }
        turn
    }

    fn load(&self) -> Load {
        // A response can be complete before its request: then its body is still read.
        let is_read = || Rc::strong_count(&self.bodies) > BODIES_OF_NONE;
        match self.streams.is_empty() {
            false => Load::Requests,
            true if !self.h2.has_streams() => Load::Nothing,
            true if is_read() => Load::Requests,
            true => Load::Rests,
        }
    }

    fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        while self.timer.as_mut().poll(context).is_ready() {
            let wait = match self.activity.check(&self.timeouts, self.course, CoarseInstant::now()) {
                Ok(wait) => wait,
                // There is nobody to tell.
                Err(Expired::Stalled(Stalled::Reading)) => {
                    return Poll::Ready(Err(self
                        .failure
                        .take()
                        .unwrap_or(Failure::Stalled(Stalled::Reading))));
                }
                Err(expired) => {
                    self.expire(expired);
                    context.waker().wake_by_ref();
                    Activity::longest_sleep(&self.timeouts, self.course)
                }
            };
            self.timer.set(sleep(wait));
        }
        Poll::Pending
    }

    fn expire(&mut self, expired: Expired) {
        match expired {
            _ if self.course == Course::Closes => {}
            Expired::Idle => self.close(Reason::NO_ERROR, None),
            Expired::Stalled(what) => self.close(Reason::NO_ERROR, Some(Failure::Stalled(what))),
        }
    }

    /// Says so, and waits for nothing else.
    fn close(&mut self, reason: Reason, failure: Option<Failure>) {
        self.course = Course::Closes;
        self.failure = failure;
        self.streams.clear();
        self.h2.abrupt_shutdown(reason);
    }
}
