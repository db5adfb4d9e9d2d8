//! How handshakes end, for the metrics.

use super::Speaker;
use regent_metrics::{HandshakeFailure, HandshakeKind, HandshakeTransport};
use regent_tls::{ConnectionFacts, HandshakeError};
use std::io;

impl<S> Speaker<'_, S> {
    pub(super) fn count_handshake(&self, transport: HandshakeTransport, facts: &ConnectionFacts) {
        let kind = if facts.resumed { HandshakeKind::Resumed } else { HandshakeKind::Full };
        self.meter.handshake_done(transport, kind);
    }

    pub(super) fn count_failure(&self, transport: HandshakeTransport, error: &io::Error) {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<HandshakeError>());
        if let Some(failure) = inner.map_or(Some(HandshakeFailure::Failed), failure) {
            self.meter.handshake_failed(transport, failure);
        }
    }
}

/// `None`: it has done what it was for.
fn failure(error: &HandshakeError) -> Option<HandshakeFailure> {
    Some(match error {
        HandshakeError::TimedOut => HandshakeFailure::Timeout,
        HandshakeError::Displaced => HandshakeFailure::Displaced,
        HandshakeError::UnknownName(_) | HandshakeError::NoName => HandshakeFailure::UnknownName,
        HandshakeError::NoCertificate(_) => HandshakeFailure::NoCertificate,
        HandshakeError::NotAllowed(_) => HandshakeFailure::NotAllowed,
        HandshakeError::PlainHttp => HandshakeFailure::PlainHttp,
        HandshakeError::Left => HandshakeFailure::ClientLeft,
        HandshakeError::Failed(_) | HandshakeError::Io(_) => HandshakeFailure::Failed,
        HandshakeError::Challenge(_) => return None,
    })
}
