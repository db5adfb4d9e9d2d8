//! Where the admin listener listens.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The port when none is named, as Caddy's.
const DEFAULT_PORT: u16 = 2019;

/// An address of the admin listener: `localhost:2019` (the default), `:2019` for every interface, `[::1]:2019`,
/// `unix//run/regent.sock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `host` has no brackets; empty: every interface.
    Tcp { host: String, port: u16 },
    /// An absolute path.
    Unix(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no address of an admin listener; write `localhost:2019`, `:2019`, or `unix//run/regent.sock`"
)]
pub struct AddressError {
    text: String,
}

impl Address {
    /// What the `Host` of a request to it says, for clients.
    pub fn authority(&self) -> String {
        match self {
            Self::Tcp { host, port } => {
                let host = if host.is_empty() { "localhost" } else { host };
                with_port(host, *port)
            }
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl Default for Address {
    fn default() -> Self {
        Self::Tcp { host: "localhost".to_owned(), port: DEFAULT_PORT }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = || AddressError { text: text.to_owned() };
        if let Some(path) = text.strip_prefix("unix/") {
            let absolute = Path::new(path).is_absolute() && path.len() > 1;
            return absolute.then(|| Self::Unix(path.into())).ok_or_else(error);
        }
        let text = text.strip_prefix("tcp/").unwrap_or(text);
        let (host, port) = split_port(text).ok_or_else(error)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let valid = bare.is_empty() || bare.parse::<IpAddr>().is_ok() || is_name(host);
        valid.then(|| Self::Tcp { host: bare.to_ascii_lowercase(), port }).ok_or_else(error)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => f.write_str(&with_port(host, *port)),
            Self::Unix(path) => write!(f, "unix/{}", path.display()),
        }
    }
}

/// Host and port of `host`, `host:port`, `[v6]`, `[v6]:port`, `:port`.
fn split_port(text: &str) -> Option<(&str, u16)> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => Some((host, port.parse().ok()?)),
        _ if text.is_empty() => None,
        _ => Some((text, DEFAULT_PORT)),
    }
}

fn with_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn is_name(host: &str) -> bool {
    let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    host.starts_with(|c: char| c.is_ascii_alphanumeric()) && host.chars().all(of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_in_a_caddyfile() {
        let tcp = |host: &str, port| Address::Tcp { host: host.into(), port };
        for (text, expected) in [
            ("localhost:2019", tcp("localhost", 2019)),
            ("localhost", tcp("localhost", 2019)),
            (":2020", tcp("", 2020)),
            ("tcp/127.0.0.1:0", tcp("127.0.0.1", 0)),
            ("[::1]:2019", tcp("::1", 2019)),
            ("::1", tcp("::1", 2019)),
            ("Admin.Example:1", tcp("admin.example", 1)),
            ("unix//run/regent.sock", Address::Unix("/run/regent.sock".into())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_an_error() {
        for text in [
            "",
            "localhost:",
            "localhost:x",
            "a:65536",
            "unix/run.sock",
            "unix//",
            "http://localhost",
            "a b:1",
            "[a]:1",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is no address")), "{error}");
        }
    }

    #[test]
    fn an_address_is_printed_as_it_is_written() {
        for text in ["localhost:2019", ":2019", "[::1]:2019", "unix//run/regent.sock"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }
}
