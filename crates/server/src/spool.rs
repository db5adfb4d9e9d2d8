//! What a script has written and its client has not taken: in memory first, then in a file without a name.
//!
//! The file takes what a slow client leaves, so that the script can end and its thread serve others. If the disk will
//! not have it, the script waits for the client instead: nothing is lost.

use bytes::{Bytes, BytesMut};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::future::{Future, poll_fn};
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::task::{JoinHandle, spawn_blocking};

/// Bytes that are held in memory for each answer.
const MEMORY: usize = 1024 * 1024;
/// Bytes that are held in a file for each answer; nginx has the same bound.
const FILE: u64 = 1024 * 1024 * 1024;
/// Bytes that are written to the file, or read from it, at a time.
const FILE_CHUNK: usize = 256 * 1024;

/// The end that the answer is written to.
pub(crate) struct SpoolWriter(Rc<RefCell<Spool>>);

/// The end that the client's connection reads.
pub(crate) struct SpoolReader {
    spool: Rc<RefCell<Spool>>,
    /// A part of the file on its way.
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

struct Spool {
    chunks: VecDeque<Bytes>,
    /// Bytes in `chunks`.
    size: usize,
    file: Overflow,
    end: Option<io::Result<()>>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What memory had no room for: the bytes from `read` to `written` are to be sent after those in memory.
struct Overflow {
    file: Option<Arc<File>>,
    read: u64,
    written: u64,
    /// Bytes that may be written in all.
    limit: u64,
}

/// A spool that holds these chunks, and has ended if `end` is given.
pub(crate) fn spool(chunks: VecDeque<Bytes>, end: Option<io::Result<()>>) -> (SpoolWriter, SpoolReader) {
    let size = chunks.iter().map(Bytes::len).sum();
    let spool = Spool { chunks, size, file: Overflow::new(), end, reader: None, writer: None };
    let spool = Rc::new(RefCell::new(spool));
    (SpoolWriter(Rc::clone(&spool)), SpoolReader { spool, reading: None })
}

impl SpoolWriter {
    /// Takes a chunk; waits while there is no room anywhere.
    pub async fn write(&self, chunk: Bytes) {
        loop {
            let to_file = {
                let mut spool = self.0.borrow_mut();
                if spool.has_memory_for_more() {
                    spool.push(chunk);
                    return;
                }
                spool.file.has_room_for(chunk.len())
            };
            if !to_file {
                poll_fn(|context| self.0.borrow_mut().poll_room(context)).await;
            } else if self.write_to_file(&chunk).await {
                return;
            }
        }
    }

    /// Nothing follows.
    pub fn end(&self, end: io::Result<()>) {
        let mut spool = self.0.borrow_mut();
        spool.end = Some(end);
        spool.wake_reader();
    }

    /// `false` if the disk will not have it.
    async fn write_to_file(&self, chunk: &Bytes) -> bool {
        let (file, at) = self.0.borrow().file.end();
        let bytes = chunk.clone();
        let write = move || -> io::Result<Arc<File>> {
            let file = match file {
                Some(file) => file,
                None => Arc::new(tempfile::tempfile()?),
            };
            file.write_all_at(&bytes, at)?;
            Ok(file)
        };
        let result = spawn_blocking(write).await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let mut spool = self.0.borrow_mut();
        let written = match result {
            Ok(file) => spool.file.wrote(file, chunk.len()),
            Err(error) => spool.file.refuse(&error),
        };
        spool.wake_reader();
        written
    }
}

impl SpoolReader {
    /// The next bytes; `None` at the end.
    pub fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if let Some(reading) = &mut self.reading {
                let result = ready!(Pin::new(reading).poll(context));
                self.reading = None;
                let result = result.unwrap_or_else(|error| Err(io::Error::other(error)));
                if let Ok(bytes) = &result {
                    self.spool.borrow_mut().was_read(bytes.len());
                }
                return Poll::Ready(Some(result));
            }
            let mut spool = self.spool.borrow_mut();
            if let Some(chunk) = spool.pop() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            if let Some((file, read, unread)) = spool.file.unread() {
                let size = FILE_CHUNK.min(usize::try_from(unread).unwrap_or(FILE_CHUNK));
                drop(spool);
                self.reading = Some(spawn_blocking(move || read_at(&file, read, size)));
                continue;
            }
            return match spool.end.take() {
                Some(end) => Poll::Ready(end.err().map(Err)),
                None => {
                    spool.reader = Some(context.waker().clone());
                    Poll::Pending
                }
            };
        }
    }
}

fn read_at(file: &File, position: u64, size: usize) -> io::Result<Bytes> {
    let mut bytes = BytesMut::zeroed(size);
    file.read_exact_at(&mut bytes, position)?;
    Ok(bytes.freeze())
}

impl Spool {
    /// Bytes that come after those in the file have to go there too.
    fn has_memory_for_more(&self) -> bool {
        self.size < MEMORY && self.file.unread().is_none()
    }

    fn push(&mut self, chunk: Bytes) {
        self.size += chunk.len();
        self.chunks.push_back(chunk);
        self.wake_reader();
    }

    fn pop(&mut self) -> Option<Bytes> {
        let chunk = self.chunks.pop_front()?;
        self.size -= chunk.len();
        self.wake_writer();
        Some(chunk)
    }

    fn was_read(&mut self, bytes: usize) {
        self.file.read += bytes as u64;
        self.wake_writer();
    }

    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.has_memory_for_more() {
            return Poll::Ready(());
        }
        self.writer = Some(context.waker().clone());
        Poll::Pending
    }

    fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl Overflow {
    fn new() -> Self {
        Self { file: None, read: 0, written: 0, limit: FILE }
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.written + bytes as u64 <= self.limit
    }

    /// The file, if there is one already, and where its bytes end.
    fn end(&self) -> (Option<Arc<File>>, u64) {
        (self.file.clone(), self.written)
    }

    fn wrote(&mut self, file: Arc<File>, bytes: usize) -> bool {
        self.file = Some(file);
        self.written += bytes as u64;
        true
    }

    /// What is in the file stays good.
    fn refuse(&mut self, error: &io::Error) -> bool {
        tracing::warn!(%error, "an answer could not be spooled to a file; its script waits for the client");
        self.limit = 0;
        false
    }

    /// The file, where to go on reading, and how much is there.
    fn unread(&self) -> Option<(Arc<File>, u64, u64)> {
        let file = self.file.as_ref()?;
        (self.read < self.written).then(|| (Arc::clone(file), self.read, self.written - self.read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(reader: &mut SpoolReader) -> Option<io::Result<Bytes>> {
        poll_fn(|context| reader.poll_chunk(context)).await
    }

    async fn read_all(mut reader: SpoolReader) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(chunk) = read(&mut reader).await {
            all.extend_from_slice(&chunk.unwrap());
        }
        all
    }

    /// Chunks that differ, 64 KiB each.
    fn chunks(count: usize) -> Vec<Bytes> {
        (0..count).map(|index| Bytes::from(vec![index as u8; 64 * 1024])).collect()
    }

    #[tokio::test]
    async fn what_memory_does_not_hold_goes_through_a_file_in_order() {
        let (writer, reader) = spool(VecDeque::new(), None);
        let chunks = chunks(100);
        for chunk in &chunks {
            writer.write(chunk.clone()).await;
        }
        assert_eq!(writer.0.borrow().size, MEMORY);
        writer.end(Ok(()));
        assert!(read_all(reader).await == chunks.concat());
    }

    #[tokio::test]
    async fn a_reader_that_keeps_up_gets_the_same() {
        let (writer, reader) = spool(VecDeque::new(), None);
        let chunks = chunks(100);
        let write = async {
            for chunk in &chunks {
                writer.write(chunk.clone()).await;
            }
            writer.end(Ok(()));
        };
        let (all, ()) = tokio::join!(read_all(reader), write);
        assert!(all == chunks.concat());
    }

    #[tokio::test]
    async fn without_a_disk_the_script_waits_for_the_client() {
        let (writer, reader) = spool(VecDeque::new(), None);
        writer.0.borrow_mut().file.refuse(&io::Error::other("no space left on device"));
        let chunks = chunks(100);
        let write = async {
            for chunk in &chunks {
                writer.write(chunk.clone()).await;
                assert!(writer.0.borrow().size <= MEMORY + chunk.len());
            }
            writer.end(Ok(()));
        };
        let (all, ()) = tokio::join!(read_all(reader), write);
        assert!(all == chunks.concat());
    }

    #[tokio::test]
    async fn an_answer_that_broke_off_ends_with_an_error() {
        let begun = VecDeque::from([Bytes::from("begun")]);
        let (_writer, mut reader) = spool(begun, Some(Err(io::Error::other("broken"))));
        assert_eq!(read(&mut reader).await.unwrap().unwrap(), "begun");
        assert!(read(&mut reader).await.unwrap().is_err());
    }
}
