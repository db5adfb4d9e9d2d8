//! What waits for a slower reader: in memory first, then in a file without a name.
//!
//! An answer waits here for its client, so that the script can end and its thread serve others; a request's body waits
//! here until it is complete, so that no thread waits for the client. What is beyond the bounds goes at the speed of the
//! slower side, as if there were no spool. So does an answer that the disk has no room for; a body that is being read ahead is given up then, and
//! so is what cannot be read back.
#![forbid(unsafe_code)]

mod block;
mod overflow;
mod quota;
mod settings;

pub use block::Block;
pub use quota::{Quota, Share};
pub use settings::{SpoolError, Spools};

use bytes::Bytes;
use overflow::{Overflow, Room};
use settings::Failed;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::task::JoinHandle;

/// Bytes that a chunk takes beside its content: its entry, and the allocator's. Without them a million chunks of one
/// byte would pass for a megabyte.
const CHUNK_COST: u64 = 64;

/// The end that is written to.
pub struct SpoolWriter(Rc<RefCell<Spool>>);

/// The end that is read.
pub struct SpoolReader {
    spool: Rc<RefCell<Spool>>,
    /// A part of the file on its way.
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

/// What became of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub enum Offered {
    Taken,
    /// The bounds are reached; here it is again.
    Full(Bytes),
}

struct Spool {
    spools: Arc<Spools>,
    chunks: VecDeque<Bytes>,
    /// What `chunks` take of the memory of all spools.
    memory: Share,
    /// What follows `chunks`.
    file: Overflow,
    end: Option<io::Result<()>>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Chunks and parts of the file that the reader has taken.
    taken: u64,
    fate: Fate,
}

/// What becomes of what is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    /// Nobody will read it.
    Discarded,
}

/// Where a chunk goes.
enum Place {
    Memory,
    File(Room),
    /// The bounds forbid it.
    Nowhere,
    Discarded,
}

/// A spool that holds these chunks.
pub fn spool(spools: &Arc<Spools>, chunks: VecDeque<Bytes>) -> (SpoolWriter, SpoolReader) {
    let mut memory = spools.all_memory.share();
    memory.take_anyway(chunks.iter().map(cost).sum());
    let spool = Spool {
        spools: Arc::clone(spools),
        chunks,
        memory,
        file: Overflow::new(Arc::clone(spools)),
        end: None,
        reader: None,
        writer: None,
        taken: 0,
        fate: Fate::Kept,
    };
    let spool = Rc::new(RefCell::new(spool));
    (SpoolWriter(Rc::clone(&spool)), SpoolReader { spool, reading: None })
}

impl SpoolWriter {
    /// Takes a chunk if the bounds allow it. An error is the disk's, and logged.
    pub async fn offer(&self, chunk: Bytes) -> io::Result<Offered> {
        let place = self.0.borrow_mut().place_for(&chunk);
        match place {
            Place::Memory => self.0.borrow_mut().push(chunk),
            Place::File(room) => {
                let result = self.write_to_file(room, &chunk).await;
                result.inspect_err(|error| self.0.borrow().spools.note_failure(error, Failed::Request))?;
            }
            Place::Nowhere => return Ok(Offered::Full(chunk)),
            Place::Discarded => {}
        }
        Ok(Offered::Taken)
    }

    /// Takes a chunk; waits for the reader while the bounds forbid it, or while the disk does not take it.
    pub async fn write(&self, chunk: Bytes) {
        loop {
            // While the disk is busy the reader may take all there is.
            let before = self.0.borrow().taken;
            let place = self.0.borrow_mut().place_for(&chunk);
            match place {
                Place::Memory => return self.0.borrow_mut().push(chunk),
                Place::Discarded => return,
                Place::File(room) => match self.write_to_file(room, &chunk).await {
                    Ok(()) => return,
                    Err(error) => self.0.borrow().spools.note_failure(&error, Failed::Wait),
                },
                Place::Nowhere => {}
            }
            if self.0.borrow().is_read_empty() {
                return self.0.borrow_mut().push_anyway(chunk);
            }
            poll_fn(|context| self.0.borrow_mut().poll_taken_since(before, context)).await;
        }
    }

    /// Nothing follows.
    pub fn end(&self, end: io::Result<()>) {
        let mut spool = self.0.borrow_mut();
        spool.end = Some(end);
        spool.wake_reader();
    }

    async fn write_to_file(&self, room: Room, chunk: &Bytes) -> io::Result<()> {
        let written = room.write(chunk).await?;
        let mut spool = self.0.borrow_mut();
        // Of a spool that was discarded meanwhile the file is gone, and its share of all files given back.
        if spool.fate == Fate::Kept {
            spool.file.wrote(written);
            spool.wake_reader();
        }
        Ok(())
    }
}

impl SpoolReader {
    /// The next bytes; `None` at the end. An error is the disk's, and logged, or the one that the writer has ended with.
    pub fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if let Some(reading) = &mut self.reading {
                let result =
                    ready!(Pin::new(reading).poll(context)).unwrap_or_else(|error| Err(error.into()));
                self.reading = None;
                return Poll::Ready(Some(self.spool.borrow_mut().was_read(result)));
            }
            let mut spool = self.spool.borrow_mut();
            if let Some(chunk) = spool.pop() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            self.reading = spool.file.start_read();
            if self.reading.is_some() {
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

    /// Reads no more: the writer goes on, at its own speed, and what it writes is dropped.
    pub fn discard_rest(&self) {
        self.spool.borrow_mut().discard();
    }
}

impl Spool {
    fn discard(&mut self) {
        self.fate = Fate::Discarded;
        while self.pop().is_some() {}
        self.file = Overflow::new(Arc::clone(&self.spools));
        // A writer that waits has its room.
        self.note_taken();
    }

    fn place_for(&mut self, chunk: &Bytes) -> Place {
        if self.fate == Fate::Discarded {
            return Place::Discarded;
        }
        // What comes after bytes in the file has to go there too.
        if self.file.is_empty() && self.take_memory(cost(chunk)) {
            return Place::Memory;
        }
        match self.file.room(chunk.len() as u64) {
            Some(room) => Place::File(room),
            // With bounds of zero, or when others have used up both, things still move.
            None if self.is_read_empty() => {
                self.memory.take_anyway(cost(chunk));
                Place::Memory
            }
            None => Place::Nowhere,
        }
    }

    /// Whether the reader has nothing to take.
    fn is_read_empty(&self) -> bool {
        self.chunks.is_empty() && self.file.is_empty()
    }

    fn push_anyway(&mut self, chunk: Bytes) {
        if self.fate == Fate::Kept {
            self.memory.take_anyway(cost(&chunk));
            self.push(chunk);
        }
    }

    fn take_memory(&mut self, bytes: u64) -> bool {
        self.memory.held() < self.spools.memory && self.memory.take(bytes)
    }

    fn push(&mut self, chunk: Bytes) {
        self.chunks.push_back(chunk);
        self.wake_reader();
    }

    fn pop(&mut self) -> Option<Bytes> {
        let chunk = self.chunks.pop_front()?;
        self.memory.give_back(cost(&chunk));
        self.note_taken();
        Some(chunk)
    }

    /// A part of the file has come, or not.
    fn was_read(&mut self, result: io::Result<Bytes>) -> io::Result<Bytes> {
        match &result {
            Ok(bytes) => self.file.was_read(bytes.len()),
            Err(error) => self.spools.note_failure(error, Failed::Request),
        }
        self.note_taken();
        result
    }

    fn poll_taken_since(&mut self, before: u64, context: &mut Context<'_>) -> Poll<()> {
        if self.taken != before {
            return Poll::Ready(());
        }
        self.writer = Some(context.waker().clone());
        Poll::Pending
    }

    fn note_taken(&mut self) {
        self.taken += 1;
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

fn cost(chunk: &Bytes) -> u64 {
    chunk.len() as u64 + CHUNK_COST
}

#[cfg(test)]
mod tests;
