//! Where a request has left the routes for an upstream, to go on there when that has responded.

/// The route of one list that the request is at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) index: usize,
    pub(crate) groups_taken: Vec<u32>,
}

/// From the innermost list to the outermost.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Place(Vec<Frame>);

impl Place {
    /// The list around those that are known has this frame.
    pub(crate) fn is_within(&mut self, frame: Frame) {
        self.0.push(frame);
    }

    /// The frame of the outermost list that is left.
    pub(crate) fn enter(&mut self) -> Option<Frame> {
        self.0.pop()
    }
}
