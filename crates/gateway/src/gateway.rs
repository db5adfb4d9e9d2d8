//! A request's way through an engine: its body in, its answer out.

use crate::cgi::Variables;
use crate::ends::Ends;
use crate::fields::trailers;
use crate::response_head::{self, Asked, BufferedResponse, ResponseHeader};
use crate::streamed::{Script, Streamed};
use crate::target::Target;
use crate::traced;
use crate::trouble::{LARGE_ENVIRONMENT, Trouble, refusal, too_large, unavailable};
use crate::upload::{Prefix, Upload};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Body;
use regent_config::timeout;
use regent_dispatch::lanes::Place;
use regent_engines::{
    Admission, AdmissionControl, Aim, EngineClient, EngineKind, InFlight, LogPace, Origin, Refused, Submitted,
};
use regent_exchange::{BodyLimits, BodyTimeouts, Informational, RequestBody, ResponseBody};
use regent_handlers::{CodeGeneration, EngineTimes, Exchange, Failure, Step};
use regent_spool::Spools;
use regent_wire::{
    BodyState, Completion, End, Frame, Head, HeadBuilder, ReadError, SubmitError, Timing, clock,
};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt::Display;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// To clients, and to the log, which has the script's errors too.
const GIVEN_UP: &str = "The worker script failed too often, and waits for a restart of the workers.";
/// Somebody has to mend the script first.
const RETRY_AFTER_RESTART: Duration = Duration::from_secs(10);

/// What requests to engines of one kind need on an I/O thread.
pub struct Gateway {
    engine_client: Rc<EngineClient>,
    admission: Rc<AdmissionControl>,
    variables: Variables,
    spools: Arc<Spools>,
    /// Requests that no engine answered.
    unanswered: Cell<u64>,
}

/// A request that has come, but for its body.
pub struct IncomingRequest<'a> {
    pub exchange: &'a Exchange,
    pub ends: &'a Ends,
    pub client: &'a Rc<dyn Informational>,
    /// How long its head took to come.
    pub head_time: Duration,
    /// Of requests whose route has none of its own.
    pub limits: BodyLimits,
}

/// What became of a request: its answer, and where its figures go when that has been sent.
pub type Completed = (Result<Response<ResponseBody>, Failure>, Rc<InFlight>);

impl Gateway {
    pub fn new(
        engine_client: Rc<EngineClient>,
        admission: Rc<AdmissionControl>,
        spools: Arc<Spools>,
        hubs: &[u64],
    ) -> Self {
        Self { engine_client, admission, variables: Variables::new(hubs), spools, unanswered: Cell::new(0) }
    }

    pub fn engine_client(&self) -> &Rc<EngineClient> {
        &self.engine_client
    }

    /// Which code requests that begin now are run with.
    pub fn code(&self) -> CodeGeneration {
        CodeGeneration(self.engine_client.switches())
    }

    /// Runs the request. `received` counts the bytes of the body.
    pub async fn run(
        &self,
        arrived: IncomingRequest<'_>,
        target: &impl Target,
        body: RequestBody,
        received: &Rc<Cell<u64>>,
    ) -> Completed {
        let path = arrived.exchange.original_uri.path();
        let delivery = target.delivery();
        let lane = delivery.lane.as_deref();
        let aim = Aim { pool: target.pool(), path, code: target.code(), lane };
        let in_flight = self.admission.arrive(aim, delivery.deadline, arrived.head_time);
        let step = arrived.exchange.step();
        if let Some(step) = &step {
            traced::observe(&in_flight, step, target);
        }
        let is_chunked = body.size_hint().exact().is_none();
        let answering = self.answer(&arrived, target, body, received, &in_flight, step.as_ref());
        let mut result = answering.await.map_err(|failure| {
            if is_chunked {
                arrived.client.close_connection();
            }
            self.failure(&failure, &in_flight)
        });
        let status = result.as_ref().map_or_else(Failure::status, Response::status);
        in_flight.answered(status.as_u16());
        if arrived.exchange.is_timed()
            && let (Ok(response), Some((queue_wait, execution))) = (&mut result, in_flight.times())
        {
            let engine = traced::engine(&target.subject());
            response.extensions_mut().insert(EngineTimes { engine, queue_wait, execution });
        }
        (result, in_flight)
    }

    async fn answer(
        &self,
        arrived: &IncomingRequest<'_>,
        target: &impl Target,
        body: RequestBody,
        received: &Rc<Cell<u64>>,
        in_flight: &Rc<InFlight>,
        step: Option<&Step>,
    ) -> Result<Response<ResponseBody>, Trouble> {
        in_flight.is_permitted().map_err(Trouble::Shed)?;
        is_served(in_flight, target)?;
        let IncomingRequest { exchange, ends, client, limits, .. } = *arrived;
        let delivery = target.delivery();
        let limits = BodyLimits {
            patience: BodyTimeouts {
                silence: delivery.request_body_timeout.map_or(limits.patience.silence, timeout),
                ..limits.patience
            },
            ..limits
        };
        let mut upload = Upload::of(body, limits, received, client).map_err(Trouble::Upload)?;
        if let Some(upload) = &mut upload {
            // Boxed, as all that few requests need: what every request carries is little and stays in the cache.
            let ring = self.engine_client.request_capacity();
            let read_ahead = Box::pin(upload.read_ahead(delivery.request_buffering, ring, &self.spools));
            read_ahead.await.map_err(Trouble::Upload)?;
            in_flight.complete();
        }
        let (prefix, length) = upload
            .as_mut()
            .map_or((Prefix::EMPTY, Some(0)), |upload| (upload.take_prefix(), upload.length()));
        let head = |head: &mut _| self.variables.write(head, exchange, target, ends.peer(), length, step);
        if prefix.complete && target.is_answered_here(exchange) {
            return self.answer_here(exchange, target, head, prefix.bytes, in_flight);
        }
        let place = match in_flight.enter(target.code()) {
            Admission::Admitted(place) => place,
            Admission::Waiting(turn) => {
                self.engine_client.note_held_back();
                turn.await.map_err(Trouble::Shed)?
            }
        };
        is_served(in_flight, target)?;
        if self.engine_client.is_damaged() {
            Box::pin(self.engine_client.repaired()).await;
        }
        in_flight.entered(&place);
        let pool = in_flight.pool();
        in_flight
            .admit(self.engine_client.waiting(pool), || self.engine_client.progress(pool))
            .map_err(Trouble::Shed)?;
        let acquired = self.engine_client.acquire(length, head);
        let submitted = acquired.map_err(|refused| too_large(refused, target))?;
        in_flight.time_limit(delivery.request_timeout).into_iter().for_each(|limit| submitted.limit(limit));
        // Before it is queued its body is where it has to be for that.
        if let Some(until) = in_flight.may_repeat(exchange.method.as_str(), delivery.retry) {
            submitted.may_repeat(until);
        }
        queue(&submitted, prefix, place, in_flight)?;
        let mut collected = BufferedResponse::default();
        let frames = self.first_frames(&submitted, &mut upload, &mut collected, arrived, target, in_flight);
        within(in_flight, &submitted, pin!(frames)).await?;
        self.respond(collected, submitted, upload, in_flight, exchange, target)
    }

    /// The answer of what has come: whole, or streamed as the rest of it comes.
    fn respond(
        &self,
        collected: BufferedResponse,
        submitted: Submitted,
        upload: Option<Box<Upload>>,
        in_flight: &Rc<InFlight>,
        exchange: &Exchange,
        target: &impl Target,
    ) -> Result<Response<ResponseBody>, Trouble> {
        let BufferedResponse { head, body, trailers, end } = collected;
        if let Some(End { completion: Completion::Overdue, timing }) = end {
            submitted.finish();
            timing.into_iter().for_each(|timing| in_flight.executed(timing));
            return Err(Trouble::Overdue);
        }
        if let Some(End { completion: Completion::Refused, timing }) = end {
            submitted.finish();
            timing.into_iter().for_each(|timing| in_flight.executed(timing));
            return Err(Trouble::Header);
        }
        let head = head.ok_or(Trouble::Engine(ReadError::Lost))?;
        let Some(end) = end else {
            traced::note_thread(in_flight, &submitted);
            let origin = Origin::new(target.subject(), &exchange.method, &exchange.original_uri);
            let script =
                Script { submitted, upload, origin, in_flight: Rc::clone(in_flight), trailers: None };
            return Ok(head.into_streamed(&self.spools, body, trailers, script, Asked::by(exchange)));
        };
        submitted.finish();
        end.timing.into_iter().for_each(|timing| in_flight.executed(timing));
        Ok(self.respond_whole(head, body, trailers, end.completion, exchange))
    }

    fn respond_whole(
        &self,
        head: ResponseHeader,
        body: VecDeque<Bytes>,
        trailers: Option<Box<HeaderMap>>,
        completion: Completion,
        exchange: &Exchange,
    ) -> Response<ResponseBody> {
        match completion {
            Completion::Complete => head.into_whole(body, trailers, Asked::by(exchange)),
            // A head alone, and then the end of the script: nothing is known to be missing.
            Completion::Truncated | Completion::Overdue | Completion::Refused => {
                head.into_response(Streamed::broken(&self.spools, body))
            }
        }
    }

    /// The answer of a handler that runs on this thread.
    fn answer_here(
        &self,
        exchange: &Exchange,
        target: &impl Target,
        write: impl FnOnce(&mut HeadBuilder),
        body: Bytes,
        in_flight: &InFlight,
    ) -> Result<Response<ResponseBody>, Trouble> {
        let mut head = HeadBuilder::new();
        write(&mut head);
        let head =
            Head::parse(head.build(Some(body.len() as u64))).expect("invariant: it was built as a head");
        let began = clock::now();
        let BufferedResponse { head, body, trailers, end } = target.answer_here(exchange, head, body);
        let execution = clock::now().saturating_sub(began);
        in_flight.executed(Timing { waited: Duration::ZERO, execution, cpu: None, thread: None });
        let lost = Trouble::Engine(ReadError::Lost);
        let (Some(head), Some(end)) = (head, end) else { return Err(lost) };
        Ok(self.respond_whole(head, body, trailers, end.completion, exchange))
    }

    /// Reads up to the head and what is there behind it, while the rest of the request body goes in.
    async fn first_frames(
        &self,
        submitted: &Submitted,
        upload: &mut Option<Box<Upload>>,
        collected: &mut BufferedResponse,
        arrived: &IncomingRequest<'_>,
        target: &impl Target,
        in_flight: &InFlight,
    ) -> Result<(), Trouble> {
        let IncomingRequest { exchange, client, .. } = *arrived;
        let mut pace = LogPace::default();
        poll_fn(|context| {
            if submitted.is_repeated() && in_flight.repeated() && in_flight.max_wait_time().is_some() {
                submitted.watch_again(in_flight.pool());
            }
            if let Some(Err(status)) = upload.as_mut().map(|upload| upload.poll_pump(context, submitted)) {
                return Poll::Ready(Err(Trouble::Upload(status)));
            }
            if pace.poll_ready(context).is_pending() {
                return Poll::Pending;
            }
            loop {
                match submitted.try_frame() {
                    Ok(Some(Frame::Head(frame))) => collected.head = Some(ResponseHeader::of(&frame)),
                    Ok(Some(Frame::Body(bytes))) => collected.body.push_back(bytes),
                    Ok(Some(Frame::End(end))) => collected.end = Some(end),
                    Ok(Some(Frame::Log(line))) => {
                        Origin::new(target.subject(), &exchange.method, &exchange.original_uri).log(&line);
                        pace.count();
                        if pace.poll_ready(context).is_pending() {
                            return Poll::Pending;
                        }
                    }
                    Ok(Some(Frame::Informational(frame))) => {
                        response_head::send_interim(&**client, exchange.version, &frame);
                    }
                    Ok(Some(Frame::Trailers(frame))) => collected.trailers = Some(trailers(frame.fields())),
                    Ok(None) if collected.head.is_some() => break,
                    Ok(None) => {
                        if let Err(trouble) = is_served(in_flight, target)
                            && submitted.is_queued()
                        {
                            return Poll::Ready(Err(trouble));
                        }
                        submitted.wake_on_news(context);
                        return Poll::Pending;
                    }
                    Err(error) => return Poll::Ready(Err(Trouble::Engine(error))),
                }
                if collected.end.is_some() {
                    break;
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    fn failure(&self, trouble: &Trouble, in_flight: &InFlight) -> Failure {
        match trouble {
            Trouble::Upload(status) => {
                in_flight.refused();
                Failure::new(*status).with_field(header::CONNECTION, HeaderValue::from_static("close"))
            }
            Trouble::Shed(shed) => {
                in_flight.shed(shed.reason);
                self.note_unanswered(&shed.reason);
                unavailable(shed.retry_after)
            }
            Trouble::GivenUp => {
                in_flight.waited_in_vain();
                self.note_unanswered(&GIVEN_UP);
                unavailable(RETRY_AFTER_RESTART).with_reason(GIVEN_UP)
            }
            Trouble::Refused(refused) => {
                self.note_unanswered(refused);
                refusal(*refused, in_flight)
            }
            Trouble::Overdue => {
                in_flight.overdue();
                Failure::new(StatusCode::GATEWAY_TIMEOUT)
            }
            Trouble::Header => {
                in_flight.response_refused();
                Failure::new(StatusCode::INTERNAL_SERVER_ERROR)
            }
            Trouble::Environment => {
                self.note_unanswered(&LARGE_ENVIRONMENT);
                in_flight.refused();
                Failure::new(StatusCode::INTERNAL_SERVER_ERROR)
            }
            Trouble::Engine(error) => {
                in_flight.lost();
                self.note_unanswered(error);
                Failure::new(StatusCode::BAD_GATEWAY)
            }
        }
    }

    /// A flood of refusals must not become a flood of log lines: the first ones and every thousandth are logged.
    fn note_unanswered(&self, reason: &dyn Display) {
        let count = self.unanswered.get() + 1;
        self.unanswered.set(count);
        if count <= 10 || count.is_multiple_of(1000) {
            match self.engine_client.kind() {
                EngineKind::Php => tracing::warn!(%reason, count, "a request was not answered by PHP"),
                EngineKind::Native => {
                    tracing::warn!(%reason, count, "a request was not answered by a native module");
                }
            }
        }
    }
}

/// The prefix ends here: its bytes are in the ring.
fn queue(submitted: &Submitted, prefix: Prefix, place: Place, in_flight: &InFlight) -> Result<(), Refused> {
    submitted.keep(in_flight.hold(place));
    let damaged = |_: ReadError| Refused::Submit(SubmitError::Corrupt);
    submitted.write_body(&prefix.bytes).map_err(damaged)?;
    if prefix.complete {
        submitted.end_body(BodyState::Complete).map_err(damaged)?;
    }
    submitted.submit(in_flight.pool(), in_flight.ready())?;
    if in_flight.max_wait_time().is_some() {
        submitted.watch(in_flight.pool(), in_flight.ready());
    }
    Ok(())
}

/// Whether anything would run it: what it waits for may have been given up meanwhile, or have opened its circuit.
fn is_served(in_flight: &InFlight, target: &impl Target) -> Result<(), Trouble> {
    if in_flight.is_given_up() {
        return Err(Trouble::GivenUp);
    }
    in_flight.is_passable(target.code()).map_err(Trouble::Shed)
}

/// Gives up when the request has not left the queue in time.
async fn within(
    in_flight: &InFlight,
    submitted: &Submitted,
    mut first: Pin<&mut impl Future<Output = Result<(), Trouble>>>,
) -> Result<(), Trouble> {
    let mut first = pin!(poll_fn(|context| match first.as_mut().poll(context) {
        Poll::Pending if submitted.is_overdue() => {
            traced::note_thread(in_flight, submitted);
            Poll::Ready(Err(Trouble::Overdue))
        }
        Poll::Pending if submitted.is_late() => Poll::Ready(Err(Trouble::Shed(in_flight.waited_too_long()))),
        polled => polled,
    }));
    let timer = if submitted.is_watched() { in_flight.patience_by_deadline() } else { in_flight.patience() };
    let Some((left, shed)) = timer else { return first.await };
    match Box::pin(tokio::time::timeout(left, first.as_mut())).await {
        Ok(result) => result,
        Err(_) if submitted.is_queued() => Err(Trouble::Shed(shed)),
        Err(_) => first.await,
    }
}
