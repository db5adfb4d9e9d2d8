//! The options that say where a server of Redis is: those of `storage redis`, and of `transport redis` of a hub.

use crate::call::Call;
use crate::context::Context;
use crate::model::{RedisServer, RedisTls, Secret};
use crate::problems::error;
use crate::values;
use regent_caddyfile::{Error, Token};
use std::path::Path;
use std::time::Duration;

/// What both have.
pub(crate) const OPTIONS: &[&str] = &[
    "address",
    "db",
    "host",
    "password",
    "port",
    "timeout",
    "tls_enabled",
    "tls_insecure",
    "tls_server_certs_path",
    "username",
];

/// A server as far as its options were read.
pub(crate) struct ServerOptions {
    server: RedisServer,
    is_tls: bool,
    verification: RedisTls,
}

impl ServerOptions {
    pub fn new() -> Self {
        Self { server: RedisServer::default(), is_tls: false, verification: RedisTls::SystemRoots }
    }

    /// What a URL says, which is all but how long an answer may take.
    pub fn set(&mut self, server: RedisServer) {
        self.is_tls = server.tls.is_some();
        self.server = RedisServer { timeout: self.server.timeout, ..server };
    }

    pub fn use_tls(&mut self) {
        self.is_tls = true;
    }

    /// Takes one of [`OPTIONS`].
    pub fn apply(&mut self, cx: &Context<'_>, option: &Call<'_>) -> Result<(), Error> {
        let Self { server, is_tls, verification } = self;
        let one = |syntax: &str| option.one(syntax).and_then(|token| Ok((token, cx.fixed_text(token)?)));
        match option.name() {
            "address" => (server.host, server.port) = address(one("address HOST:PORT")?)?,
            "host" => server.host = host(one("host HOST")?)?,
            "port" => server.port = values::integer(option.one("port PORT")?, 1..=65535, "a port")?,
            "username" => server.username = Some(one("username NAME")?.1).filter(|name| !name.is_empty()),
            "password" => server.password = secret(one("password SECRET")?.1),
            "db" => server.database = values::integer(option.one("db NUMBER")?, 0..=1_000_000, "a database")?,
            "timeout" => server.timeout = seconds(option.one("timeout SECONDS")?)?,
            "tls_enabled" => *is_tls = values::boolean(option.one("tls_enabled true | false")?)?,
            "tls_insecure" if values::boolean(option.one("tls_insecure true | false")?)? => {
                *verification = RedisTls::Insecure;
            }
            "tls_insecure" => {}
            _ => {
                let (_, path) = one("tls_server_certs_path FILE")?;
                *verification = RedisTls::Roots(cx.environment.absolute(Path::new(&path)));
            }
        }
        Ok(())
    }

    /// `whole`: the directive or option that all of them stand in, `name` what it is called.
    pub fn finish(mut self, whole: &Token, name: &str) -> Result<RedisServer, Error> {
        if !self.is_tls && self.verification != RedisTls::SystemRoots {
            let message = format!("TLS of `{name}` is set, but not on; write `tls_enabled true` too");
            return Err(error(whole, message));
        }
        self.server.tls = self.is_tls.then_some(self.verification);
        Ok(self.server)
    }
}

/// `HOST:PORT`, the host in brackets if it has colons.
pub(crate) fn address((token, text): (&Token, String)) -> Result<(String, u16), Error> {
    let bad = || error(token, format!("`{text}` is no address; write one such as `127.0.0.1:6379`"));
    let (name, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?;
    Ok((host((token, name.trim_matches(['[', ']']).to_owned()))?, port))
}

fn host((token, text): (&Token, String)) -> Result<String, Error> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if text.starts_with('/') || !text.is_empty() && text.chars().all(is_fit) {
        return Ok(text);
    }
    Err(error(token, format!("`{text}` is no host; write a name, an address, or the path of a Unix socket")))
}

pub(crate) fn secret(text: String) -> Option<Secret> {
    Some(text).filter(|text| !text.is_empty()).map(Secret)
}

/// A number is of seconds, as in Caddy's module.
fn seconds(token: &Token) -> Result<Duration, Error> {
    match token.text.parse::<u64>() {
        Ok(seconds @ 1..=300) => Ok(Duration::from_secs(seconds)),
        Ok(_) => Err(error(token, "`timeout` must be from 1 to 300 seconds")),
        Err(_) => values::positive_duration(token),
    }
}
