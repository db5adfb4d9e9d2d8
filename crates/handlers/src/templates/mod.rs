//! Texts of the configuration with placeholders, and what is made of them.

pub(crate) mod placeholder;
pub(crate) mod root_source;
pub(crate) mod status;
pub(crate) mod text;
