//! An answer that is sent while it is made.

use crate::abi::{self, Api, Text};
use crate::error::{Result, check, check_io};
use std::io;

/// The body of an answer that is sent while it is made; see [`Answer::stream`](crate::Answer::stream).
///
/// Writing waits while the client is slow and the server keeps enough for it already; `flush` sends what was written.
/// Both fail when the client has gone: return that error.
pub struct Stream {
    api: &'static Api,
    raw: *mut abi::Request,
}

impl Stream {
    /// `raw` is valid as long as the stream is.
    pub(crate) fn new(api: &'static Api, raw: *mut abi::Request) -> Self {
        Self { api, raw }
    }

    /// A field behind the body, for clients that said `TE: trailers`. Its name has to be in a header field `Trailer`,
    /// unless nothing of the body was sent yet.
    ///
    /// # Errors
    /// The name or the value cannot be used, or the name was not announced.
    pub fn trailer(&mut self, name: &str, value: &str) -> Result<()> {
        // SAFETY: the request is valid as long as the stream is; what is passed in is copied at once.
        let status = unsafe {
            (self.api.add_trailer)(self.raw, Text::new(name.as_bytes()), Text::new(value.as_bytes()))
        };
        check(status, format_args!("trailer `{name}`"))
    }
}

impl io::Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: as above.
        check_io(unsafe { (self.api.write)(self.raw, bytes.as_ptr().cast(), bytes.len()) })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: as above.
        check_io(unsafe { (self.api.flush)(self.raw) })
    }
}
