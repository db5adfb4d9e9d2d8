use super::*;
use std::path::Path;

fn file(path: &Path) -> LogOutput {
    LogOutput::File(LogFile { path: path.to_owned(), mode: None, directory_mode: None, rolling: None })
}

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
    let (open, _) = channel();
    let sink = Sink::Other(Box::new(gate));
    (LogWriter::spawn(sink, LogKind::Access, open, capacity).unwrap(), leave, written)
}

fn text(written: &Mutex<Vec<u8>>) -> String {
    String::from_utf8(written.lock().unwrap().clone()).unwrap()
}

#[test]
fn lines_are_there_after_the_drop() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    std::fs::write(&path, "old\n").unwrap();
    let writer = LogWriter::start(&file(&path), LogKind::Access).unwrap().unwrap();
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
    let writer = LogWriter::start(&file(&path), LogKind::Access).unwrap().unwrap();
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
