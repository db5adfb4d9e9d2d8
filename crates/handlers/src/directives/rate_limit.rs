//! `rate_limit`: who asks too often is refused.

use crate::context::exchange::Exchange;
use crate::context::failure::Failure;
use crate::context::flow::Flow;
use crate::directives::Context;
use crate::error::BuildError;
use crate::ip_prefix::IpPrefix;
use crate::matchers::matcher::{self, Matcher};
use crate::rates::{Rate, Refused, Zone};
use crate::templates::placeholder::RATE_ZONE;
use crate::templates::text::Text;
use http::{StatusCode, header};
use regent_config as config;
use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The compiled directive.
pub(crate) struct RateLimit {
    limits: Vec<Limit>,
    jitter: f64,
    log_key: bool,
}

struct Limit {
    zone: Arc<Zone>,
    matchers: Vec<Vec<Matcher>>,
    key: Text,
    prefix: IpPrefix,
    rate: Rate,
}

impl RateLimit {
    pub(crate) fn compile(limit: &config::RateLimit, context: &Context<'_>) -> Result<Self, BuildError> {
        let compile = |zone: &config::RateZone| {
            Ok(Limit {
                zone: context.rates.open(&zone.name, zone.events),
                matchers: matcher::compile_sets(&zone.matchers)?,
                key: Text::compile(&zone.key),
                prefix: IpPrefix { v4: zone.ipv4_prefix, v6: zone.ipv6_prefix },
                rate: Rate { events: zone.events, window: zone.window },
            })
        };
        let limits = limit.zones.iter().map(compile).collect::<Result<_, BuildError>>()?;
        Ok(Self { limits, jitter: limit.jitter, log_key: limit.log_key })
    }

    pub(crate) fn handle(&self, exchange: &mut Exchange) -> Flow {
        for limit in &self.limits {
            match matcher::any_set(&limit.matchers, exchange) {
                Ok(true) if exchange.count_in(limit.zone.name()) => {}
                Ok(_) => continue,
                Err(status) => return Flow::error(status),
            }
            let key = limit.key(exchange);
            if let Err(refused) = limit.zone.take(&key, limit.rate, Instant::now()) {
                return self.refuse(exchange, &limit.zone, &key, refused);
            }
        }
        Flow::Next
    }

    fn refuse(&self, exchange: &mut Exchange, zone: &Zone, key: &str, refused: Refused) -> Flow {
        let wait = whole_seconds(refused.wait.mul_f64(1.0 + self.jitter * chance()));
        // A line for each of them would be another flood.
        if refused.is_first {
            let remote_ip = exchange.connection.remote.map(|remote| remote.ip().to_string());
            let key = self.log_key.then_some(key);
            tracing::info!(zone = &**zone.name(), wait, remote_ip, key, "rate limit exceeded");
        }
        exchange.set_var(RATE_ZONE, zone.name().to_string());
        Flow::Fail(Failure::new(StatusCode::TOO_MANY_REQUESTS).with_field(header::RETRY_AFTER, wait))
    }
}

impl Limit {
    fn key(&self, exchange: &Exchange) -> String {
        let key = self.key.render_str(exchange);
        match key.parse::<IpAddr>() {
            // One of IPv4 may be written as one of IPv6.
            Ok(address) => self.prefix.of(address.to_canonical()).to_string(),
            Err(_) => Cow::into_owned(key),
        }
    }
}

/// At least one: 0 would be at once.
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

/// From 0 to 1.
fn chance() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_in_whole_seconds() {
        for (milliseconds, told) in [(1, 1), (1000, 1), (1001, 2), (59_999, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(milliseconds)), told);
        }
    }

    #[test]
    fn chances_differ() {
        let chances: Vec<_> = (0..100).map(|_| chance()).collect();
        assert!(chances.iter().all(|chance| (0.0..1.0).contains(chance)));
        assert!(chances.iter().any(|chance| *chance < 0.5) && chances.iter().any(|chance| *chance > 0.5));
    }
}
