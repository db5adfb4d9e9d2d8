//! How a route hands its requests to an engine.

use crate::context::exchange::Exchange;
use crate::context::target::Delivery;
use crate::templates::text::Text;
use regent_config::{self as config, ClientAddress, LaneChoice, RequestBuffering, RetryMethods};
use std::sync::Arc;
use std::time::Duration;

/// What a directive says of it, compiled.
pub(crate) struct DeliveryRules {
    env: Vec<(String, Text)>,
    request_body_timeout: Option<Duration>,
    request_buffering: RequestBuffering,
    deadline: Option<Duration>,
    request_timeout: Option<Duration>,
    retry: Option<RetryMethods>,
    lane: Option<Arc<LaneChoice>>,
    client_address: ClientAddress,
}

impl DeliveryRules {
    pub(crate) fn compile(delivery: &config::Delivery) -> Self {
        Self {
            env: delivery.env.iter().map(|(name, value)| (name.clone(), Text::compile(value))).collect(),
            request_body_timeout: delivery.request_body_timeout,
            request_buffering: delivery.request_buffering,
            deadline: delivery.deadline,
            request_timeout: delivery.request_timeout,
            retry: delivery.retry,
            lane: delivery.lane.clone().map(Arc::new),
            client_address: delivery.client_address,
        }
    }

    /// The delivery of one request: where the directive is silent, what `deadline`, `retry` and `lane` said before it counts.
    pub(crate) fn of(&self, exchange: &Exchange) -> Delivery {
        let rendered =
            |(name, value): &(String, Text)| (name.clone(), value.render_str(exchange).into_owned());
        Delivery {
            env: self.env.iter().map(rendered).collect(),
            request_body_timeout: self.request_body_timeout,
            request_buffering: self.request_buffering,
            deadline: self.deadline.or(exchange.deadline()),
            request_timeout: self.request_timeout,
            retry: self.retry.or(exchange.retry()),
            lane: self.lane.as_ref().or(exchange.lane()).cloned(),
            client_address: self.client_address,
        }
    }
}
