//! How many orders names on demand may cause (`on_demand_tls { interval; burst }`).

use super::options::OrderLimit;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

/// Of all sites.
#[derive(Debug)]
pub(crate) struct Limit {
    limit: OrderLimit,
    /// Of the orders that count still, the oldest first.
    orders: Mutex<VecDeque<Instant>>,
}

impl Limit {
    pub fn new(limit: OrderLimit) -> Self {
        Self { limit, orders: Mutex::default() }
    }

    /// Whether one more is within the limit, which counts it. `name`: what it is for, in the log.
    pub fn admits(&self, name: &str) -> bool {
        let now = Instant::now();
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        while orders.front().is_some_and(|oldest| now.duration_since(*oldest) >= self.limit.interval) {
            orders.pop_front();
        }
        if orders.len() >= self.limit.orders as usize {
            tracing::debug!(name, "no order on demand: `on_demand_tls` allows no more of them now");
            return false;
        }
        orders.push_back(now);
        if orders.len() == self.limit.orders as usize {
            tracing::warn!(
                name,
                orders = self.limit.orders,
                interval_s = self.limit.interval.as_secs(),
                "the last order on demand that `on_demand_tls` allows in its interval"
            );
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn so_many_orders_are_admitted_in_so_much_time() {
        let limit = Limit::new(OrderLimit { orders: 2, interval: Duration::from_secs(60) });
        assert!(limit.admits("a.test"));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(limit.admits("b.test"));
        assert!(!limit.admits("c.test"));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(limit.admits("c.test"));
        assert!(!limit.admits("d.test"));
    }
}
