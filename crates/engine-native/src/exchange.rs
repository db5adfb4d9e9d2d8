//! A request in the shared memory, as modules see it.

use regent_module_loader::{Completion, Exchange, Fields, Gone, Head, Level};
use regent_wire::{self as wire, ClientGone, EngineThread, FIELD, HeadKind};

/// A request's head apart from its slot, so that it can be read while the answer is written. Used again for the next.
#[derive(Default)]
pub struct CopiedHead(Vec<u8>);

/// A head, to be asked.
pub struct ReadHead<'a>(wire::Head<'a>);

/// The request that a thread runs.
pub struct SlotExchange<'a> {
    thread: &'a mut EngineThread,
}

impl CopiedHead {
    pub fn copy(&mut self, head: &wire::Head<'_>) {
        head.copy_to(&mut self.0);
    }

    pub fn read(&self) -> ReadHead<'_> {
        ReadHead(wire::Head::parse(&self.0).expect("invariant: a copy has the prefix of a head"))
    }
}

impl Head for ReadHead<'_> {
    fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        self.0.value(name)
    }

    fn next_variable(&self, cursor: &mut usize) -> Option<(&[u8], &[u8])> {
        self.0.next_of_request(cursor)
    }

    fn body_length(&self) -> Option<u64> {
        self.0.body_length
    }
}

impl<'a> SlotExchange<'a> {
    pub fn new(thread: &'a mut EngineThread) -> Self {
        Self { thread }
    }

    fn fits(&self, fields: &Fields) -> bool {
        let size: usize = fields.iter().map(|(name, value)| name.len() + value.len() + FIELD).sum();
        size <= self.thread.max_fields()
    }
}

impl Exchange for SlotExchange<'_> {
    fn read_body(&mut self, buffer: &mut [u8]) -> Result<usize, Gone> {
        self.thread.read_body(buffer).map_err(|_| Gone)
    }

    fn is_gone(&self) -> bool {
        self.thread.client_gone()
    }

    fn head(&mut self, status: u16, fields: &Fields) -> Result<(), Gone> {
        if !self.fits(fields) {
            self.log(
                Level::Error,
                "the fields of the response are more than max_response_header allows: it is a 500",
            );
            // The handler is told by what it is told when its client leaves.
            let _ = self.thread.end(wire::Completion::Refused);
            self.thread.publish();
            return Err(Gone);
        }
        self.thread.head(HeadKind::Final, status, b"", fields.iter()).map_err(|ClientGone| Gone)
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.thread.body(bytes).map_err(|ClientGone| Gone)
    }

    fn publish(&mut self) {
        self.thread.publish();
    }

    fn trailers(&mut self, fields: &Fields) -> Result<(), Gone> {
        if !self.fits(fields) {
            self.log(Level::Error, "the trailers are more than max_response_header allows, and are left out");
            return Ok(());
        }
        self.thread.trailers(fields.iter()).map_err(|ClientGone| Gone)
    }

    fn end(&mut self, completion: Completion) -> Result<(), Gone> {
        let completion = match completion {
            Completion::Complete => wire::Completion::Complete,
            Completion::BrokenOff => wire::Completion::Truncated,
        };
        self.thread.end(completion).map_err(|ClientGone| Gone)
    }

    fn log(&mut self, level: Level, message: &str) {
        // Nobody reads the lines of a request that was given up.
        let _ = self.thread.log(level as u8, message.as_bytes(), b"");
    }
}
