//! Streams to streams: TLS, its certificates and their keys. A key is never seen outside of this crate, and neither is
//! rustls: no type of it is in the public interface.
//!
//! [`Tls::open`] takes a storage directory in the layout of Caddy. [`Tls::site_table`] makes what one listening address
//! needs of its [`Site`]s; each I/O thread makes an [`Acceptor`] of it. [`Upkeep`] renews and reloads what is
//! served. A new configuration opens a `Tls` of its own on the same directory and replaces the acceptors: connections
//! keep what they were accepted with.
#![forbid(unsafe_code)]

mod acceptor;
mod acme;
mod catalog;
mod certificate;
mod check;
mod client;
mod client_auth;
mod client_certificate;
mod clock;
mod crypto;
mod error;
mod facts;
mod handshakes;
mod hello;
mod key_type;
mod local_ca;
mod manual;
mod on_demand;
mod options;
mod outgoing;
mod permission;
mod plain_http;
mod policy;
mod quic;
mod recent;
mod redis_storage;
mod roots;
mod server_config;
mod sites;
mod slot;
mod state;
mod store;
mod stream;
mod tickets;
mod tls;
mod trust;
mod upkeep;

#[cfg(test)]
mod tests;

pub use acceptor::Acceptor;
pub use acme::{
    Acme, ChallengeKind, DnsChallenge, DnsHook, DnsProvider, DnsService, DnsUpdateServer, ExternalAccount,
    OrderLimit, TsigAlgorithm, TsigKey, ZeroSslKey,
};
pub use check::{certificate_expiry, check_authorities, check_certificate};
pub use client::{Alpn, Client, ClientOptions, ClientStream, Verification};
pub use client_auth::ClientAuthClass;
pub use client_certificate::ClientCertificate;
pub use clock::{Clock, SystemClock};
pub use crypto::keyed_digest;
pub use error::{Error, SiteErrors};
pub use facts::ConnectionFacts;
pub use handshakes::{HandshakeError, Handshakes};
pub use key_type::KeyType;
pub use local_ca::{AuthorityCertificate, LocalAuthority};
pub use options::{
    AuthorityOptions, CertificateFiles, CertificateSource, ClientAuth, ClientAuthMode, Internal, Issuance,
    KeyPairFiles, OnDemand, Options, Site, Tickets, TrustSource,
};
pub use plain_http::PlainHttp;
pub use policy::{CipherSuite, Curve, Policy, ProtocolVersion, UnknownName};
pub use quic::{QuicServer, quic_facts};
pub use redis_storage::{Compression, RedisStorage};
pub use regent_redis::{
    Address as RedisAddress, Place as RedisPlace, RedisServer, RedisTls, Sentinels as RedisSentinels,
};
pub use sites::SiteTable;
pub use state::{CertificateOrigin, CertificateState};
pub use stream::Stream;
pub use tls::Tls;
pub use trust::{TrustOutcome, TrustReport, TrustStores};
pub use upkeep::Upkeep;
