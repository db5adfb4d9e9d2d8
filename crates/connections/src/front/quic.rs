//! Connections of HTTP/3.

use super::{Conduct, Late, Speaker, secured};
use crate::binding::Service;
use regent_exchange::{Connection, Informational};
use regent_http::h3::{self, Arriving};
use regent_metrics::{HandshakeTransport, Protocol};
use regent_net::CoarseInstant;
use regent_tls::{ConnectionFacts, HandshakeError, quic_facts};
use std::rc::Rc;

impl<S: Service> Speaker<'_, S> {
    pub(super) async fn converse_by_quic(&self, arriving: Arriving) {
        let (remote, local) = (Some(arriving.remote()), arriving.local());
        let came = CoarseInstant::now();
        let shaken = tokio::select! {
            shaken = self.shake_hands(arriving) => shaken,
            // As over TCP.
            () = self.stop.begun_for_client_of(came, self.conditions.settings.last_request) => return,
        };
        let (connection, facts) = match shaken {
            Ok(shaken) => shaken,
            Err(error) => {
                self.count_failure(HandshakeTransport::Quic, &error);
                tracing::debug!(%error, ?remote, "a client could not be served by QUIC");
                return;
            }
        };
        self.count_handshake(HandshakeTransport::Quic, &facts);
        let accepted = secured::<S>(Connection { remote, local, tls: None }, &facts);
        let late = Late::new(&self.conditions.settings);
        self.converse_by_h3(connection, accepted, self.conduct_after_handshake(&late)).await;
    }

    async fn shake_hands(
        &self,
        arriving: Arriving,
    ) -> Result<(h3::Connection, ConnectionFacts), std::io::Error> {
        let failed = |error: h3::Failure| HandshakeError::Failed(error.to_string());
        let Some(acceptor) = &self.conditions.tls else { return Err(HandshakeError::NoName.into()) };
        let crypto = acceptor.quic(arriving.local().map(|local| local.ip()));
        let handshake = arriving.accept(crypto, &self.conditions.settings).map_err(failed)?;
        let connection = acceptor.within_limits(async { handshake.done().await.map_err(failed) }).await?;
        let facts = quic_facts(connection.handshake_data()).ok_or(HandshakeError::Left)?;
        Ok((connection, facts))
    }

    async fn converse_by_h3(&self, connection: h3::Connection, accepted: S::Accepted, conduct: Conduct<'_>) {
        let accepted = Rc::new(accepted);
        let open = self.meter.open(Protocol::H3);
        let answer = |request, head_time, client: Rc<dyn Informational>| {
            self.busy_poll.event();
            open.request();
            conduct.request_came(&*client);
            self.port.service().answer(request, head_time, &accepted, client)
        };
        let served = h3::serve(connection, conduct.settings, conduct.leave, conduct.drain, answer);
        if let Err(failure) = served.await {
            tracing::debug!(error = %failure, "an HTTP/3 connection ended with an error");
        }
    }
}
