//! Bodies in files: of stored responses, and on their way.

use super::Shared;
use super::directory::{Directory, Name};
use super::format;
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::OwnedSemaphorePermit;

/// Room on the disk is taken in steps of so many bytes.
const STEP: u64 = 1 << 20;

/// The body of a stored response. It can be read as long as this is there, also when the response has gone.
#[derive(Debug, Clone)]
pub struct FileBody {
    fd: Arc<OwnedFd>,
    len: u64,
    pub(super) sum: u32,
    /// What is to become a whole file, if it is not one yet.
    pub(super) begun: Option<Arc<Begun>>,
}

/// A body that is too large for memory, on its way into a file.
pub struct Spilling {
    begun: Begun,
    file: File,
    sum: crc32fast::Hasher,
    len: u64,
    most: u64,
    _place: OwnedSemaphorePermit,
}

/// A file that is removed unless it is kept.
#[derive(Debug)]
pub(super) struct Begun {
    shared: Arc<Shared>,
    directory: Arc<Directory>,
    number: u64,
    reserved: u64,
    is_kept: AtomicBool,
}

impl FileBody {
    pub(super) fn of(file: File, len: u64, sum: u32) -> Self {
        Self { fd: Arc::new(file.into()), len, sum, begun: None }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// Where in the file a part of the body begins.
    pub fn offset(&self, start: u64) -> u64 {
        format::BODY + start
    }
}

impl Spilling {
    pub(super) fn begin(shared: &Arc<Shared>, place: OwnedSemaphorePermit) -> io::Result<Self> {
        let directory = shared.directory().ok_or_else(|| io::Error::other("the disk is not in use"))?;
        let number = shared.next_number();
        let file = directory.create(number)?;
        let begun = Begun {
            shared: Arc::clone(shared),
            directory,
            number,
            reserved: 0,
            is_kept: AtomicBool::new(false),
        };
        let (sum, most) = (crc32fast::Hasher::new(), shared.options.object);
        Ok(Self { begun, file, sum, len: 0, most, _place: place })
    }

    /// Blocks. An error: it is larger than the largest body on the disk may be, or there is no room, or the disk fails.
    pub(super) fn append(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        for piece in pieces {
            self.begun.reserve(self.len + piece.len() as u64, self.most)?;
            self.file.write_all_at(piece, format::BODY + self.len)?;
            self.sum.update(piece);
            self.len += piece.len() as u64;
        }
        Ok(())
    }

    /// All of it is there.
    pub fn finish(self) -> FileBody {
        let begun = Some(Arc::new(self.begun));
        FileBody { fd: Arc::new(self.file.into()), len: self.len, sum: self.sum.finalize(), begun }
    }
}

impl Begun {
    fn reserve(&mut self, len: u64, most: u64) -> io::Result<()> {
        if len > most {
            return Err(io::Error::other("the body is larger than the largest that is stored"));
        }
        while self.reserved < len {
            if !self.shared.begin(STEP) {
                return Err(io::Error::other("there is no room for it"));
            }
            self.reserved += STEP;
        }
        Ok(())
    }

    /// `None`: it has been kept already.
    pub(super) fn keep(&self) -> Option<(&Directory, u64)> {
        let was_kept = self.is_kept.swap(true, Ordering::Relaxed);
        (!was_kept).then(|| {
            self.shared.index().end(self.reserved);
            (&*self.directory, self.number)
        })
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !*self.is_kept.get_mut() {
            self.shared.index().end(self.reserved);
            self.shared.remove([Name::Begun(self.number)]);
        }
    }
}
