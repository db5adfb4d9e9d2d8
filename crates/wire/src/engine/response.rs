//! How a thread of an engine writes the response to its request.

use super::EngineThread;
use crate::frame::{self, Completion, HeadKind};
use crate::log_line;
use crate::pipe::{self, ClientGone};
use crate::ring::Writer;

/// Bytes of a response that may be written before they have to be published.
const MAX_BODY_FRAME: usize = 32 * 1024;
/// Bytes of a head's frame beside its fields: what is fixed, and the reason phrase.
const HEAD_EXTRA: usize = 600;
/// Bytes that a field takes beside its name and value.
pub const FIELD: usize = 8;

impl EngineThread {
    /// Writes a response head. Nothing is seen by the server before [`EngineThread::publish`], unless it does
    /// not fit. The fields are no larger than [`Self::max_fields`] says.
    pub fn head<'a>(
        &mut self,
        kind: HeadKind,
        status: u16,
        reason: &[u8],
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<(), ClientGone> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        frame::encode_head(&mut scratch, kind, status, reason, fields);
        let result = self.put_frame(&scratch);
        self.scratch = scratch;
        result
    }

    /// Bytes that names and values of a head or of trailers may have together, each field with [`FIELD`] beside that.
    pub fn max_fields(&self) -> usize {
        self.engine.region.geometry().frame_capacity as usize - HEAD_EXTRA
    }

    /// A frame of this size waits until the server has read it.
    fn half_ring(&self) -> usize {
        self.engine.region.geometry().response_capacity as usize / 2
    }

    /// Writes a part of the response body; sleeps while the ring is full.
    pub fn body(&mut self, mut bytes: &[u8]) -> Result<(), ClientGone> {
        let largest = MAX_BODY_FRAME.min(self.half_ring());
        while !bytes.is_empty() {
            let wanted = bytes.len().min(largest);
            // A whole frame, or half of a large one: no crumbs when the reader is just behind.
            let room = self.room(frame::HEADER + wanted.min(largest / 2))?;
            let (part, rest) = bytes.split_at(wanted.min(room - frame::HEADER));
            let writer = self.response_writer();
            writer.put(&frame::body_header(part.len()));
            writer.put(part);
            bytes = rest;
        }
        Ok(())
    }

    /// Writes the fields behind the body, once.
    pub fn trailers<'a>(
        &mut self,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<(), ClientGone> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        frame::encode_trailers(&mut scratch, fields);
        let result = self.put_frame(&scratch);
        self.scratch = scratch;
        result
    }

    /// Writes the end of the response.
    pub fn end(&mut self, completion: Completion) -> Result<(), ClientGone> {
        let timing = self.timing();
        self.put_frame(&frame::end_frame(completion, &timing))?;
        self.ended = true;
        Ok(())
    }

    /// Writes a line for the log. What does not fit is cut, with a mark.
    pub fn log(&mut self, level: u8, message: &[u8], context: &[u8]) -> Result<(), ClientGone> {
        let most = (self.max_fields() - frame::LOG_OVERHEAD) / 2;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let (message, context) = (log_line::text(message, most), log_line::object(context, most));
        frame::encode_log(&mut scratch, level, &message, &context);
        let result = self.put_frame(&scratch);
        self.scratch = scratch;
        result
    }

    /// Shows the server what was written.
    pub fn publish(&self) {
        self.response_writer().publish();
        self.published.set(self.written.get());
        self.engine.mark(self.slot().0);
    }

    fn put_frame(&mut self, bytes: &[u8]) -> Result<(), ClientGone> {
        let most = frame::HEADER + self.engine.region.geometry().frame_capacity as usize;
        assert!(bytes.len() <= most, "the server takes no frame of {} bytes", bytes.len());
        if bytes.len() > self.half_ring() {
            return self.put_parts(bytes);
        }
        self.room(bytes.len())?;
        self.response_writer().put(bytes);
        Ok(())
    }

    fn put_parts(&self, frame: &[u8]) -> Result<(), ClientGone> {
        for part in frame.chunks(self.half_ring() - frame::HEADER) {
            self.room(frame::HEADER + part.len())?;
            let writer = self.response_writer();
            writer.put(&frame::part_header(part.len()));
            writer.put(part);
        }
        Ok(())
    }

    /// Waits until `wanted` bytes can be written; returns how many can.
    fn room(&self, wanted: usize) -> Result<usize, ClientGone> {
        pipe::wait_for_room(self.slot().1, &self.response_writer(), wanted, || self.publish())
    }

    fn response_writer(&self) -> Writer<'_> {
        let (index, slot) = self.slot();
        Writer {
            tail: &slot.response_tail,
            head: &slot.response_head,
            area: self.engine.region.response_area(index),
            written: &self.written,
        }
    }
}
