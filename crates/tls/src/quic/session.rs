//! One handshake within QUIC: as quinn's own for rustls, but that the client's site is chosen by its hello.

use crate::facts::ConnectionFacts;
use crate::quic::{ALPN, QuicServer, hello};
use crate::sites::Entry;
use quinn_proto::crypto::{
    ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::AlertDescription;
use rustls::quic::{KeyChange, Secrets, ServerConnection, Version};
use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

/// A handshake, and what it leaves.
pub(super) struct QuicSession {
    server: Arc<QuicServer>,
    version: u32,
    /// Ours, as they are sent.
    parameters: Vec<u8>,
    state: State,
    next_secrets: Option<Secrets>,
}

enum State {
    /// What has come of the hello.
    Hello(Vec<u8>),
    Chosen(Box<Chosen>),
}

struct Chosen {
    connection: ServerConnection,
    entry: Arc<Entry>,
    is_done: bool,
}

impl QuicSession {
    pub fn new(server: Arc<QuicServer>, version: u32, parameters: Vec<u8>) -> Self {
        Self { server, version, parameters, state: State::Hello(Vec::new()), next_secrets: None }
    }

    fn chosen(&self) -> Option<&Chosen> {
        match &self.state {
            State::Hello(_) => None,
            State::Chosen(chosen) => Some(chosen),
        }
    }

    /// As [`Acceptor`](crate::Acceptor) does over TCP.
    fn choose(&self, server_name: Option<&str>) -> Result<Chosen, TransportError> {
        let unrecognized = || refusal(AlertDescription::UnrecognisedName, "no site has this name");
        let sites = self.server.sites.as_deref().ok_or_else(unrecognized)?;
        let found = sites.find(server_name, self.server.local).ok_or_else(unrecognized)?;
        let entry = Arc::clone(found.entry);
        // quinn waits for no certificate. Browsers come by QUIC after they have come by TCP.
        if entry.is_without_certificate() || !found.is_ready(server_name) {
            return Err(refusal(AlertDescription::UnrecognisedName, "there is no certificate yet"));
        }
        let mut config = (*found.config()).clone();
        config.alpn_protocols = vec![ALPN.to_vec()];
        // Fails for a site without TLS 1.3.
        let connection = ServerConnection::new(Arc::new(config), Version::V1, self.parameters.clone())
            .map_err(|error| refusal(AlertDescription::ProtocolVersion, &error.to_string()))?;
        Ok(Chosen { connection, entry, is_done: false })
    }
}

impl Session for QuicSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, _: Side) -> Keys {
        let keys = self.server.initial_keys(self.version, dst_cid);
        keys.expect("invariant: the session was started with this version")
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let Chosen { connection, entry, .. } = self.chosen()?;
        Some(Box::new(ConnectionFacts::of(connection, connection.server_name(), entry.class)))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.chosen().is_none_or(|chosen| chosen.connection.is_handshaking())
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        match &mut self.state {
            State::Chosen(chosen) => chosen.read(bytes, &self.server).map(|()| false),
            State::Hello(begun) => {
                begun.extend_from_slice(bytes);
                let read = hello::read(begun)
                    .map_err(|error| refusal(AlertDescription::DecodeError, &error.to_string()))?;
                let Some(accepted) = read else { return Ok(false) };
                let all = std::mem::take(begun);
                let mut chosen = Box::new(self.choose(accepted.client_hello().server_name())?);
                let result = chosen.read(&all, &self.server);
                self.state = State::Chosen(chosen);
                result.map(|()| true)
            }
        }
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let parameters = self.chosen().and_then(|chosen| chosen.connection.quic_transport_parameters());
        let Some(bytes) = parameters else { return Ok(None) };
        Ok(Some(TransportParameters::read(Side::Server, &mut Cursor::new(bytes))?))
    }

    fn write_handshake(&mut self, buffer: &mut Vec<u8>) -> Option<Keys> {
        let State::Chosen(chosen) = &mut self.state else { return None };
        let keys = match chosen.connection.write_hs(buffer)? {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.next_secrets = Some(next);
                keys
            }
        };
        let header = KeyPair::<Box<dyn HeaderKey>> {
            local: Box::new(keys.local.header),
            remote: Box::new(keys.remote.header),
        };
        let packet = KeyPair::<Box<dyn PacketKey>> {
            local: Box::new(keys.local.packet),
            remote: Box::new(keys.remote.packet),
        };
        Some(Keys { header, packet })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next_secrets.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    /// Only servers send these packets.
    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    /// Nobody here asks for it.
    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl Chosen {
    fn read(&mut self, bytes: &[u8], server: &QuicServer) -> Result<(), TransportError> {
        self.connection.read_hs(bytes).map_err(|error| {
            let alert = self.connection.alert().unwrap_or(AlertDescription::HandshakeFailure);
            refusal(alert, &error.to_string())
        })?;
        if self.is_done || self.connection.is_handshaking() {
            return Ok(());
        }
        self.is_done = true;
        match &server.sites {
            Some(sites) => sites
                .check_resumed(&self.entry, &self.connection)
                .map_err(|error| refusal(AlertDescription::BadCertificate, &error.to_string())),
            None => Ok(()),
        }
    }
}

/// RFC 9001 §4.8.
fn refusal(alert: AlertDescription, reason: &str) -> TransportError {
    TransportError { code: TransportErrorCode::crypto(alert.into()), frame: None, reason: reason.to_owned() }
}
