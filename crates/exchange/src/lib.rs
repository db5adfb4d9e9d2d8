//! What a request and a response are, whoever carries or answers them.
#![forbid(unsafe_code)]
