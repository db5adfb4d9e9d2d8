//! Calls of instant-acme, again as long as the CA refuses its nonces.

/// A CA may refuse any nonce (RFC 8555 §6.5); each of these is three requests of instant-acme.
pub(super) const TRIES: usize = 10;

/// Evaluates a call that gives a future, and awaits it, until the CA takes the nonce.
macro_rules! with_nonces {
    ($call:expr) => {{
        let mut tries = 1;
        loop {
            match $call.await {
                Err(error)
                    if tries < $crate::acme::nonces::TRIES
                        && $crate::acme::error::is_problem(&error, "badNonce") =>
                {
                    tries += 1;
                }
                result => break result,
            }
        }
    }};
}
pub(super) use with_nonces;
