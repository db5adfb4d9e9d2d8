//! Who made a response.

/// Who made an answer; says which of two values of a field that may be there once only is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// One of our handlers: it would not have set what `header` had set already.
    Regent,
    /// PHP or a native module.
    Engine,
    /// Another server, behind this one.
    Upstream,
}
