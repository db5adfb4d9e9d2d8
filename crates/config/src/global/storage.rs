//! `storage …`: where certificates, accounts, the local CA and locks are kept; see [HTTPS](https.md).
//!
//! `storage redis { … }` has the options of Caddy's module `caddy-storage-redis`, and uses its data:
//!
//! | option of `storage redis` | default | meaning |
//! |---|---|---|
//! | `address HOST:PORT…` | | of the server; or `host` and `port`. Several, in the line or in a block: of a primary and its replicas, or of Sentinels |
//! | `host HOST…`, `port PORT` | 127.0.0.1, 6379 | the same apart; `host` may be the absolute path of a Unix socket |
//! | `cluster` | | the addresses are those of some servers of a Redis Cluster, which tell where the others are; `storage redis cluster` is the same |
//! | `master_name NAME` | | the addresses are those of Sentinels (of port 26379 where none is said), which know the primary by this name; `storage redis failover` is the same and needs it |
//! | `sentinel_username NAME`, `sentinel_password SECRET` | | the login to the Sentinels, if they have one |
//! | `username NAME`, `password SECRET` | | the login |
//! | `db NUMBER` | 0 | the database |
//! | `timeout SECONDS` | 5 | for connecting, whoever has to be asked for that, and for each answer |
//! | `key_prefix TEXT` | caddy | before each key |
//! | `encryption_key SECRET` | | 32 characters: values are encrypted with AES-256-GCM |
//! | `compression flate \| zlib` | | values are compressed |
//! | `tls_enabled true` | | TLS to the server |
//! | `tls_server_certs_path FILE` | the system's | a PEM file of the roots that are trusted |
//! | `tls_insecure true` | | no certificate is checked |

use crate::call::Call;
use crate::context::Context;
use crate::environment::Environment;
use crate::model::{GlobalTls, RedisCompression, RedisServer, RedisStorage, Secret};
use crate::problems::{error, not_built_as, unknown, unknown_option};
use crate::redis_options::{self, ServerOptions};
use regent_caddyfile::{Error, Token};
use std::path::{Path, PathBuf};

const SYNTAX: &str = "storage file_system PATH | storage redis { … }";
/// With which a longer one is the same in Caddy's module.
const KEY_BYTES: usize = 32;
/// Beside those of the server.
const OPTIONS: &[&str] = &["compression", "encryption_key", "key_prefix"];
const NOT_BUILT: &[&str] = &["route_by_latency", "route_randomly", "tls_server_certs_pem"];

pub(super) fn parse(cx: &Context<'_>, call: &Call<'_>, tls: &mut GlobalTls) -> Result<(), Error> {
    let Some((kind, args)) = call.args.split_first() else { return Err(call.wrong_arguments(1, SYNTAX)) };
    match kind.text.as_str() {
        "file_system" => {
            tls.storage = file_system(cx, call, args)?;
            tls.is_storage_default = false;
        }
        "redis" => tls.redis = Some(redis(cx, call, args)?),
        other => return Err(not_built_as(kind, &format!("storage {other}"))),
    }
    Ok(())
}

/// Where they are kept if the file does not say (Caddy's storage.go, AppDataDir).
pub(super) fn default(environment: &Environment) -> PathBuf {
    let variable = |name: &str| environment.variable(name).filter(|value| !value.is_empty());
    let base = variable("XDG_DATA_HOME").map(PathBuf::from);
    let base = base.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".local/share")));
    environment.absolute(&base.unwrap_or_default().join("caddy"))
}

/// `storage file_system PATH`, or with `root PATH` in a block.
fn file_system(cx: &Context<'_>, call: &Call<'_>, args: &[Token]) -> Result<PathBuf, Error> {
    let syntax = "storage file_system PATH";
    let mut path = match args {
        [] => None,
        [path] => Some(path),
        _ => return Err(call.wrong_arguments(2, syntax)),
    };
    for option in call.options() {
        match option.name() {
            "root" if path.is_none() => path = Some(option.one("root PATH")?),
            "root" => return Err(error(option.name, "`storage` has a path already")),
            _ => return Err(unknown_option(option.name, "storage file_system", &["root"], &[])),
        }
    }
    let path = path.ok_or_else(|| call.wrong_arguments(2, syntax))?;
    Ok(cx.environment.absolute(Path::new(&cx.fixed_text(path)?)))
}

fn redis(cx: &Context<'_>, call: &Call<'_>, args: &[Token]) -> Result<RedisStorage, Error> {
    let (mut redis, mut server) = (RedisStorage::default(), ServerOptions::new());
    let mut failover = None;
    match args {
        [] => {}
        [kind] if kind.text == "simple" => {}
        [kind] if kind.text == "failover" => failover = Some(kind),
        [kind] if kind.text == "cluster" => server.use_cluster(),
        _ => return Err(call.wrong_arguments(1, "storage redis [failover | cluster] { … }")),
    }
    for option in call.options() {
        let one = |syntax: &str| option.one(syntax).and_then(|token| Ok((token, cx.fixed_text(token)?)));
        match option.name() {
            "key_prefix" => redis.key_prefix = key_prefix(one("key_prefix TEXT")?)?,
            "encryption_key" => redis.encryption_key = encryption_key(one("encryption_key SECRET")?)?,
            "compression" => redis.compression = compression(option.one("compression flate | zlib")?)?,
            name if redis_options::OPTIONS.contains(&name) => server.apply(cx, &option)?,
            _ => return Err(unknown_option(option.name, "storage redis", &known(), NOT_BUILT)),
        }
    }
    if let Some(failover) = failover.filter(|_| !server.has_master_name()) {
        let message = "Sentinels know servers by name; write `master_name NAME` too";
        return Err(error(failover, message));
    }
    redis.server = server.finish(call.name, "storage redis")?;
    Ok(redis)
}

fn known() -> Vec<&'static str> {
    redis_options::OPTIONS.iter().chain(OPTIONS).copied().collect()
}

fn key_prefix((token, text): (&Token, String)) -> Result<String, Error> {
    let is_fit = |part: &str| !matches!(part, "" | "." | "..");
    if text.split('/').all(is_fit) {
        return Ok(text);
    }
    Err(error(token, "`key_prefix` must be words with single slashes between them, without `.` and `..`"))
}

/// Without the text in messages.
fn encryption_key((token, text): (&Token, String)) -> Result<Option<Secret>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    let Some(key) = text.get(..KEY_BYTES) else {
        return Err(error(token, format!("`encryption_key` must have {KEY_BYTES} characters of ASCII")));
    };
    Ok(Some(Secret(key.to_owned())))
}

fn compression(token: &Token) -> Result<RedisCompression, Error> {
    match token.text.as_str() {
        "false" => Ok(RedisCompression::None),
        "flate" | "true" => Ok(RedisCompression::Flate),
        "zlib" => Ok(RedisCompression::Zlib),
        _ => Err(unknown(token, "value of `compression`", &["flate", "zlib", "false"])),
    }
}

impl Default for RedisStorage {
    fn default() -> Self {
        Self {
            server: RedisServer::default(),
            key_prefix: "caddy".to_owned(),
            encryption_key: None,
            compression: RedisCompression::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{config, file_errors};
    use crate::model::{RedisAddress, RedisPlace, RedisSentinels, RedisTls};
    use std::time::Duration;

    fn in_file(storage: &str) -> String {
        format!("{{\n{storage}\n}}\n:80 {{\n}}")
    }

    fn parsed(storage: &str) -> GlobalTls {
        config(&in_file(storage)).global.tls
    }

    #[test]
    fn redis_with_all_options_of_caddys_module() {
        let tls = parsed(
            "storage redis {\naddress redis.example:6380\nusername u\npassword p\ndb 2\ntimeout 7\nkey_prefix my/site\n\
             encryption_key 0123456789abcdef0123456789abcdefXYZ\ncompression zlib\ntls_enabled true\n\
             tls_server_certs_path roots.pem\n}",
        );
        let expected = RedisStorage {
            server: RedisServer {
                place: RedisPlace::at("redis.example", 6380),
                username: Some("u".to_owned()),
                password: Some(Secret("p".to_owned())),
                database: 2,
                timeout: Duration::from_secs(7),
                tls: Some(RedisTls::Roots("/srv/roots.pem".into())),
            },
            key_prefix: "my/site".to_owned(),
            encryption_key: Some(Secret("0123456789abcdef0123456789abcdef".to_owned())),
            compression: RedisCompression::Zlib,
        };
        assert_eq!(tls.redis, Some(expected));
        assert_eq!(parsed("storage redis").redis, Some(RedisStorage::default()));
    }

    #[test]
    fn redis_leaves_the_directory_for_copies() {
        let tls = parsed("storage file_system /data\nstorage redis {\nhost /run/redis.sock\n}");
        assert_eq!(tls.storage, Path::new("/data"));
        assert_eq!(tls.redis.unwrap().server.place, RedisPlace::at("/run/redis.sock", 6379));
    }

    #[test]
    fn several_addresses_are_of_a_primary_and_its_replicas_or_of_sentinels() {
        let place = |storage: &str| parsed(storage).redis.unwrap().server.place;
        let address = |host: &str, port| RedisAddress { host: host.to_owned(), port };
        let servers = vec![address("a", 1), address("b", 2)];
        let expected = RedisPlace::Servers(servers.clone());
        assert_eq!(place("storage redis {\naddress a:1 b:2\nhost c\n}"), expected);
        assert_eq!(place("storage redis {\naddress {\na:1\nb:2\n}\n}"), expected);
        let sentinels = |addresses, username: Option<&str>, password: Option<&str>| {
            RedisPlace::Sentinels(RedisSentinels {
                addresses,
                master_name: "shop".to_owned(),
                username: username.map(str::to_owned),
                password: password.map(|text| Secret(text.to_owned())),
            })
        };
        for cluster in
            ["storage redis cluster {\n", "storage redis {\ncluster\n", "storage redis {\ncluster true\n"]
        {
            let expected = RedisPlace::Cluster(servers.clone());
            assert_eq!(place(&format!("{cluster}address a:1 b:2\n}}")), expected);
        }
        let failover = "storage redis failover {\naddress {\na:1\nb:2\n}\nmaster_name shop\n}";
        assert_eq!(place(failover), sentinels(servers, None, None));
        let hosts =
            "storage redis {\nhost a b\nmaster_name shop\nsentinel_username u\nsentinel_password p\n}";
        let usual = vec![address("a", 26379), address("b", 26379)];
        assert_eq!(place(hosts), sentinels(usual, Some("u"), Some("p")));
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (storage, message) in [
            ("storage", "too few arguments"),
            ("storage consul", "`storage consul` is not built yet"),
            ("storage redis cluster {\ndb 1\n}", "no database but 0"),
            ("storage redis cluster {\nmaster_name shop\n}", "either a cluster or what Sentinels know"),
            ("storage redis {\ncluster maybe\n}", "true"),
            ("storage redis many", "too"),
            ("storage redis {\nroute_randomly true\n}", "not built yet"),
            ("storage redis failover", "write `master_name NAME` too"),
            ("storage redis {\nmaster_name \"a b\"\n}", "is one word"),
            ("storage redis {\nsentinel_password x\n}", "no `master_name NAME`"),
            ("storage redis {\naddress\n}", "too few arguments"),
            ("storage redis {\naddress {\na:1 {\nb\n}\n}\n}", "takes no block"),
            ("storage redis {\naddress redis\n}", "write one such as"),
            ("storage redis {\nhost \"a b\"\n}", "is no host"),
            ("storage redis {\nkey_prefix /x\n}", "key_prefix"),
            ("storage redis {\nencryption_key short\n}", "must have 32 characters"),
            ("storage redis {\ncompression gzip\n}", "unknown value of `compression`"),
            ("storage redis {\ntls_insecure true\n}", "write `tls_enabled true` too"),
            ("storage redis {\ntimeout 0\n}", "from 1 to 300"),
            ("storage redis {\nadress x\n}", "did you mean `address`"),
        ] {
            let errors = file_errors(&in_file(storage));
            assert!(errors.len() == 1 && errors[0].contains(message), "{storage}: {errors:?}");
        }
    }

    #[test]
    fn addresses_are_bounded() {
        let addresses = |number| (0..number).map(|port| format!(" a:{}", port + 1)).collect::<String>();
        let errors = file_errors(&in_file(&format!("storage redis {{\naddress{}\n}}", addresses(17))));
        assert!(errors.len() == 1 && errors[0].contains("more than 16"), "{errors:?}");
        parsed(&format!("storage redis {{\naddress{}\n}}", addresses(16)));
    }
}
