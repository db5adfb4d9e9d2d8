//! `mercure`.

use crate::Writer;
use crate::object::Object;
use crate::words::Line;
use regent_config::{HubHistory, HubId, JwtKey, MercureHub, escaped};

impl Writer<'_> {
    pub(super) fn mercure(&self, id: HubId) -> Object {
        let hub = &self.config.global.hubs[usize::from(id.0)];
        let MercureHub {
            publisher,
            subscriber,
            anonymous,
            subscriptions,
            cors_origins,
            publish_origins,
            cookie_name,
            history,
            heartbeat,
            write_timeout,
            dispatch_timeout,
        } = hub;
        let usual = MercureHub::default();
        let mut handler = Object::handler("mercure");
        handler.set_some("publisher_jwt", publisher.as_ref().map(|key| self.jwt(key)));
        handler.set_some("subscriber_jwt", subscriber.as_ref().map(|key| self.jwt(key)));
        handler.set_if("anonymous", *anonymous);
        handler.set_if("subscriptions", *subscriptions);
        handler.set_list("cors_origins", cors_origins.iter().cloned());
        handler.set_list("publish_origins", publish_origins.iter().cloned());
        handler.set_unless("cookie_name", cookie_name.as_str(), &usual.cookie_name);
        handler.set_some("transport", transport(history));
        handler.set_duration("heartbeat", *heartbeat, usual.heartbeat);
        handler.set_duration("write_timeout", *write_timeout, usual.write_timeout);
        handler.set_duration("dispatch_timeout", *dispatch_timeout, usual.dispatch_timeout);
        handler.set_list("regent", self.transport_line(history).map(Line::build));
        handler
    }

    fn jwt(&self, key: &JwtKey) -> Object {
        let JwtKey { key, algorithm } = key;
        let mut object = Object::new();
        object.set("key", escaped(&key.0));
        object.set("alg", algorithm.as_str());
        object
    }

    /// A transport that no JSON is known of.
    fn transport_line(&self, history: &HubHistory) -> Option<Line> {
        let HubHistory::Redis { server, stream, size } = history else { return None };
        let mut lines = self.redis_lines(server);
        lines.push(Line::new(["stream"]).word(escaped(stream)));
        lines.push(Line::new(["max_length"]).word(size.to_string()));
        Some(Line::new(["transport", "redis"]).block(lines))
    }
}

/// `None`: what is there if nothing is said.
fn transport(history: &HubHistory) -> Option<Object> {
    match history {
        HubHistory::Memory | HubHistory::Redis { .. } => None,
        HubHistory::None => Some(Object::of_kind("name", "local")),
        HubHistory::File { path, is_default, size } => {
            let mut object = Object::of_kind("name", "bolt");
            if !is_default {
                object.set("path", escaped(&path.display().to_string()));
            }
            object.set_unless("size", *size, 0);
            Some(object)
        }
    }
}
