//! What the requests of a connection know of its handshake.

use super::Service;
use regent_exchange::{ClientCertificate, Connection};
use regent_tls::ConnectionFacts;
use std::sync::Arc;

pub(super) fn secured<S: Service>(connection: Connection, facts: &ConnectionFacts) -> S::Accepted {
    let tls = regent_exchange::Tls {
        protocol: facts.protocol,
        cipher: facts.cipher,
        server_name: facts.server_name.as_deref().map(Into::into),
        cipher_suite: facts.cipher_suite,
        alpn: String::from_utf8_lossy(facts.alpn.as_deref().unwrap_or_default()).into(),
        is_resumed: facts.resumed,
        client: facts.client.as_ref().map(|client| Box::new(client_certificate(client))),
    };
    S::accept(Connection { tls: Some(Arc::new(tls)), ..connection }, Some(facts.client_auth))
}

fn client_certificate(client: &regent_tls::ClientCertificate) -> ClientCertificate {
    let regent_tls::ClientCertificate {
        der,
        subject,
        issuer,
        serial,
        public_key,
        dns_names,
        emails,
        ips,
        uris,
    } = client.clone();
    ClientCertificate { der, subject, issuer, serial, public_key, dns_names, emails, ips, uris }
}
