//! Which upstream a request goes to.

use crate::Writer;
use crate::object::{Object, nanoseconds};
use regent_config::{Balancing, CookiePolicy, HashKey, LbPolicy, OptionalKey};
use std::time::Duration;

/// Between two tries, where there is a time for them and nothing else is said.
const TRY_INTERVAL: Duration = Duration::from_millis(250);

impl Writer<'_> {
    pub(super) fn balancing(&self, balancing: &Balancing) -> Object {
        let Balancing { policy, retries, try_duration, try_interval, retry_match } = balancing;
        let mut object = Object::new();
        if *policy != LbPolicy::Random {
            object.set("selection_policy", self.policy(policy));
        }
        object.set_some("retries", retries.filter(|retries| *retries > 0));
        if !try_duration.is_zero() {
            object.set("try_duration", nanoseconds(*try_duration));
        }
        let usual = if try_duration.is_zero() { Duration::ZERO } else { TRY_INTERVAL };
        object.set_duration("try_interval", *try_interval, usual);
        object.set_list("retry_match", retry_match.iter().map(|set| self.matcher_set(set)));
        object
    }

    fn policy(&self, policy: &LbPolicy) -> Object {
        let named = |name: &str| Object::of_kind("policy", name);
        match policy {
            LbPolicy::Random => named("random"),
            LbPolicy::RandomChoose(count) => {
                let mut object = named("random_choose");
                object.set("choose", *count);
                object
            }
            LbPolicy::RoundRobin => named("round_robin"),
            LbPolicy::WeightedRoundRobin(weights) => {
                let mut object = named("weighted_round_robin");
                object.set("weights", weights.clone());
                object
            }
            LbPolicy::LeastConn => named("least_conn"),
            LbPolicy::First => named("first"),
            LbPolicy::Hash(HashKey::RemoteIp) => named("ip_hash"),
            LbPolicy::Hash(HashKey::ClientIp) => named("client_ip_hash"),
            LbPolicy::Hash(HashKey::Uri) => named("uri_hash"),
            LbPolicy::HashOr(key, fallback) => {
                let mut object = match key {
                    OptionalKey::Header(field) => {
                        let mut object = named("header");
                        object.set("field", field.as_str());
                        object
                    }
                    OptionalKey::Query(key) => {
                        let mut object = named("query");
                        object.set("key", key.as_str());
                        object
                    }
                };
                self.set_fallback(&mut object, fallback);
                object
            }
            LbPolicy::Cookie(cookie) => self.cookie(cookie),
        }
    }

    fn cookie(&self, cookie: &CookiePolicy) -> Object {
        let CookiePolicy { name, secret, max_age, fallback } = cookie;
        let mut object = Object::of_kind("policy", "cookie");
        if name != "lb" {
            object.set("name", name.as_str());
        }
        if !secret.is_empty() {
            object.set("secret", secret.as_str());
        }
        object.set_some_duration("max_age", *max_age);
        self.set_fallback(&mut object, fallback);
        object
    }

    fn set_fallback(&self, object: &mut Object, fallback: &LbPolicy) {
        if *fallback != LbPolicy::Random {
            object.set("fallback", self.policy(fallback));
        }
    }
}
