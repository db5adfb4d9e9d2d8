//! What rustls is told.

use crate::client_auth::Verification;
use crate::clock::{Clock, RustlsClock};
use crate::tickets::Ticketer;
use crate::{Error, Policy, crypto};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use std::sync::Arc;

/// With tickets there is nothing to remember for a client, so there is no store of sessions that could overflow.
pub(crate) fn build(
    policy: &Policy,
    client_auth: Option<&Verification>,
    ticketer: Option<Arc<Ticketer>>,
    certificates: Arc<dyn ResolvesServerCert>,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<ServerConfig>, Error> {
    let provider = CryptoProvider {
        cipher_suites: policy.cipher_suites(),
        kx_groups: policy.key_exchange_groups(),
        ..(*crypto::provider()).clone()
    };
    let time = Arc::new(RustlsClock(Arc::clone(clock)));
    let verifier =
        client_auth.map_or_else(WebPkiClientVerifier::no_client_auth, |auth| Arc::clone(&auth.verifier));
    let mut config = ServerConfig::builder_with_details(Arc::new(provider), time)
        .with_protocol_versions(&policy.versions())
        .map_err(|error| Error::Policy { reason: error.to_string() })?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(certificates);
    config.alpn_protocols = policy.alpn.iter().map(|name| name.clone().into_bytes()).collect();
    // The order of Caddy's `ciphers` is one of preference; without it, a client knows best what its CPU is good at.
    config.ignore_client_order = !policy.ciphers.is_empty();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    // Browsers that speak HTTP/2 open one connection; each further ticket is a write more.
    config.send_tls13_tickets = usize::from(ticketer.is_some());
    if let Some(ticketer) = ticketer {
        config.ticketer = ticketer;
    }
    Ok(Arc::new(config))
}
