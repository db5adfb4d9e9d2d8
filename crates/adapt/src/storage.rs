//! Where certificates are kept, and servers of Redis.

use crate::Writer;
use crate::object::Object;
use crate::server::with_port;
use crate::words::Line;
use regent_config::{
    RedisAddress, RedisCompression, RedisPlace, RedisSentinels, RedisServer, RedisStorage, RedisTls, escaped,
};

impl Writer<'_> {
    /// The default is a directory of the user who runs the server, who may be another one than adapts its configuration.
    pub(crate) fn storage(&self) -> Object {
        let tls = &self.config.global.tls;
        let Some(redis) = &tls.redis else {
            if tls.is_storage_default {
                return Object::new();
            }
            let mut object = Object::of_kind("module", "file_system");
            object.set("root", escaped(&tls.storage.display().to_string()));
            return object;
        };
        let RedisStorage { server, key_prefix, encryption_key, compression } = redis;
        let mut object = Object::of_kind("module", "redis");
        for line in self.redis_lines(server) {
            let (key, value) = line.into_member();
            object.set(key, value);
        }
        object.set("key_prefix", escaped(key_prefix));
        object.set_some("encryption_key", encryption_key.as_ref().map(|key| escaped(&key.0)));
        match compression {
            RedisCompression::None => {}
            RedisCompression::Flate => object.set("compression", "flate"),
            RedisCompression::Zlib => object.set("compression", "zlib"),
        }
        object
    }

    /// As options of a Caddyfile, which `storage redis` and a hub have alike.
    pub(crate) fn redis_lines(&self, server: &RedisServer) -> Vec<Line> {
        let RedisServer { place, username, password, database, timeout, tls } = server;
        let text = |name: &str, value: &str| Line::new([name]).word(escaped(value));
        let mut lines = self.place_lines(place);
        lines.extend(username.iter().map(|name| text("username", name)));
        lines.extend(password.iter().map(|secret| text("password", &secret.0)));
        lines.push(Line::new(["db"]).word(database.to_string()));
        lines.push(Line::new(["timeout"]).word(timeout.as_secs().to_string()));
        if let Some(tls) = tls {
            lines.push(Line::new(["tls_enabled", "true"]));
            match tls {
                RedisTls::SystemRoots => {}
                RedisTls::Roots(path) => {
                    lines.push(text("tls_server_certs_path", &path.display().to_string()))
                }
                RedisTls::Insecure => lines.push(Line::new(["tls_insecure", "true"])),
            }
        }
        lines
    }

    fn place_lines(&self, place: &RedisPlace) -> Vec<Line> {
        let addresses = |all: &[RedisAddress]| Line::new(["address"]).words(all.iter().map(address));
        match place {
            RedisPlace::Servers(all) => vec![addresses(all)],
            RedisPlace::Cluster(all) => vec![addresses(all), Line::new(["cluster"])],
            RedisPlace::Sentinels(RedisSentinels { addresses: all, master_name, username, password }) => {
                let text = |name: &str, value: &str| Line::new([name]).word(escaped(value));
                let mut lines = vec![addresses(all), text("master_name", master_name)];
                lines.extend(username.iter().map(|name| text("sentinel_username", name)));
                lines.extend(password.iter().map(|secret| text("sentinel_password", &secret.0)));
                lines
            }
        }
    }
}

fn address(address: &RedisAddress) -> String {
    let RedisAddress { host, port } = address;
    if host.starts_with('/') { escaped(host) } else { with_port(host, *port) }
}
