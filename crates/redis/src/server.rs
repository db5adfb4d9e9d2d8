//! Where a server is and how it is spoken to, as plain data.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A server of Redis or Valkey: the one of several that takes what is written, if there are several; or a cluster of them.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisServer {
    pub place: Place,
    pub username: Option<String>,
    pub password: Option<String>,
    /// 0 in a cluster.
    pub database: u32,
    /// For connecting, whatever has to be asked for that, and for each answer.
    pub timeout: Duration,
    /// `None`: without TLS.
    pub tls: Option<RedisTls>,
}

/// Where that server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the address, or at that one of several whose server says that it is the primary. Never empty.
    OneOf(Vec<Address>),
    /// Where Sentinels say.
    ToldBy(Sentinels),
    /// In a cluster, of which these are some. Never empty.
    Cluster(Vec<Address>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// A name, an address, or the absolute path of a Unix socket.
    pub host: String,
    pub port: u16,
}

/// Who knows which server is the primary, and chooses another one when it has died.
#[derive(Clone, PartialEq, Eq)]
pub struct Sentinels {
    /// Never empty.
    pub addresses: Vec<Address>,
    /// What they call the primary.
    pub primary: String,
    /// Their own login, which is not that of the servers.
    pub username: Option<String>,
    pub password: Option<String>,
}

/// What the certificate of Redis is verified with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisTls {
    SystemRoots,
    /// A PEM file of roots.
    Roots(PathBuf),
    /// It is not: whoever is in between can read and change everything.
    Insecure,
}

impl RedisServer {
    /// One for which nothing else is to be said.
    pub fn at(host: &str, port: u16) -> Self {
        Self {
            place: Place::OneOf(vec![Address { host: host.to_owned(), port }]),
            username: None,
            password: None,
            database: 0,
            timeout: Duration::from_secs(5),
            tls: None,
        }
    }

    /// For messages: without user and password.
    pub fn url(&self) -> String {
        let database = self.database;
        let scheme = if self.tls.is_some() { "rediss" } else { "redis" };
        match &self.place {
            Place::OneOf(addresses) => match addresses.as_slice() {
                [Address { host, .. }] if host.starts_with('/') => {
                    format!("{scheme}+unix:{host}?db={database}")
                }
                addresses => format!("{scheme}://{}/{database}", joined(addresses)),
            },
            Place::ToldBy(Sentinels { addresses, primary, .. }) => {
                format!("{scheme}+sentinel://{}/{primary}/{database}", joined(addresses))
            }
            Place::Cluster(addresses) => format!("{scheme}+cluster://{}/{database}", joined(addresses)),
        }
    }
}

impl Place {
    /// Whom the configuration names.
    pub(crate) fn addresses(&self) -> &[Address] {
        match self {
            Self::OneOf(addresses) | Self::ToldBy(Sentinels { addresses, .. }) | Self::Cluster(addresses) => {
                addresses
            }
        }
    }
}

fn joined(addresses: &[Address]) -> String {
    addresses.iter().map(Address::to_string).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        match host {
            path if path.starts_with('/') => f.write_str(path),
            host if host.contains(':') => write!(f, "[{host}]:{port}"),
            host => write!(f, "{host}:{port}"),
        }
    }
}

/// A password is for nobody to see.
impl fmt::Debug for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addresses, primary, .. } = self;
        f.debug_struct("Sentinels")
            .field("addresses", addresses)
            .field("primary", primary)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer").field("url", &self.url()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_not_who() {
        let secret = RedisServer { password: Some("letmein".into()), ..RedisServer::at("::1", 6379) };
        assert_eq!(secret.url(), "redis://[::1]:6379/0");
        assert!(!format!("{secret:?}").contains("letmein"));
        let tls =
            RedisServer { tls: Some(RedisTls::SystemRoots), database: 2, ..RedisServer::at("r.test", 1) };
        assert_eq!(tls.url(), "rediss://r.test:1/2");
        assert_eq!(RedisServer::at("/run/redis.sock", 1).url(), "redis+unix:/run/redis.sock?db=0");
    }

    #[test]
    fn a_url_names_all_addresses_and_what_sentinels_call_the_primary() {
        let address = |host: &str| Address { host: host.into(), port: 26379 };
        let addresses = vec![address("a.test"), address("::1")];
        let servers = RedisServer { place: Place::OneOf(addresses.clone()), ..RedisServer::at("unused", 1) };
        assert_eq!(servers.url(), "redis://a.test:26379,[::1]:26379/0");
        let cluster = RedisServer { place: Place::Cluster(addresses.clone()), ..servers };
        assert_eq!(cluster.url(), "redis+cluster://a.test:26379,[::1]:26379/0");
        let password = Some("letmein".to_owned());
        let sentinels = Sentinels { addresses, primary: "shop".into(), username: None, password };
        assert!(!format!("{sentinels:?}").contains("letmein"));
        let told = RedisServer { place: Place::ToldBy(sentinels), ..RedisServer::at("unused", 1) };
        assert_eq!(told.url(), "redis+sentinel://a.test:26379,[::1]:26379/shop/0");
    }
}
