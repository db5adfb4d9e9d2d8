//! What memory had no room for: a file without a name, written at its end and read from its beginning.

use crate::quota::Share;
use crate::settings::Spools;
use bytes::{Bytes, BytesMut};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn_blocking};

/// Bytes that are read from the file at a time, and how many when others have used up the memory.
const READ_SIZE: u64 = 256 * 1024;
const SMALL_READ_SIZE: u64 = 16 * 1024;

/// The bytes from `read` to `written` are there.
///
/// The disk is touched on tokio's threads for what blocks, never on the I/O thread: a write goes to the page cache
/// mostly, but the kernel makes it wait for the disk, for seconds if need be, when too much of that is unwritten.
///
/// Buffers are made and dropped on the I/O thread all the same: made on one thread and dropped on another, they take the
/// allocator several times the memory (243 MiB at the worst instead of 37, of a gigabyte that goes through).
pub(crate) struct Overflow {
    spools: Arc<Spools>,
    file: Option<Arc<File>>,
    read: u64,
    written: u64,
    /// The file's size, as part of that of all files.
    share: Share,
    /// What was read last: it may still be on its way to its reader.
    memory: Share,
}

/// Room in the file for what is to be written next.
pub(crate) struct Room {
    spools: Arc<Spools>,
    /// `None`: the file is to be made.
    file: Option<Arc<File>>,
    position: u64,
}

/// What was written of it.
pub(crate) struct Written {
    file: Arc<File>,
    end: u64,
}

impl Overflow {
    pub fn new(spools: Arc<Spools>) -> Self {
        let (share, memory) = (spools.all_files.share(), spools.all_memory.share());
        Self { spools, file: None, read: 0, written: 0, share, memory }
    }

    pub fn is_empty(&self) -> bool {
        self.read == self.written
    }

    /// Room for as many bytes, unless the bounds forbid it.
    pub fn room(&mut self, bytes: u64) -> Option<Room> {
        if self.is_empty() {
            // Nothing is being read either: the file can be used from its beginning again.
            (self.read, self.written) = (0, 0);
        }
        let end = self.written + bytes;
        if end > self.spools.file || !self.share.take(end.saturating_sub(self.share.held())) {
            return None;
        }
        Some(Room { spools: Arc::clone(&self.spools), file: self.file.clone(), position: self.written })
    }

    pub fn wrote(&mut self, written: Written) {
        self.file = Some(written.file);
        self.written = written.end;
    }

    /// What is written, in a file that takes no more.
    #[cfg(test)]
    pub fn read_only(&self) -> File {
        use std::os::fd::AsRawFd;
        let file = self.file.as_ref().expect("it is used");
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("it can be opened again")
    }

    #[cfg(test)]
    pub fn replace_file(&mut self, file: File) {
        self.file = Some(Arc::new(file));
    }

    /// Begins to read the next bytes; `None` if there are none.
    pub fn start_read(&mut self) -> Option<JoinHandle<io::Result<Bytes>>> {
        self.memory.give_back(self.memory.held());
        let file = Arc::clone(self.file.as_ref()?);
        let (size, position) = (self.read_size(), self.read);
        (size > 0).then(|| {
            let bytes = BytesMut::zeroed(size as usize);
            spawn_blocking(move || read_at(&file, position, bytes))
        })
    }

    fn read_size(&mut self) -> u64 {
        let left = self.written - self.read;
        let size = left.min(READ_SIZE);
        if self.memory.take(size) {
            return size;
        }
        let small = left.min(SMALL_READ_SIZE);
        self.memory.take_anyway(small);
        small
    }

    pub fn was_read(&mut self, bytes: usize) {
        self.read += bytes as u64;
    }
}

impl Room {
    /// Writes what the room was for.
    pub async fn write(self, bytes: &Bytes) -> io::Result<Written> {
        let bytes = bytes.clone();
        spawn_blocking(move || self.write_blocking(&bytes)).await.unwrap_or_else(|error| Err(error.into()))
    }

    fn write_blocking(self, bytes: &[u8]) -> io::Result<Written> {
        let file = match self.file {
            Some(file) => file,
            None => Arc::new(self.spools.create_file()?),
        };
        file.write_all_at(bytes, self.position)?;
        Ok(Written { file, end: self.position + bytes.len() as u64 })
    }
}

/// Fills `bytes`.
fn read_at(file: &File, position: u64, mut bytes: BytesMut) -> io::Result<Bytes> {
    file.read_exact_at(&mut bytes, position)?;
    Ok(bytes.freeze())
}
