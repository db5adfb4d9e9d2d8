//! A request that a thread of the played engine has taken.

use crate::process::Process;
use crate::until;
use regent_wire::control::Event;
use regent_wire::names::WELL_KNOWN;
use regent_wire::{ClientGone, Completion, EngineThread, Head, HeadKind};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

const KILL: i32 = 9;

/// A request that a thread of the engine runs. Dropped before its end, the thread is done with it as a script that was lost.
pub struct Call {
    variables: Vec<(String, String)>,
    body_length: Option<u64>,
    /// Of its variables, those that `env` of the site has put there.
    environment: usize,
    running: Running,
}

/// The thread, on its way back when this is dropped.
struct Running {
    thread: Option<EngineThread>,
    process: Arc<Process>,
    back: Sender<Back>,
}

/// How a thread comes back from the test.
pub(crate) enum Back {
    /// It is done with its request.
    Released(EngineThread),
    /// It is to crash in it.
    Crash(EngineThread),
}

impl Call {
    pub(crate) fn new(head: Taken, thread: EngineThread, process: Arc<Process>, back: Sender<Back>) -> Self {
        let Taken { variables, body_length, environment } = head;
        Self { variables, body_length, environment, running: Running { thread: Some(thread), process, back } }
    }

    /// A variable of the request, as scripts see it in `$_SERVER`.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// All variables, in the order in which they came.
    pub fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// The names of the variables that are the site's `env`.
    pub fn environment(&self) -> Vec<&str> {
        self.variables[..self.environment].iter().map(|(name, _)| name.as_str()).collect()
    }

    /// `REQUEST_URI`.
    pub fn uri(&self) -> &str {
        self.variable("REQUEST_URI").expect("each request has it")
    }

    /// Bytes of the body; `None`: not known beforehand.
    pub fn body_length(&self) -> Option<u64> {
        self.body_length
    }

    /// How long it may run.
    pub fn time_limit(&self) -> Option<Duration> {
        self.running.thread().time_limit()
    }

    /// The number of the engine's thread.
    pub fn thread(&self) -> usize {
        self.running.thread().index()
    }

    /// The number of the process, of all that the rig has started.
    pub fn process(&self) -> usize {
        self.running.process.number()
    }

    /// Reads the request's body to its end.
    ///
    /// # Panics
    /// If it breaks off.
    pub fn read_body(&mut self) -> Vec<u8> {
        self.try_read_body().expect("a whole body")
    }

    /// The same for a body that may break off.
    pub fn try_read_body(&mut self) -> Result<Vec<u8>, regent_wire::BodyBroken> {
        let (mut body, mut part) = (Vec::new(), vec![0; 16 * 1024]);
        loop {
            match self.running.thread_mut().read_body(&mut part)? {
                0 => return Ok(body),
                count => body.extend_from_slice(&part[..count]),
            }
        }
    }

    /// Reads so many bytes of the body.
    pub fn read_exactly(&mut self, count: usize) -> Vec<u8> {
        let mut part = vec![0; count];
        let read = self.running.thread_mut().read_body(&mut part).expect("a body");
        assert_eq!(read, count, "the body has ended");
        part
    }

    /// Begins the response. Nothing is seen of it before a [flush](Self::flush) or the end.
    pub fn head(&mut self, status: u16, fields: &[(&str, &str)]) -> &mut Self {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        self.raw_head(status, &fields)
    }

    /// The same with any bytes.
    pub fn raw_head(&mut self, status: u16, fields: &[(&[u8], &[u8])]) -> &mut Self {
        let written = self.running.thread_mut().head(HeadKind::Final, status, b"", fields.iter().copied());
        written.expect("the server takes the response");
        self
    }

    /// A response of 1xx before the head.
    pub fn informational(&mut self, status: u16, fields: &[(&str, &str)]) -> &mut Self {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let written = self.running.thread_mut().head(HeadKind::Informational, status, b"", fields);
        written.expect("the server takes the response");
        self.flush()
    }

    /// A part of the body. It waits while the server does not take it.
    pub fn body(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.try_body(bytes).expect("the server takes the response");
        self
    }

    /// The same for a client that may leave.
    pub fn try_body(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), ClientGone> {
        self.running.thread_mut().body(bytes.as_ref())
    }

    pub fn trailers(&mut self, fields: &[(&str, &str)]) -> &mut Self {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        self.running.thread_mut().trailers(fields).expect("the server takes the response");
        self
    }

    /// A line for the log.
    pub fn log(&mut self, message: &str) -> &mut Self {
        let written = self.running.thread_mut().log(4, message.as_bytes(), b"");
        written.expect("the server takes the response");
        self
    }

    /// Shows the server what was written.
    pub fn flush(&mut self) -> &mut Self {
        self.running.thread_mut().publish();
        self
    }

    /// Ends the response.
    pub fn end(self) {
        self.end_as(Completion::Complete);
    }

    /// Ends the response as one that is not whole.
    pub fn break_off(self) {
        self.end_as(Completion::Truncated);
    }

    /// Ends the response as one whose script ran for longer than it may.
    pub fn end_overdue(self) {
        self.end_as(Completion::Overdue);
    }

    /// Gives the thread back without any end of the response.
    pub fn end_without_a_word(self) {
        drop(self);
    }

    fn end_as(mut self, completion: Completion) {
        let thread = self.running.thread_mut();
        // The client may have left, and then this is for nobody.
        if thread.end(completion).is_ok() {
            thread.publish();
        }
    }

    /// The whole response.
    pub fn answer(mut self, status: u16, body: impl AsRef<[u8]>) {
        self.head(status, &[]).body(body);
        self.end();
    }

    /// The whole response, with these fields.
    pub fn answer_with(mut self, status: u16, fields: &[(&str, &str)], body: impl AsRef<[u8]>) {
        self.head(status, fields).body(body);
        self.end();
    }

    /// Waits until the server has given the request up.
    pub fn wait_until_left(&self) {
        let thread = self.running.thread();
        until("the server gives the request up", || thread.client_gone().then_some(()));
    }

    /// The thread runs into a fault, which ends its process.
    pub fn crash(mut self) {
        let thread = self.running.thread.take().expect("invariant: it goes back at the end");
        // It goes nowhere when the rig has ended.
        let _ = self.running.back.send(Back::Crash(thread));
    }

    /// The process says that this thread does not come back from its request for now.
    pub fn straggle(&self) {
        let (index, since) = (self.thread() as u16, regent_wire::clock::now());
        self.running.process.say(&Event::Straggles { index, started_ns: since.as_nanos() as u64 });
    }

    /// The process says what is no event, again and again.
    pub fn talk_nonsense(&self) {
        self.running.process.write(&b"nonsense\n".repeat(20));
    }

    /// The process closes its control socket.
    pub fn hang_up(&self) {
        self.running.process.hang_up();
    }

    /// The engine's process is killed from outside while this runs.
    pub fn kill_process(&self) {
        self.running.process.end(ExitStatus::from_raw(KILL));
    }
}

impl Running {
    fn thread(&self) -> &EngineThread {
        self.thread.as_ref().expect("invariant: it goes back at the end")
    }

    fn thread_mut(&mut self) -> &mut EngineThread {
        self.thread.as_mut().expect("invariant: it goes back at the end")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut thread) = self.thread.take() else { return };
        match self.process.is_dead() {
            // Who is dead writes nothing any more.
            true => self.process.bury(thread),
            false => {
                thread.release();
                // It goes nowhere when the rig has ended.
                let _ = self.back.send(Back::Released(thread));
            }
        }
    }
}

/// A head that was read.
pub(crate) struct Taken {
    variables: Vec<(String, String)>,
    body_length: Option<u64>,
    environment: usize,
}

impl Taken {
    pub fn read(head: Head<'_>) -> Self {
        let (body_length, environment) = (head.body_length, head.environment);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let variables = head.map(|variable| {
            let name = WELL_KNOWN.get(usize::from(variable.key)).map(|&name| name.to_owned());
            (name.unwrap_or_else(|| text(variable.name)), text(variable.value))
        });
        Self { variables: variables.collect(), body_length, environment }
    }
}
