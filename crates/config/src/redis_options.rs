//! The options that say where a server of Redis is: those of `storage redis`, and of `transport redis` of a hub.

use crate::call::Call;
use crate::context::Context;
use crate::host_names::ascii_host;
use crate::model::{RedisAddress, RedisPlace, RedisSentinels, RedisServer, RedisTls, Secret};
use crate::problems::error;
use crate::values;
use regent_caddyfile::{Error, Token};
use std::path::Path;
use std::time::Duration;

/// What both have.
pub(crate) const OPTIONS: &[&str] = &[
    "address",
    "cluster",
    "db",
    "host",
    "master_name",
    "password",
    "port",
    "sentinel_password",
    "sentinel_username",
    "timeout",
    "tls_enabled",
    "tls_insecure",
    "tls_server_certs_path",
    "username",
];

const HOST: &str = "127.0.0.1";
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;
/// Servers, Sentinels, or those of a cluster that are asked for the others.
const MOST_ADDRESSES: usize = 16;

/// A server as far as its options were read.
pub(crate) struct ServerOptions {
    server: RedisServer,
    /// Before what `hosts` and `port` say.
    addresses: Vec<RedisAddress>,
    hosts: Vec<String>,
    port: Option<u16>,
    sentinels: SentinelOptions,
    is_cluster: bool,
    is_tls: bool,
    verification: RedisTls,
}

#[derive(Default)]
struct SentinelOptions {
    master_name: Option<String>,
    username: Option<String>,
    password: Option<Secret>,
}

impl ServerOptions {
    pub fn new() -> Self {
        Self {
            server: RedisServer::default(),
            addresses: Vec::new(),
            hosts: Vec::new(),
            port: None,
            sentinels: SentinelOptions::default(),
            is_cluster: false,
            is_tls: false,
            verification: RedisTls::SystemRoots,
        }
    }

    /// What a URL says, which is all but how long an answer may take.
    pub fn set(&mut self, address: RedisAddress, server: RedisServer) {
        self.is_tls = server.tls.is_some();
        self.addresses = vec![address];
        self.server = RedisServer { timeout: self.server.timeout, ..server };
    }

    pub fn use_tls(&mut self) {
        self.is_tls = true;
    }

    pub fn use_cluster(&mut self) {
        self.is_cluster = true;
    }

    /// Takes one of [`OPTIONS`].
    pub fn apply(&mut self, cx: &Context<'_>, option: &Call<'_>) -> Result<(), Error> {
        let Self { server, addresses, hosts, port, sentinels, is_cluster, is_tls, verification } = self;
        let one = |syntax: &str| option.one(syntax).and_then(|token| Ok((token, cx.fixed_text(token)?)));
        match option.name() {
            "address" => *addresses = several(cx, option, "address HOST:PORT …", address)?,
            "host" => *hosts = several(cx, option, "host HOST …", host)?,
            "port" => *port = Some(values::integer(option.one("port PORT")?, 1..=65535, "a port")?),
            "cluster" if option.args.is_empty() => {
                *is_cluster = option.exactly::<0>("cluster").map(|_| true)?
            }
            "cluster" => *is_cluster = values::boolean(option.one("cluster true | false")?)?,
            "master_name" => sentinels.master_name = Some(master_name(one("master_name NAME")?)?),
            "sentinel_username" => sentinels.username = filled(one("sentinel_username NAME")?.1),
            "sentinel_password" => sentinels.password = secret(one("sentinel_password SECRET")?.1),
            "username" => server.username = filled(one("username NAME")?.1),
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

    /// Takes what names servers, one or more, whatever it is called.
    pub fn set_addresses(&mut self, cx: &Context<'_>, option: &Call<'_>) -> Result<(), Error> {
        self.addresses = several(cx, option, "addresses HOST:PORT …", address)?;
        Ok(())
    }

    pub fn has_master_name(&self) -> bool {
        self.sentinels.master_name.is_some()
    }

    /// `whole`: the directive or option that all of them stand in, `name` what it is called.
    pub fn finish(mut self, whole: &Token, name: &str) -> Result<RedisServer, Error> {
        if !self.is_tls && self.verification != RedisTls::SystemRoots {
            let message = format!("TLS of `{name}` is set, but not on; write `tls_enabled true` too");
            return Err(error(whole, message));
        }
        self.server.tls = self.is_tls.then_some(self.verification);
        let SentinelOptions { master_name, username, password } = self.sentinels;
        let port = self.port.unwrap_or(if master_name.is_some() { SENTINEL_PORT } else { PORT });
        let addresses = at(self.addresses, self.hosts, port);
        self.server.place = match master_name {
            Some(_) if self.is_cluster => {
                let message =
                    format!("`{name}` is either a cluster or what Sentinels know by a `master_name`");
                return Err(error(whole, message));
            }
            Some(master_name) => {
                RedisPlace::Sentinels(RedisSentinels { addresses, master_name, username, password })
            }
            None if username.is_some() || password.is_some() => {
                let message = format!("`{name}` has a login for Sentinels and no `master_name NAME`");
                return Err(error(whole, message));
            }
            None if self.is_cluster && self.server.database != 0 => {
                return Err(error(whole, format!("`{name}` is a cluster, which has no database but 0")));
            }
            None if self.is_cluster => RedisPlace::Cluster(addresses),
            None => RedisPlace::Servers(addresses),
        };
        Ok(self.server)
    }
}

fn at(addresses: Vec<RedisAddress>, hosts: Vec<String>, port: u16) -> Vec<RedisAddress> {
    if !addresses.is_empty() {
        return addresses;
    }
    let hosts = if hosts.is_empty() { vec![HOST.to_owned()] } else { hosts };
    hosts.into_iter().map(|host| RedisAddress { host, port }).collect()
}

/// In the line, or in a block.
fn several<T>(
    cx: &Context<'_>,
    option: &Call<'_>,
    syntax: &str,
    parse: impl Fn((&Token, String)) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    for line in option.options() {
        line.without_block(syntax)?;
    }
    let of_block = option.options().flat_map(|line| std::iter::once(line.name).chain(line.args));
    let tokens: Vec<&Token> = option.args.iter().chain(of_block).collect();
    match tokens.as_slice() {
        [] => return Err(option.wrong_arguments(1, syntax)),
        [.., last] if tokens.len() > MOST_ADDRESSES => {
            let message = format!("`{}` names more than {MOST_ADDRESSES}", option.name());
            return Err(error(last, message));
        }
        _ => {}
    }
    tokens.into_iter().map(|token| parse((token, cx.fixed_text(token)?))).collect()
}

/// `HOST:PORT`, the host in brackets if it has colons.
pub(crate) fn address((token, text): (&Token, String)) -> Result<RedisAddress, Error> {
    let bad = || error(token, format!("`{text}` is no address; write one such as `127.0.0.1:6379`"));
    let (name, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?;
    Ok(RedisAddress { host: host((token, name.trim_matches(['[', ']']).to_owned()))?, port })
}

fn host((token, text): (&Token, String)) -> Result<String, Error> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if text.starts_with('/') {
        return Ok(text);
    }
    if let Some(name) = ascii_host(&text).filter(|name| !name.is_empty() && name.chars().all(is_fit)) {
        return Ok(name);
    }
    Err(error(token, format!("`{text}` is no host; write a name, an address, or the path of a Unix socket")))
}

/// What Sentinels call a server is a word of their configuration.
fn master_name((token, text): (&Token, String)) -> Result<String, Error> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(error(token, "`master_name` is one word, as the configuration of the Sentinels has it"));
    }
    Ok(text)
}

fn filled(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
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
