//! Streams to streams: TLS, its certificates and their keys. A key is never seen outside of this crate.
#![forbid(unsafe_code)]
