//! What changes responses, whoever makes them.

pub(crate) mod encode;
pub(crate) mod header;
