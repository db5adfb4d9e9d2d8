//! The callbacks that PHP's side calls: leaves that read and write our structs and the shared memory, and never call
//! Zend (laws 2 to 5).

use crate::ffi::{
    self, CLIENT_GONE, Callbacks, Emit, OK, Publication, Purge, Request, Str, ThreadEnd, ThreadOptions,
    UPDATE_ID, Var,
};
use crate::late;
use crate::publication::{self, Destination, Refusal};
use crate::purge::{self, Forgotten};
use crate::renewal::Renewal;
use crate::variables::{Services, fill};
use crate::warmup::Warmup;
use regent_engine_host::{EngineLoad, Readiness, Reporter, SchedPolicy};
use regent_wire::{ClientGone, Completion, EngineThread, FIELD, HeadKind, Siblings, ThreadState};
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The table that PHP's side is started with.
pub static CALLBACKS: Callbacks = Callbacks {
    next_request,
    read_body,
    emit,
    client_gone,
    release,
    log,
    restart_wanted: late::restart_wanted,
    overdue: late::overdue,
    straggles: late::straggles,
    publish,
    purge,
    slow: late::slow,
    traced: late::traced,
};

/// Log lines come before and outside of any thread of ours (start-up, preloading), with nothing but this to go by:
/// PHP is one to a process, and so is its way to the server.
static REPORTER: OnceLock<Arc<Reporter>> = OnceLock::new();

/// Where lines go that belong to no request. Once, before PHP is started.
pub fn set_reporter(reporter: &Arc<Reporter>) {
    let _ = REPORTER.set(Arc::clone(reporter));
}

/// `None` before [`set_reporter`].
pub fn reporter() -> Option<&'static Reporter> {
    REPORTER.get().map(Arc::as_ref)
}

/// One PHP thread: what the `thread` pointer of the callbacks points to.
pub struct PhpThread {
    wire: EngineThread,
    variables: Vec<Var>,
    number: String,
    serving: Serving,
    /// The client has its response, and what the script goes on to write is dropped.
    is_answered: bool,
    /// Of the request's site.
    services: Services,
    sched_policy: SchedPolicy,
    warmup: Warmup,
    renewal: Renewal,
    readiness: Readiness,
}

/// Whose request the thread has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serving {
    Nobody,
    Client,
    /// Of the warm-up: nobody gets the answer, and the shared memory knows nothing of it.
    Engine,
}

/// What a thread does next, as `next_request` of regent_sapi.h says it.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Next {
    Renewal = -1,
    End = 0,
    Request = 1,
}

impl PhpThread {
    /// Of the calling thread.
    pub fn new(
        wire: EngineThread,
        load: Arc<EngineLoad>,
        warmup: Warmup,
        renewal: Renewal,
        readiness: Readiness,
    ) -> Self {
        let number = format!("{}\0", wire.index());
        Self {
            wire,
            variables: Vec::new(),
            number,
            serving: Serving::Nobody,
            is_answered: false,
            services: Services::default(),
            sched_policy: SchedPolicy::new(load),
            warmup,
            renewal,
            readiness,
        }
    }

    /// Runs the thread's script until it ends.
    pub fn run(&mut self, options: &ThreadOptions) -> ThreadEnd {
        self.wire.set_state(ThreadState::Booting);
        self.warmup.begin();
        self.renewal.begin();
        let this: *mut Self = self;
        // SAFETY: laws 1 and 5: no Rust frame lies between the C function's zend_try and what may bail out but the
        // callbacks, which are leaves; `self` and the options outlive the call, and only the callbacks use `self`
        // meanwhile.
        let code = unsafe { ffi::regent_php_thread(this.cast(), options) };
        self.end_request();
        ThreadEnd::from_code(code)
    }

    /// Its number within the engine.
    pub fn index(&self) -> u32 {
        self.wire.index() as u32
    }

    pub fn must_stop(&self) -> bool {
        self.wire.must_stop()
    }

    pub fn set_state(&self, state: ThreadState) {
        self.wire.set_state(state);
    }

    pub fn count_restart(&self) {
        self.wire.count_restart();
    }

    fn next(&mut self, out: &mut Request) -> Next {
        self.end_request();
        if self.warm_up(out) {
            return Next::Request;
        }
        if self.is_to_be_renewed() {
            return Next::Renewal;
        }
        if self.next_of_clients(out) { Next::Request } else { Next::End }
    }

    fn is_to_be_renewed(&mut self) -> bool {
        if cfg!(php_threads) {
            return self.renewal.is_wanted();
        }
        if self.renewal.is_due() {
            // What processes know of each other is in the memory of the engine.
            let Siblings { present, booting } = self.wire.siblings();
            self.renewal.see(present, booting);
        }
        let is_wanted = self.renewal.is_wanted();
        if is_wanted {
            self.wire.set_state(ThreadState::Booting);
        }
        is_wanted
    }

    /// Ends it in favour of the process that is about to take its place.
    pub fn hand_over(self) {
        self.wire.hand_over();
    }

    /// A thread that must end takes no further request of its warm-up.
    fn warm_up(&mut self, out: &mut Request) -> bool {
        let Some(head) = self.warmup.next().filter(|_| !self.wire.must_stop()) else { return false };
        self.services = fill(out, head, &mut self.variables, &self.number);
        self.serving = Serving::Engine;
        true
    }

    fn next_of_clients(&mut self, out: &mut Request) -> bool {
        self.readiness.announce();
        let waiting_behind = self.wire.waiting().saturating_sub(1);
        let Some(head) = self.wire.next_request() else { return false };
        self.services = fill(out, head, &mut self.variables, &self.number);
        out.started = nanoseconds(self.wire.started());
        out.time_limit = self.wire.time_limit().map_or(0, nanoseconds);
        out.given_up = self.wire.given_up();
        self.sched_policy.begin(waiting_behind, self.wire.started());
        self.serving = Serving::Client;
        true
    }

    fn end_request(&mut self) {
        self.is_answered = false;
        self.services = Services::default();
        if std::mem::replace(&mut self.serving, Serving::Nobody) == Serving::Client {
            self.sched_policy.end(self.wire.release());
        }
    }

    fn emit(&mut self, part: &Emit) -> Result<(), ClientGone> {
        match self.serving {
            Serving::Client => self.emit_to_client(part),
            Serving::Engine if part.has_head != 0 => {
                self.warmup.answered(part.status);
                Ok(())
            }
            Serving::Engine => Ok(()),
            Serving::Nobody => Err(ClientGone),
        }
    }

    fn emit_to_client(&mut self, part: &Emit) -> Result<(), ClientGone> {
        if part.has_head != 0 && !self.is_answered {
            self.emit_head(part)?;
        }
        if part.body_len > 0 && !self.is_answered {
            // SAFETY: law 5: (pointer, length) for the time of the call.
            self.wire.body(unsafe { Str { ptr: part.body, len: part.body_len }.bytes() })?;
        }
        if part.end != 0 {
            self.wire.set_memory(part.memory);
            self.renewal.served(part.memory);
            self.end(completion(part))?;
        }
        self.wire.publish();
        if self.wire.client_gone() { Err(ClientGone) } else { Ok(()) }
    }

    fn end(&mut self, completion: Completion) -> Result<(), ClientGone> {
        if !std::mem::replace(&mut self.is_answered, true) {
            self.wire.end(completion)?;
        }
        Ok(())
    }

    /// Where updates of the script go.
    fn destination(&self) -> Destination {
        match (self.serving, self.services.hub) {
            // Nobody is to notice the warm-up.
            (Serving::Engine, _) => Destination::Nobody,
            (Serving::Client, Some(hub)) => Destination::Hub(hub),
            _ => Destination::Nowhere,
        }
    }

    fn client_gone(&self) -> bool {
        match self.serving {
            Serving::Client => self.wire.client_gone(),
            Serving::Engine => false,
            Serving::Nobody => true,
        }
    }

    fn emit_head(&mut self, part: &Emit) -> Result<(), ClientGone> {
        let lines = if part.n_headers == 0 {
            &[]
        } else {
            // SAFETY: law 5: (pointer, length) for the time of the call.
            unsafe { std::slice::from_raw_parts(part.headers, part.n_headers) }
        };
        // SAFETY: law 5: as above, for each line.
        let lines = || lines.iter().map(|line| unsafe { line.bytes() });
        let size: usize = lines().map(|line| line.len() + FIELD).sum();
        if size > self.wire.max_fields() {
            return self.refuse_head(part, size);
        }
        let kind = if part.informational != 0 { HeadKind::Informational } else { HeadKind::Final };
        // What a script can set is clamped (law 8): the C side has checked it too.
        let status =
            u16::try_from(part.status).ok().filter(|status| (100..=999).contains(status)).unwrap_or(500);
        // SAFETY: law 5: as above.
        let reason = unsafe { part.reason.bytes() };
        self.wire.head(kind, status, reason, lines().filter_map(split_line))
    }

    /// It is more than the server takes.
    fn refuse_head(&mut self, part: &Emit, size: usize) -> Result<(), ClientGone> {
        let most = self.wire.max_fields();
        if part.informational != 0 {
            let message = format!(
                "the fields of an informational response have {size} bytes, and max_response_header allows {most}: it is left out"
            );
            return self.wire.log(4, message.as_bytes(), b"");
        }
        let message = format!(
            "the fields of the response have {size} bytes, and max_response_header allows {most}: it is a 500"
        );
        self.wire.log(3, message.as_bytes(), b"")?;
        self.end(Completion::Refused)
    }
}

fn completion(part: &Emit) -> Completion {
    match (part.overdue, part.truncated) {
        (0, 0) => Completion::Complete,
        (0, _) => Completion::Truncated,
        _ => Completion::Overdue,
    }
}

/// As C has it: 292 years are enough.
fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX / 2)
}

/// "Name: value", where the space may be missing and the value empty.
fn split_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
}

/// Runs a callback's body: a panic ends here, with `otherwise` as its answer (law 4).
fn guarded<T>(thread: *mut c_void, otherwise: T, body: impl FnOnce(&mut PhpThread) -> T) -> T {
    let Some(thread) = std::ptr::NonNull::new(thread.cast::<PhpThread>()) else { return otherwise };
    // SAFETY: law 3: the pointer that `PhpThread::run` passed, and PHP calls back on that thread only, one callback
    // at a time.
    let run = AssertUnwindSafe(|| body(unsafe { &mut *thread.as_ptr() }));
    catch_unwind(run).unwrap_or(otherwise)
}

extern "C" fn next_request(thread: *mut c_void, out: *mut Request) -> c_int {
    // SAFETY: law 5: the C side's struct, for the time of the call.
    guarded(thread, Next::End as c_int, |thread| thread.next(unsafe { &mut *out }) as c_int)
}

extern "C" fn read_body(thread: *mut c_void, buffer: *mut c_char, size: usize) -> i64 {
    guarded(thread, -1, |thread| {
        if thread.serving != Serving::Client {
            return 0;
        }
        // SAFETY: law 5: a buffer of that size, for the time of the call; it may be uninitialized, and is only
        // written.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size) };
        thread.wire.read_body(buffer).map_or(-1, |count| count as i64)
    })
}

extern "C" fn emit(thread: *mut c_void, part: *const Emit) -> c_int {
    // SAFETY: law 5: the C side's struct, for the time of the call.
    guarded(thread, CLIENT_GONE, |thread| match thread.emit(unsafe { &*part }) {
        Ok(()) => OK,
        Err(ClientGone) => CLIENT_GONE,
    })
}

extern "C" fn client_gone(thread: *mut c_void) -> c_int {
    guarded(thread, 1, |thread| c_int::from(thread.client_gone()))
}

extern "C" fn release(thread: *mut c_void) {
    guarded(thread, (), PhpThread::end_request);
}

extern "C" fn log(thread: *mut c_void, level: c_int, message: Str, context: Str) {
    // SAFETY: law 5: valid for the time of the call.
    let (message, context) = unsafe { (message.bytes(), context.bytes()) };
    let level = level.clamp(0, 7) as u8;
    let in_request = guarded(thread, false, |thread| {
        // Nobody reads what follows a response.
        let is_read = thread.serving == Serving::Client && !thread.is_answered;
        let written = is_read && thread.wire.log(level, message, context).is_ok();
        if written {
            thread.wire.publish();
        }
        written
    });
    if let (false, Some(reporter)) = (in_request, REPORTER.get()) {
        reporter.log(level, message, context);
    }
}

extern "C" fn publish(thread: *mut c_void, publication: *const Publication, id: *mut c_char) -> c_int {
    let to = guarded(thread, Destination::Nowhere, |thread| thread.destination());
    let Some(reporter) = REPORTER.get() else { return Refusal::Busy.code() };
    // SAFETY: law 5: the C side's struct, for the time of the call.
    let published =
        catch_unwind(AssertUnwindSafe(|| unsafe { publication::publish(to, &*publication, reporter) }));
    match published.unwrap_or(Err(Refusal::Busy)) {
        Ok(made) => {
            // A longer one is the script's own, which has it already.
            let made = made.as_bytes();
            let length = made.len().min(UPDATE_ID - 1);
            // SAFETY: law 5: a buffer of UPDATE_ID bytes, for the time of the call.
            unsafe {
                std::ptr::copy_nonoverlapping(made.as_ptr(), id.cast(), length);
                id.add(length).write(0);
            }
            OK
        }
        Err(refusal) => refusal.code(),
    }
}

extern "C" fn purge(thread: *mut c_void, purge: *const Purge, purged: *mut u64) -> c_int {
    let Some(reporter) = REPORTER.get() else { return purge::Refusal::Busy.code() };
    let forgotten = guarded(thread, Err(purge::Refusal::NoCache), |thread| {
        let whose = match (thread.serving, thread.services.cache) {
            (Serving::Client, Some(scope)) => Forgotten::Of(scope),
            (Serving::Engine, _) => Forgotten::Nothing,
            (Serving::Client, None) | (Serving::Nobody, _) => return Err(purge::Refusal::NoCache),
        };
        // SAFETY: law 5: the C side's struct, for the time of the call.
        unsafe { purge::purge(whose, &*purge, &thread.variables, &thread.wire, reporter) }
    });
    match forgotten {
        Ok(count) => {
            // SAFETY: law 5: the C side's, for the time of the call.
            unsafe { purged.write(count) };
            OK
        }
        Err(refusal) => refusal.code(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lines_are_split() {
        assert_eq!(split_line(b"A: b"), Some((&b"A"[..], &b"b"[..])));
        assert_eq!(split_line(b"A:b"), Some((&b"A"[..], &b"b"[..])));
        assert_eq!(split_line(b"A:"), Some((&b"A"[..], &b""[..])));
        assert_eq!(split_line(b"nothing"), None);
    }
}
