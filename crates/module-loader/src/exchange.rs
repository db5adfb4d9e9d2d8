//! What a request and its answer are to the process that runs the module.

use crate::fields::Fields;
use std::sync::Arc;

/// What is known of a request before its body: variables by their names of CGI (RFC 3875). Those that must be there:
/// `REQUEST_METHOD`; `PATH_INFO`, the path as routes see it, decoded; `REQUEST_URI`; `QUERY_STRING`.
pub trait Head {
    /// The value of a variable, those of the site's `env` among them.
    fn variable(&self, name: &[u8]) -> Option<&[u8]>;
    /// The variables of the request, in order: `cursor` begins with 0, and is anything when a module lies.
    fn next_variable(&self, cursor: &mut usize) -> Option<(&[u8], &[u8])>;
    /// Bytes; `None` if it is not known beforehand.
    fn body_length(&self) -> Option<u64>;
}

/// The body of a request and the way of its answer.
pub trait Exchange {
    /// Waits for the next part of the body: bytes that were read, 0 at its end.
    fn read_body(&mut self, buffer: &mut [u8]) -> Result<usize, Gone>;
    /// Whether nobody waits for the answer any more.
    fn is_gone(&self) -> bool;
    /// Once, before anything else of the answer. Nothing has to be seen by the client before `publish`.
    fn head(&mut self, status: u16, fields: &Fields) -> Result<(), Gone>;
    /// A part of the body. Waits while the client is slow.
    fn body(&mut self, bytes: &[u8]) -> Result<(), Gone>;
    /// Shows the client what was written.
    fn publish(&mut self);
    /// At most once, after the body.
    fn trailers(&mut self, fields: &Fields) -> Result<(), Gone>;
    /// The last call, followed by `publish`.
    fn end(&mut self, completion: Completion) -> Result<(), Gone>;
    /// A line about this request for the log.
    fn log(&mut self, level: Level, message: &str);
}

/// The client has left, or the server has given the request up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    Complete,
    /// The client must not take what it has for the whole.
    BrokenOff,
}

/// How much a line of the log matters; the numbers are syslog's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Error = 3,
    Warning = 4,
    Info = 6,
    Debug = 7,
}

impl Level {
    /// The nearest to what a module said.
    pub(crate) fn nearest(number: i32) -> Self {
        match number {
            ..=3 => Self::Error,
            4 => Self::Warning,
            5 | 6 => Self::Info,
            7.. => Self::Debug,
        }
    }
}

/// Where lines go that belong to no request, from any thread.
pub type LogSink = Arc<dyn Fn(Level, &str) + Send + Sync>;
