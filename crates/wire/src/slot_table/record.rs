//! What the server knows of a slot by itself.

use super::ReadError;
use crate::assembly::{Assembly, NoFrame, Piece};
use crate::damage::Damage;
use crate::engine_memory::EngineMemory;
use crate::frame::Frame;
use crate::layout::BodyState;
use crate::slot::Token;
use bytes::Bytes;
use std::cell::Cell;
use std::sync::Arc;

/// What the server knows of a slot; nothing here comes from shared memory.
pub(super) struct Record<G> {
    pub generation: u32,
    pub phase: Phase,
    pub backend: Option<Arc<EngineMemory>>,
    pub pool: u32,
    pub ticket: u64,
    /// Bytes of the encoded head.
    pub head_len: u32,
    pub body: Cell<BodyState>,
    pub written: Cell<u64>,
    pub read: Cell<u64>,
    /// Frames that were fetched from the ring and not read yet.
    pub unparsed: Cell<Bytes>,
    /// What has come of a frame that comes in parts. Boxed, since few do.
    pub assembly: Cell<Option<Box<Assembly>>>,
    /// Inspections in a row that found it taken and not begun.
    pub stranded: u8,
    /// When it began to wait, in ns of the monotonic clock.
    pub submitted: u64,
    /// How long it may run, in ns; 0: without end.
    pub time_limit: u64,
    /// Until when it may be [run again](super::SlotTable::may_repeat), in ns of the monotonic clock; 0: it may not.
    pub repeat_until: Cell<u64>,
    pub is_repeated: bool,
    /// Dropped when the slot is free again.
    pub guard: Option<G>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Free,
    /// Not submitted yet: no engine knows of it.
    Filling,
    /// Waiting, running or done: somebody waits for the response.
    Held,
    /// Nobody waits for the response; the engine may still be at it.
    Orphan,
    /// The engine that ran it is dead; what it had published can still be read.
    Lost,
}

impl<G> Record<G> {
    pub(super) fn new() -> Self {
        Self {
            generation: 0,
            phase: Phase::Free,
            backend: None,
            pool: 0,
            ticket: 0,
            head_len: 0,
            body: Cell::default(),
            written: Cell::default(),
            read: Cell::default(),
            unparsed: Cell::default(),
            assembly: Cell::default(),
            stranded: 0,
            submitted: 0,
            time_limit: 0,
            repeat_until: Cell::new(0),
            is_repeated: false,
            guard: None,
        }
    }

    pub(super) fn backend(&self) -> &Arc<EngineMemory> {
        self.backend.as_ref().expect("invariant: a slot in use has a backend")
    }

    /// The frame that is whole with this piece, if one is.
    pub(super) fn assemble(&self, piece: Piece) -> Result<Option<Frame>, ReadError> {
        let assembly = self.assembly.take();
        let part = match piece {
            Piece::Frame(frame) if assembly.is_none() => return Ok(Some(frame)),
            Piece::Frame(_) => return Err(self.damaged(Damage::Frame)),
            Piece::Part(part) => part,
        };
        let most = self.backend().region().geometry().frame_capacity as usize;
        let mut assembly = assembly.unwrap_or_default();
        let frame = assembly.add(&part, most).map_err(|NoFrame| self.damaged(Damage::Frame))?;
        if frame.is_none() {
            if !assembly.is_log() {
                self.repeat_until.set(0);
            }
            self.assembly.set(Some(assembly));
        }
        Ok(frame)
    }

    /// Notes what the engine has done to its memory.
    pub(super) fn damaged(&self, damage: Damage) -> ReadError {
        self.backend().note(damage);
        ReadError::Corrupt
    }

    pub(super) fn assert_generation(&self, token: Token) {
        assert_eq!(self.generation, token.generation, "invariant: a token is used by its holder only");
    }
}
