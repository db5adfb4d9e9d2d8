//! What a finished span says.

use crate::ids::{SpanId, TraceId};
use std::borrow::Cow;
use std::time::SystemTime;

/// Bytes of a text: what a client can write of any length is cut.
const LONGEST_TEXT: usize = 1024;

/// One step of what has been done for a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    /// `None`: the trace begins with it.
    pub parent: Option<SpanId>,
    /// Whether that is of another process.
    pub parent_is_remote: bool,
    /// What other systems keep with the trace (`tracestate`).
    pub state: String,
    pub kind: SpanKind,
    pub name: String,
    pub began: SystemTime,
    /// Not before it began.
    pub ended: SystemTime,
    pub attributes: Vec<Attribute>,
    /// Why it has failed; `None`: it has not.
    pub failure: Option<String>,
}

/// Which side of a call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// A request that came.
    Server,
    /// One that was sent.
    Client,
}

/// A fact about a span, by the names of OpenTelemetry's semantic conventions where they have one.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    pub name: Cow<'static, str>,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Number(i64),
}

/// Where finished spans go. Called by threads that must not wait: it takes a span or drops it, at once.
pub trait SpanSink: Send + Sync {
    fn finished(&self, span: Span);
}

impl Attribute {
    /// Bytes that are not UTF-8 become U+FFFD.
    pub fn text(name: impl Into<Cow<'static, str>>, value: &[u8]) -> Self {
        let cut = &value[..value.len().min(LONGEST_TEXT)];
        Self { name: name.into(), value: Value::Text(String::from_utf8_lossy(cut).into_owned()) }
    }

    pub fn number(name: impl Into<Cow<'static, str>>, value: impl Into<i64>) -> Self {
        Self { name: name.into(), value: Value::Number(value.into()) }
    }
}
