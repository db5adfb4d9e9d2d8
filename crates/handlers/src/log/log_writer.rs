//! A thread that writes log lines, so that nobody who has one to write ever waits for a disk.

use regent_config::LogOutput;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Lines that may wait for the writer; those beyond are dropped and counted.
const QUEUE: usize = 16 * 1024;
/// Bytes that are written at once, if there are so many.
const BATCH: usize = 256 * 1024;
/// How long the end of a log waits for its last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The sending end. Lines that were accepted are written before the drop returns, unless the disk hangs.
pub(crate) struct LogWriter {
    /// `None` once it is being dropped.
    queue: Option<SyncSender<Message>>,
    dropped: Arc<AtomicU64>,
    /// Set when the queue had no room for [`Message::Reopen`].
    reopen: Arc<AtomicBool>,
    /// Is disconnected when the thread has ended. Locked by nobody: a receiver alone could not be shared.
    ended: Mutex<Receiver<()>>,
}

enum Message {
    Line(Vec<u8>),
    Reopen,
}

/// Where lines go.
enum Sink {
    Stdout,
    Stderr,
    File {
        path: PathBuf,
        file: File,
    },
    #[cfg(test)]
    Other(Box<dyn Write + Send>),
}

/// The writing end, in its thread.
struct Writer {
    queue: Receiver<Message>,
    sink: Sink,
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
    /// `None` for an output that discards everything. A file is opened for appending, and made if need be.
    pub(crate) fn start(output: &LogOutput) -> io::Result<Option<Self>> {
        let sink = match output {
            LogOutput::Discard => return Ok(None),
            LogOutput::Stdout => Sink::Stdout,
            LogOutput::Stderr => Sink::Stderr,
            LogOutput::File(path) => Sink::File { path: path.clone(), file: open(path)? },
        };
        Self::spawn(sink, QUEUE).map(Some)
    }

    /// Hands over a line, with its line end. Never waits.
    pub(crate) fn write(&self, line: Vec<u8>) {
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

    fn spawn(sink: Sink, capacity: usize) -> io::Result<Self> {
        let (queue, receiver) = sync_channel(capacity);
        let (end, ended) = channel();
        let (dropped, reopen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let writer = Writer {
            queue: receiver,
            sink,
            dropped: dropped.clone(),
            reopen: reopen.clone(),
            state: State::Healthy,
            torn: false,
        };
        thread::Builder::new().name("access-log".into()).spawn(move || writer.run(end))?;
        Ok(Self { queue: Some(queue), dropped, reopen, ended: Mutex::new(ended) })
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.queue = None;
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
            let mut lines = 0;
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
                }
                if batch.len() < BATCH {
                    next = self.queue.try_recv().ok();
                }
            }
            self.report_dropped(&mut batch);
            self.flush(&mut batch, lines);
            if self.reopen.swap(false, Ordering::Relaxed) {
                self.reopen();
            }
        }
    }

    fn flush(&mut self, batch: &mut Vec<u8>, lines: u64) {
        if !batch.is_empty() {
            let result = self.write(batch);
            self.note(result, lines);
            batch.clear();
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
            tracing::warn!(dropped, log = %self.sink.name(), "access log lines were dropped: they came faster than they could be written");
            let line = format!(
                "{{\"level\":\"warn\",\"logger\":\"http.log.access\",\"msg\":\"lines dropped\",\"count\":{dropped}}}\n"
            );
            batch.extend_from_slice(line.as_bytes());
        }
    }

    fn reopen(&mut self) {
        match &mut self.sink {
            Sink::File { path, file } => match open(path) {
                Ok(new) => {
                    *file = new;
                    self.torn = false;
                }
                Err(error) => {
                    tracing::error!(%error, path = %path.display(), "cannot open the access log again; the old file is kept")
                }
            },
            Sink::Stdout | Sink::Stderr => {}
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
            Self::File { file, .. } => file.write(bytes),
            #[cfg(test)]
            Self::Other(writer) => writer.write(bytes),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Stdout => "stdout".into(),
            Self::Stderr => "stderr".into(),
            Self::File { path, .. } => path.display().to_string(),
            #[cfg(test)]
            Self::Other(_) => "test".into(),
        }
    }
}

fn write_through(mut writer: impl Write, bytes: &[u8]) -> io::Result<usize> {
    writer.write_all(bytes)?;
    writer.flush()?;
    Ok(bytes.len())
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink that waits for leave before each write: to take so many bytes, or to fail. When nobody gives leave any
    /// more, it takes everything. That it is opened again shows as a line.
    struct Gate {
        leave: Receiver<io::Result<usize>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let len = self.leave.recv().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
            self.written.lock().unwrap().extend_from_slice(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.written.lock().unwrap().extend_from_slice(b"reopened\n");
            Ok(())
        }
    }

    type Leave = SyncSender<io::Result<usize>>;

    /// Giving leave waits until the writer takes it.
    fn gated(capacity: usize) -> (LogWriter, Leave, Arc<Mutex<Vec<u8>>>) {
        let (leave, receiver) = sync_channel(0);
        let written = Arc::new(Mutex::new(Vec::new()));
        let gate = Gate { leave: receiver, written: written.clone() };
        (LogWriter::spawn(Sink::Other(Box::new(gate)), capacity).unwrap(), leave, written)
    }

    fn text(written: &Mutex<Vec<u8>>) -> String {
        String::from_utf8(written.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn lines_are_there_after_the_drop() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access.log");
        std::fs::write(&path, "old\n").unwrap();
        let writer = LogWriter::start(&LogOutput::File(path.clone())).unwrap().unwrap();
        for i in 0..1000 {
            writer.write(format!("{i}\n").into_bytes());
        }
        drop(writer);
        let content = std::fs::read_to_string(path).unwrap();
        assert!(content.starts_with("old\n0\n1\n") && content.ends_with("\n999\n"));
    }

    #[test]
    fn a_rotated_file_is_let_go_of() {
        let dir = tempfile::tempdir().unwrap();
        let (path, rotated) = (dir.path().join("access.log"), dir.path().join("access.log.1"));
        let writer = LogWriter::start(&LogOutput::File(path.clone())).unwrap().unwrap();
        writer.write(b"before\n".to_vec());
        std::fs::rename(&path, &rotated).unwrap();
        writer.reopen();
        writer.write(b"after\n".to_vec());
        drop(writer);
        assert_eq!(std::fs::read_to_string(rotated).unwrap(), "before\n");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "after\n");
    }

    #[test]
    fn a_rotation_is_noticed_however_many_lines_wait() {
        let (writer, leave, written) = gated(1);
        writer.write(b"held\n".to_vec());
        leave.send(Ok(2)).unwrap();
        // Now the writer waits in the middle of that line, and this one fills the queue.
        writer.write(b"waiting\n".to_vec());
        writer.reopen();
        drop(leave);
        drop(writer);
        assert_eq!(text(&written), "held\nreopened\nwaiting\n");
    }

    #[test]
    fn a_writer_that_hangs_does_not_stop_the_others() {
        let (writer, leave, written) = gated(4);
        for i in 0..100 {
            writer.write(format!("{i}\n").into_bytes());
        }
        drop(leave);
        drop(writer);
        let text = text(&written);
        let kept = text.lines().filter(|line| !line.starts_with('{')).count();
        let dropped: usize = text
            .lines()
            .filter_map(|line| line.split_once("\"count\":")?.1.trim_end_matches('}').parse::<usize>().ok())
            .sum();
        assert!(dropped > 0);
        assert_eq!(kept + dropped, 100);
    }

    #[test]
    fn a_full_disk_loses_lines_but_never_tears_later_ones() {
        let (writer, leave, written) = gated(16);
        writer.write(b"lost\n".to_vec());
        leave.send(Ok(3)).unwrap();
        leave.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        writer.write(b"kept\n".to_vec());
        drop(leave);
        drop(writer);
        assert_eq!(text(&written), "los\nkept\n");
    }
}
