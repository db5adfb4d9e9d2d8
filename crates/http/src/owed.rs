//! The length that a client was told of a body.

use std::io;

/// What is left of it; nothing is owed where nothing was told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owed(Option<u64>);

impl Owed {
    pub fn new(length: Option<u64>) -> Self {
        Self(length)
    }

    /// So many bytes more are sent. A body must not be longer than the client was told.
    pub fn take(&mut self, length: usize) -> io::Result<()> {
        if let Some(owed) = &mut self.0 {
            *owed = owed.checked_sub(length as u64).ok_or_else(|| wrong_length("more"))?;
        }
        Ok(())
    }

    /// The body has ended. Nor must it be shorter.
    pub fn check_whole(self) -> io::Result<()> {
        match self.0 {
            None | Some(0) => Ok(()),
            Some(_) => Err(wrong_length("less")),
        }
    }
}

fn wrong_length(comparison: &str) -> io::Error {
    io::Error::other(format!("a response has {comparison} bytes than its Content-Length says"))
}
