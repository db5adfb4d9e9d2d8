//! Header compression (RFC 9204) without a dynamic table, which nobody is allowed here: so no field section waits for another
//! stream, and the memory of one is bounded by its own length.

mod decoder;
mod encoder;
mod huffman;
mod instructions;
mod integer;
mod static_table;

pub(super) use decoder::{Field, Malformed, decode};
pub(super) use encoder::{FieldSection, Line};
pub(super) use instructions::{DecoderInstructions, EncoderInstructions, Unexpected};
