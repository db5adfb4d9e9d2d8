//! `transport redis`, with the options and URLs of Mercure's own transport of that name.

use crate::call::Call;
use crate::context::Context;
use crate::model::{HubHistory, RedisAddress, RedisPlace, RedisServer, RedisTls};
use crate::problems::{error, unknown_option};
use crate::redis_options::{self, ServerOptions, secret};
use crate::values;
use regent_caddyfile::{Error, Token};
use std::ops::RangeInclusive;

/// The default of `stream`, as there.
const STREAM: &str = "mercure";
/// Bytes of its name.
const LONGEST_STREAM: usize = 512;
/// Updates that Redis keeps unless the file says so. Without a bound it would be full one day.
const SIZE: usize = 10_000;
const SIZES: RangeInclusive<usize> = 1..=1_000_000;
const PORT: u16 = 6379;
/// Beside those of the server.
const OPTIONS: &[&str] = &["addresses", "gob", "max_length", "stream", "tls", "url"];

/// Mistakes within the block are noted in `cx`.
pub(super) fn of_option(cx: &mut Context<'_>, option: &Call<'_>) -> Result<HubHistory, Error> {
    let mut server = ServerOptions::new();
    let (mut stream, mut size) = (STREAM.to_owned(), SIZE);
    for setting in option.options() {
        let result = match setting.name() {
            "stream" => setting.one("stream NAME").and_then(|token| {
                stream = stream_name(token, &cx.fixed_text(token)?)?;
                Ok(())
            }),
            "max_length" => setting
                .one("max_length N")
                .and_then(|token| values::integer(token, SIZES, "max_length"))
                .map(|updates| size = updates),
            "url" => setting.one("url redis://HOST:PORT").and_then(|token| {
                let (address, rest) = server_of_url(token, &cx.fixed_text(token)?)?;
                server.set(address, rest);
                Ok(())
            }),
            "tls" => setting.exactly::<0>("tls").map(|_| server.use_tls()),
            "addresses" => server.set_addresses(cx, &setting),
            "gob" => {
                let why = "instances of Regent share their updates with each other, as JSON";
                cx.warn(setting.name, format!("`gob` has no effect: {why}"));
                Ok(())
            }
            name if redis_options::OPTIONS.contains(&name) => server.apply(cx, &setting),
            _ => {
                let known: Vec<_> = redis_options::OPTIONS.iter().chain(OPTIONS).copied().collect();
                Err(unknown_option(setting.name, "transport redis", &known, &[]))
            }
        };
        cx.check(result);
    }
    let server = server.finish(option.name, "transport redis")?;
    Ok(HubHistory::Redis { server, stream, size })
}

/// `redis://[[USER]:PASSWORD@]HOST[:PORT][/STREAM][?tls=1&max_len_approx=N]`, `rest` without the scheme.
pub(super) fn of_url(token: &Token, scheme: &str, rest: &str) -> Result<HubHistory, Error> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let (address, mut server) = of_authority(token, authority)?;
    server.place = RedisPlace::Servers(vec![address]);
    let stream =
        if path.is_empty() { STREAM.to_owned() } else { stream_name(token, &decoded(token, path)?)? };
    let (mut size, mut is_tls) = (SIZE, scheme == "rediss");
    for (name, value) in super::parameters(query) {
        match (name, value) {
            ("tls", "1" | "0") => is_tls |= value == "1",
            ("tls", _) => return Err(error(token, "`tls` of the URL is 1 or 0")),
            ("max_len_approx", _) => {
                let length = value.parse().ok().filter(|length| SIZES.contains(length));
                size = length.ok_or_else(|| error(token, bad_size()))?;
            }
            _ => {
                return Err(error(
                    token,
                    "the URL has an unknown parameter: there are `max_len_approx` and `tls`",
                ));
            }
        }
    }
    server.tls = is_tls.then_some(RedisTls::SystemRoots);
    Ok(HubHistory::Redis { server, stream, size })
}

/// A URL of a server as Redis' own programs know it: its path is the number of the database.
fn server_of_url(token: &Token, url: &str) -> Result<(RedisAddress, RedisServer), Error> {
    let bad = || error(token, "this is no URL of a Redis; write `redis://HOST:PORT`, or `rediss://` for TLS");
    let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (address, mut server) = of_authority(token, authority)?;
    server.tls = match scheme {
        "redis" => None,
        "rediss" => Some(RedisTls::SystemRoots),
        _ => return Err(bad()),
    };
    if !database.is_empty() {
        let number = || error(token, "the path of the URL is the number of a database");
        server.database = database.parse().map_err(|_| number())?;
    }
    Ok((address, server))
}

/// No message has more of it than the host, as there is a password in front.
fn of_authority(token: &Token, authority: &str) -> Result<(RedisAddress, RedisServer), Error> {
    let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let place = if has_port { place.to_owned() } else { format!("{place}:{PORT}") };
    let address = redis_options::address((token, place))?;
    let (username, password) = login.split_once(':').unwrap_or((login, ""));
    let username = Some(decoded(token, username)?).filter(|name| !name.is_empty());
    let password = secret(decoded(token, password)?);
    Ok((address, RedisServer { username, password, ..RedisServer::default() }))
}

fn stream_name(token: &Token, name: &str) -> Result<String, Error> {
    if name.is_empty() || name.len() > LONGEST_STREAM || name.chars().any(char::is_control) {
        let message = format!("`stream` is the name of a key of Redis, of 1 to {LONGEST_STREAM} bytes");
        return Err(error(token, message));
    }
    Ok(name.to_owned())
}

fn bad_size() -> String {
    let (least, most) = SIZES.into_inner();
    format!("`max_len_approx` is a number of updates from {least} to {most}")
}

/// RFC 3986 §2.1.
fn decoded(token: &Token, text: &str) -> Result<String, Error> {
    let bad = || error(token, "a `%` in the URL is not followed by two hexadecimal digits of UTF-8");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or_else(bad)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
        rest = &behind[2..];
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{config, errors, load};
    use crate::model::Secret;
    use std::time::Duration;

    fn history(options: &str) -> HubHistory {
        let text = format!(":80 {{\nmercure {{\nanonymous\n{options}\n}}\n}}");
        config(&text).global.hubs.remove(0).history
    }

    #[test]
    fn a_history_is_kept_in_redis() {
        let plain = RedisServer::default();
        let expected = HubHistory::Redis { server: plain.clone(), stream: "mercure".into(), size: 10_000 };
        assert_eq!(history("transport redis"), expected);
        let all = "transport redis {\naddress redis.test:6380\nusername u\npassword p\ndb 2\ntimeout 3\ntls\n\
                   tls_server_certs_path roots.pem\nstream app\nmax_length 500\n}";
        let server = RedisServer {
            place: RedisPlace::at("redis.test", 6380),
            username: Some("u".into()),
            password: Some(Secret("p".into())),
            database: 2,
            timeout: Duration::from_secs(3),
            tls: Some(RedisTls::Roots("/srv/roots.pem".into())),
        };
        assert_eq!(history(all), HubHistory::Redis { server, stream: "app".into(), size: 500 });
    }

    #[test]
    fn urls_name_the_server_and_the_old_form_the_stream() {
        let server = RedisServer {
            place: RedisPlace::at("redis.test", 6379),
            username: Some("default".into()),
            password: Some(Secret("p@ss w".into())),
            database: 3,
            tls: Some(RedisTls::SystemRoots),
            ..RedisServer::default()
        };
        let block = "transport redis {\nurl rediss://default:p@ss%20w@redis.test/3\n}";
        let expected = HubHistory::Redis { server: server.clone(), stream: "mercure".into(), size: 10_000 };
        assert_eq!(history(block), expected);
        let server = RedisServer { place: RedisPlace::at("::1", 7000), database: 0, ..server };
        let old = "transport_url redis://default:p%40ss%20w@[::1]:7000/my-hub?tls=1&max_len_approx=7";
        assert_eq!(history(old), HubHistory::Redis { server, stream: "my-hub".into(), size: 7 });
    }

    #[test]
    fn several_addresses_are_of_a_primary_and_its_replicas_of_a_cluster_or_of_sentinels() {
        let places = |options: &str| match history(&format!("transport redis {{\n{options}\n}}")) {
            HubHistory::Redis { server, .. } => server.place,
            other => panic!("{other:?}"),
        };
        let address = |host: &str| RedisAddress { host: host.into(), port: 1 };
        let both = vec![address("a"), address("b")];
        assert_eq!(places("addresses a:1 b:1"), RedisPlace::Servers(both.clone()));
        assert_eq!(places("addresses a:1 b:1\ncluster"), RedisPlace::Cluster(both.clone()));
        let RedisPlace::Sentinels(sentinels) = places("address a:1 b:1\nmaster_name shop") else {
            panic!("a name is known to Sentinels");
        };
        assert_eq!((sentinels.addresses, sentinels.master_name.as_str()), (both, "shop"));
    }

    #[test]
    fn a_password_is_in_no_message() {
        for url in
            ["redis://u:letmein@/x", "redis://u:letmein@h/x?y=1", "redis://:letmein%zz@h", "x:letmein@h"]
        {
            for options in [format!("transport_url {url}"), format!("transport redis {{\nurl {url}\n}}")] {
                let found = errors(&format!("mercure {{\nanonymous\n{options}\n}}")).join("\n");
                assert!(!found.is_empty() && !found.contains("letmein"), "{options}: {found}");
            }
        }
        let loaded =
            load(":80 {\nmercure {\nanonymous\ntransport redis {\nurl redis://:letmein@h\n}\n}\n}").unwrap();
        assert!(!serde_json::to_string(&loaded.config).unwrap().contains("letmein"));
    }

    #[test]
    fn mistakes() {
        for (options, message) in [
            ("transport redis {\naddress x\n}", "write one such as"),
            ("transport redis {\naddresses a:1 b\n}", "write one such as"),
            ("transport redis {\nmax_length 0\n}", "max_length"),
            ("transport redis {\nstream \"\"\n}", "the name of a key of Redis"),
            ("transport redis {\ntls_insecure true\n}", "write `tls_enabled true` too"),
            ("transport redis {\nstreem x\n}", "did you mean `stream`"),
            ("transport redis {\ncluster\nurl redis://h/1\n}", "no database but 0"),
            ("transport redis {\nurl http://h\n}", "this is no URL of a Redis"),
            ("transport redis {\nurl redis://h/x\n}", "the number of a database"),
            ("transport_url redis://h?max_len_approx=0", "from 1 to 1000000"),
            ("transport_url redis://h?tls=yes", "`tls` of the URL is 1 or 0"),
            ("transport_url redis://h?size=1", "unknown parameter"),
        ] {
            let found = errors(&format!("mercure {{\nanonymous\n{options}\n}}")).join("\n");
            assert!(found.contains(message), "{options}: {found}");
        }
    }
}
