//! Certificates of public CAs, by ACME (RFC 8555). The protocol is instant-acme's; who orders what, when and how often is
//! decided here, after the example of certmagic, whose storage layout is used too.
//!
//! A [`Manager`] has all names. A name is served with what is stored as soon as it is known; what is missing or due is
//! ordered in the background, never in a handshake, so that no client can make the server order anything. Names on demand
//! are the exception: see [`OnDemandNames`].

mod account;
mod authority;
mod ca;
mod challenges;
mod dns;
mod error;
mod https;
mod layout;
mod limit;
mod managed;
mod manager;
mod nonces;
mod on_demand;
mod options;
mod order;
mod schedule;
mod slot;
mod stored;
mod zerossl;

#[cfg(test)]
mod tests;

pub(crate) use challenges::{ALPN, Challenges};
pub(crate) use limit::Limit;
pub(crate) use manager::Manager;
pub(crate) use on_demand::{OnDemandNames, Rules, Unready};
pub use options::{
    Acme, ChallengeKind, DnsChallenge, DnsHook, DnsProvider, DnsService, DnsUpdateServer, ExternalAccount,
    OrderLimit, TsigAlgorithm, TsigKey, ZeroSslKey,
};
pub(crate) use slot::AcmeSlot;
