//! Reading stored responses again.

use super::Shared;
use super::directory::Name;
use super::file_body::{FileBody, Spilling};
use super::format::{self, Heading, Known};
use crate::key::Key;
use crate::room::Room;
use crate::rope::Gathering;
use crate::selection::Selection;
use crate::stored::{Stored, StoredBody};
use bytes::Bytes;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;

/// A disk that takes longer is as none: whoever makes the response is asked.
const PATIENCE: Duration = Duration::from_secs(1);
const PIECE: usize = 64 * 1024;

/// A response that is on the disk, and the right to read it.
pub struct Located {
    shared: Arc<Shared>,
    number: u64,
    pub(crate) key: Key,
    selection: Selection,
    /// So many there were when it was found.
    pub(crate) purges: u64,
    /// Kept until it has been read, however long the disk takes.
    _place: OwnedSemaphorePermit,
}

impl Located {
    /// `None`: too many are being read.
    pub(super) fn new(
        shared: &Arc<Shared>,
        key: &Key,
        (number, selection): (u64, Selection),
        purges: u64,
    ) -> Option<Self> {
        let place = Arc::clone(&shared.reads).try_acquire_owned().ok()?;
        Some(Self { shared: Arc::clone(shared), number, key: key.clone(), selection, purges, _place: place })
    }

    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What the response is selected by.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Reads it: into memory if it is small and there is room, and else its head. `None`: it is not there, or not whole. Blocks.
    fn read(&self, room: &Arc<Room>) -> Option<Stored> {
        match self.try_read(room) {
            Ok(stored) => Some(stored),
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    fn try_read(&self, room: &Arc<Room>) -> io::Result<Stored> {
        let directory = self.shared.directory().ok_or(ErrorKind::NotFound)?;
        let file = directory.read(self.number)?;
        let (heading, known) = format::read(&file)?;
        let body = match heading.body <= self.shared.memory_object {
            true => into_memory(file, &heading, room)?,
            false => StoredBody::File(FileBody::of(file, heading.body, heading.body_sum)),
        };
        let (key, stored) = Known::with(known, body).ok_or_else(format::torn)?;
        match key == self.key && stored.selection == self.selection {
            true => Ok(stored),
            false => Err(format::torn()),
        }
    }

    fn failed(&self, error: &io::Error) {
        let is_of_the_file =
            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData | ErrorKind::UnexpectedEof);
        if is_of_the_file {
            tracing::debug!(%error, url = self.key.url(), "a stored response is not on the disk any more");
            self.shared.counts.errors.add_one();
        } else {
            self.shared.failed(error, "cannot be read");
        }
        // A server that is short of descriptors will have some again.
        let is_of_the_server = matches!(error.raw_os_error(), Some(code) if is_shortage(code));
        if !is_of_the_server && self.shared.index().remove(self.number).is_some() {
            self.shared.remove([Name::Whole(self.number)]);
        }
    }
}

/// Reads a response on a thread that may wait for the disk; no longer than anybody has patience.
pub(crate) async fn load(located: Located, room: Arc<Room>) -> Option<Stored> {
    let reading = spawn_blocking(move || located.read(&room));
    tokio::time::timeout(PATIENCE, reading).await.ok()?.ok()?
}

/// Appends to a body that is too large for memory, or begins with it. `None`: it is not to be stored.
pub(crate) async fn spill(
    shared: Arc<Shared>,
    spilling: Option<Spilling>,
    pieces: Vec<Bytes>,
) -> Option<Spilling> {
    let writing = spawn_blocking(move || {
        let mut spilling = spilling.map_or_else(|| shared.spill(), Ok)?;
        spilling.append(&pieces).map(|()| spilling)
    });
    let spilled = writing.await.ok()?;
    spilled.inspect_err(|error| tracing::debug!(%error, "a large response is not stored")).ok()
}

/// Checks the sum too. Where memory has no room, the file stands for it.
fn into_memory(file: File, heading: &Heading, room: &Arc<Room>) -> io::Result<StoredBody> {
    let (mut gathering, mut sum) = (Some(Gathering::in_room(room)), crc32fast::Hasher::new());
    let mut buffer = vec![0; PIECE.min(heading.body as usize)];
    let mut read = 0;
    while read < heading.body {
        let piece = &mut buffer[..PIECE.min((heading.body - read) as usize)];
        file.read_exact_at(piece, format::BODY + read)?;
        sum.update(piece);
        read += piece.len() as u64;
        gathering = gathering.and_then(|mut gathering| gathering.push(piece).is_ok().then_some(gathering));
    }
    if sum.finalize() != heading.body_sum {
        return Err(format::torn());
    }
    Ok(match gathering {
        Some(gathering) => StoredBody::Memory(gathering.finish()),
        None => StoredBody::File(FileBody::of(file, heading.body, heading.body_sum)),
    })
}

fn is_shortage(code: i32) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM].into_iter().any(|errno| errno.raw_os_error() == code)
}
