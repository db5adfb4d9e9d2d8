//! `rate_limit`, as mholt/caddy-ratelimit has it.

use crate::Writer;
use crate::object::Object;
use crate::text::text;
use regent_config::{RateLimit, RateZone};

impl Writer<'_> {
    pub(super) fn rate_limit(&self, limit: &RateLimit) -> Object {
        let RateLimit { zones, jitter, log_key } = limit;
        let mut by_name = Object::new();
        zones.iter().for_each(|zone| by_name.set(zone.name.as_str(), self.zone(zone)));
        let mut handler = Object::handler("rate_limit");
        handler.set("rate_limits", by_name);
        handler.set_unless("jitter", *jitter, 0.0);
        handler.set_if("log_key", *log_key);
        handler
    }

    fn zone(&self, zone: &RateZone) -> Object {
        let RateZone { name: _, matchers, key, window, events, ipv4_prefix, ipv6_prefix } = zone;
        let mut object = Object::new();
        object.set_list("match", matchers.iter().map(|set| self.matcher_set(set)));
        object.set_unless("key", text(key), String::new());
        object.set_some_duration("window", Some(*window));
        object.set("max_events", *events);
        object.set_unless("ipv4_prefix", *ipv4_prefix, 32);
        object.set_unless("ipv6_prefix", *ipv6_prefix, 128);
        object
    }
}
