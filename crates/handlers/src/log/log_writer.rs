//! A thread that writes log lines, so that nobody who has one to write ever waits for a disk.

mod network;

use crate::log::rolling::RollingFile;
use network::Network;
use regent_config::{LogFile, LogOutput};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Lines that may wait for the writer; those beyond are dropped and counted.
const QUEUE: usize = 16 * 1024;
/// Bytes that are written at once, if there are so many.
const BATCH: usize = 256 * 1024;
/// Between two batches of an access log. A writer that is always ready has to be woken for each line, which costs the threads
/// of requests more than the line itself.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the end of a log waits for its last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The sending end. Lines that were accepted are written before the drop returns, unless the disk hangs or a collector cannot
/// be reached.
pub struct LogWriter {
    /// `None` once it is being dropped.
    queue: Option<SyncSender<Message>>,
    /// Its drop tells who waits for a collector that the log is being closed. `None` then.
    open: Option<Sender<()>>,
    dropped: Arc<AtomicU64>,
    /// Set when the queue had no room for [`Message::Reopen`].
    reopen: Arc<AtomicBool>,
    /// Is disconnected when the thread has ended. Locked by nobody: a receiver alone could not be shared.
    ended: Mutex<Receiver<()>>,
}

/// Whose lines a writer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    Access,
    /// Trouble with the server's own log cannot be told in it.
    Server,
}

enum Message {
    Line(Vec<u8>),
    Reopen,
    Configure(LogFile),
}

/// Where lines go.
enum Sink {
    Stdout,
    Stderr,
    File(RollingFile),
    Net(Network),
    #[cfg(test)]
    Other(Box<dyn Write + Send>),
}

/// The writing end, in its thread.
struct Writer {
    queue: Receiver<Message>,
    sink: Sink,
    kind: LogKind,
    dropped: Arc<AtomicU64>,
    reopen: Arc<AtomicBool>,
    state: State,
    /// Whether what was written last ended in the middle of a line.
    torn: bool,
}

enum State {
    Healthy,
    /// Writing fails; said once. Counts the lines that were lost since.
    Failing {
        lost: u64,
    },
}

impl LogWriter {
    /// `None` for an output that discards everything. A file is opened for appending, and made if need be; a collector is
    /// connected to.
    ///
    /// # Errors
    /// If that is not possible, or no thread can be started.
    pub fn start(output: &LogOutput, kind: LogKind) -> io::Result<Option<Self>> {
        let (open, closing) = channel();
        let sink = match output {
            LogOutput::Discard => return Ok(None),
            LogOutput::Stdout => Sink::Stdout,
            LogOutput::Stderr => Sink::Stderr,
            LogOutput::File(config) => Sink::File(RollingFile::open(config)?),
            LogOutput::Net(config) => Sink::Net(Network::open(config, kind, closing)?),
        };
        Self::spawn(sink, kind, open, QUEUE).map(Some)
    }

    /// Hands over a line, with its line end. Never waits.
    pub fn write(&self, line: Vec<u8>) {
        let Some(queue) = &self.queue else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            queue.try_send(Message::Line(line))
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Opens the file again, after a rotation has renamed it. Lines that came before still go to the old one, unless so
    /// many wait that the queue is full.
    pub(crate) fn reopen(&self) {
        let Some(queue) = &self.queue else { return };
        if let Err(TrySendError::Full(_)) = queue.try_send(Message::Reopen) {
            self.reopen.store(true, Ordering::Relaxed);
            // The writer looks at that after each batch; should it have caught up meanwhile, this wakes it.
            let _ = queue.try_send(Message::Reopen);
        }
    }

    /// What counts from now on of its file.
    pub(crate) fn configure(&self, config: &LogFile) {
        let Some(queue) = &self.queue else { return };
        if queue.try_send(Message::Configure(config.clone())).is_err() {
            tracing::warn!(path = %config.path.display(), "the access log is too busy to hear how it is to roll; reload once more");
        }
    }

    fn spawn(sink: Sink, kind: LogKind, open: Sender<()>, capacity: usize) -> io::Result<Self> {
        let (queue, receiver) = sync_channel(capacity);
        let (end, ended) = channel();
        let (dropped, reopen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let writer = Writer {
            queue: receiver,
            sink,
            kind,
            dropped: dropped.clone(),
            reopen: reopen.clone(),
            state: State::Healthy,
            torn: false,
        };
        thread::Builder::new().name(kind.thread().into()).spawn(move || writer.run(end))?;
        Ok(Self { queue: Some(queue), open: Some(open), dropped, reopen, ended: Mutex::new(ended) })
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.queue = None;
        self.open = None;
        if let Ok(ended) = self.ended.get_mut() {
            // An error is what we wait for: the thread has let go of its end.
            let _ = ended.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

impl Writer {
    /// `_end` is held for as long as this runs.
    fn run(mut self, _end: Sender<()>) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Ok(first) = self.queue.recv() {
            let mut next = Some(first);
            let (mut lines, mut is_empty) = (0, false);
            while let Some(message) = next.take() {
                match message {
                    Message::Line(line) => {
                        batch.extend_from_slice(&line);
                        lines += 1;
                    }
                    Message::Reopen => {
                        self.flush(&mut batch, std::mem::take(&mut lines));
                        self.reopen();
                    }
                    Message::Configure(config) => {
                        if let Sink::File(file) = &mut self.sink {
                            file.configure(config);
                        }
                    }
                }
                if batch.len() < BATCH {
                    let more = self.queue.try_recv();
                    is_empty = matches!(more, Err(TryRecvError::Empty));
                    next = more.ok();
                }
            }
            self.report_dropped(&mut batch);
            self.flush(&mut batch, lines);
            if self.reopen.swap(false, Ordering::Relaxed) {
                self.reopen();
            }
            if is_empty && self.kind == LogKind::Access {
                thread::sleep(PAUSE);
            }
        }
        // What it still has to tell comes before its end.
        drop(self);
    }

    fn flush(&mut self, batch: &mut Vec<u8>, lines: u64) {
        if !batch.is_empty() {
            self.make_room(batch.len() as u64);
            let result = self.write(batch);
            self.note(result, lines);
            batch.clear();
        }
    }

    fn make_room(&mut self, bytes: u64) {
        if let Sink::File(file) = &mut self.sink
            && !self.torn
            && let Err(error) = file.make_room(bytes)
        {
            tracing::error!(%error, path = %file.path().display(), "no new file can be begun for the access log; the old one goes on growing");
        }
    }

    fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        if self.torn {
            self.sink.write_some(b"\n")?;
            self.torn = false;
        }
        let mut rest = batch;
        while !rest.is_empty() {
            match self.sink.write_some(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.torn = rest[written - 1] != b'\n';
                    rest = &rest[written..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Says once that writing fails, and once that it works again.
    fn note(&mut self, result: io::Result<()>, lines: u64) {
        match (result, &mut self.state) {
            (Ok(()), State::Healthy) => {}
            (Ok(()), State::Failing { lost }) => {
                tracing::warn!(lost, "the access log can be written to again; lines were lost in between");
                self.state = State::Healthy;
            }
            (Err(error), State::Healthy) => {
                tracing::error!(%error, log = %self.sink.name(), "cannot write the access log; lines are lost until it works again");
                self.state = State::Failing { lost: lines };
            }
            (Err(_), State::Failing { lost }) => *lost += lines,
        }
    }

    fn report_dropped(&mut self, batch: &mut Vec<u8>) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            match self.kind {
                LogKind::Access => {
                    tracing::warn!(dropped, log = %self.sink.name(), "access log lines were dropped: they came faster than they could be written");
                }
                LogKind::Server => {
                    let name = self.sink.name();
                    self.kind
                        .tell(&format!("{dropped} log lines for {name} were dropped: they found no room"));
                }
            }
            let logger = self.kind.logger();
            let line = format!(
                "{{\"level\":\"warn\",\"logger\":\"{logger}\",\"msg\":\"lines dropped\",\"count\":{dropped}}}\n"
            );
            batch.extend_from_slice(line.as_bytes());
        }
    }

    fn reopen(&mut self) {
        match &mut self.sink {
            Sink::File(file) => match file.reopen() {
                Ok(()) => self.torn = false,
                Err(error) => {
                    tracing::error!(%error, path = %file.path().display(), "cannot open the access log again; the old file is kept")
                }
            },
            Sink::Stdout | Sink::Stderr | Sink::Net(_) => {}
            #[cfg(test)]
            Sink::Other(writer) => writer.flush().expect("a test's sink takes it"),
        }
    }
}

impl Sink {
    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout => write_through(io::stdout().lock(), bytes),
            Self::Stderr => io::stderr().lock().write(bytes),
            Self::File(file) => file.write(bytes),
            Self::Net(network) => {
                network.send(bytes);
                Ok(bytes.len())
            }
            #[cfg(test)]
            Self::Other(writer) => writer.write(bytes),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Stdout => "stdout".into(),
            Self::Stderr => "stderr".into(),
            Self::File(file) => file.path().display().to_string(),
            Self::Net(network) => network.name(),
            #[cfg(test)]
            Self::Other(_) => "test".into(),
        }
    }
}

impl LogKind {
    /// Of the line that counts dropped ones.
    fn logger(self) -> &'static str {
        match self {
            Self::Access => "http.log.access",
            Self::Server => "server",
        }
    }

    fn thread(self) -> &'static str {
        match self {
            Self::Access => "access-log",
            Self::Server => "server-log",
        }
    }

    /// Says what became of lines, in the server's log or, of that log itself, on the standard error.
    fn tell(self, message: &str) {
        match self {
            Self::Access => tracing::warn!("{message}"),
            Self::Server => {
                let _ = writeln!(io::stderr(), "{message}");
            }
        }
    }
}

fn write_through(mut writer: impl Write, bytes: &[u8]) -> io::Result<usize> {
    writer.write_all(bytes)?;
    writer.flush()?;
    Ok(bytes.len())
}

#[cfg(test)]
mod tests;
