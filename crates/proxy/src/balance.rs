//! Which upstream gets a request (Caddy's reverseproxy/selectionpolicies.go).

use crate::cookie;
use crate::key;
use crate::random::Random;
use crate::state::UpstreamState;
use http::HeaderValue;
use regent_config::LbPolicy;
use regent_handlers::Exchange;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What there is to choose from.
pub(crate) struct Choices<'a> {
    pub states: &'a [Arc<UpstreamState>],
    /// Those that the request has failed at.
    pub tried: &'a [Arc<UpstreamState>],
    /// The turn of all I/O threads.
    pub turn: &'a AtomicUsize,
    pub random: &'a Random,
}

/// The upstream that was chosen.
#[derive(Debug, PartialEq)]
pub(crate) struct Choice {
    pub index: usize,
    /// For the client, which is to come back with it.
    pub cookie: Option<HeaderValue>,
}

impl Choices<'_> {
    /// `None`: none is available. One that the request has failed at is chosen again only if there is no other.
    pub fn choose(&self, policy: &LbPolicy, exchange: &Exchange) -> Option<Choice> {
        let available: Vec<usize> =
            self.indexes().filter(|index| self.states[*index].is_available()).collect();
        let fresh: Vec<usize> = available.iter().copied().filter(|index| !self.was_tried(*index)).collect();
        self.choose_of(if fresh.is_empty() { &available } else { &fresh }, policy, exchange)
    }

    fn choose_of(&self, available: &[usize], policy: &LbPolicy, exchange: &Exchange) -> Option<Choice> {
        let index = match policy {
            LbPolicy::Random => available.get(self.random.below(available.len())).copied()?,
            LbPolicy::RandomChoose(count) => self.least(&self.sample(available, usize::from(*count)))?,
            LbPolicy::LeastConn => self.least(available)?,
            LbPolicy::First => available.first().copied()?,
            LbPolicy::RoundRobin => self.next_in_turn(available)?,
            LbPolicy::WeightedRoundRobin(weights) => self.next_by_weight(available, weights)?,
            LbPolicy::Hash(hashed) => self.by_hash(available, &key::of(*hashed, exchange))?,
            LbPolicy::HashOr(key, fallback) => match key::optional(key, exchange) {
                Some(value) => self.by_hash(available, &value)?,
                None => return self.choose_of(available, fallback, exchange),
            },
            LbPolicy::Cookie(policy) => {
                let named = cookie::named(policy, exchange, available.iter().map(|index| self.name(*index)));
                if let Some(position) = named {
                    return Some(Choice { index: available[position], cookie: None });
                }
                let Choice { index, .. } = self.choose_of(available, &policy.fallback, exchange)?;
                return Some(Choice { index, cookie: cookie::set(policy, exchange, self.name(index)) });
            }
        };
        Some(Choice { index, cookie: None })
    }

    fn was_tried(&self, index: usize) -> bool {
        self.tried.iter().any(|tried| Arc::ptr_eq(tried, &self.states[index]))
    }

    fn name(&self, index: usize) -> &str {
        &self.states[index].name
    }

    fn indexes(&self) -> std::ops::Range<usize> {
        0..self.states.len()
    }

    /// Of those with the least requests any.
    fn least(&self, available: &[usize]) -> Option<usize> {
        let requests = |index: &usize| self.states[*index].requests();
        let least = available.iter().map(requests).min()?;
        let best: Vec<&usize> = available.iter().filter(|index| requests(index) == least).collect();
        best.get(self.random.below(best.len())).copied().copied()
    }

    fn sample(&self, available: &[usize], count: usize) -> Vec<usize> {
        let mut left = available.to_vec();
        let picked = count.min(left.len());
        (0..picked).map(|_| left.swap_remove(self.random.below(left.len()))).collect()
    }

    fn next_in_turn(&self, available: &[usize]) -> Option<usize> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.states.len();
        available.iter().find(|index| **index >= turn).or(available.first()).copied()
    }

    fn next_by_weight(&self, available: &[usize], weights: &[u32]) -> Option<usize> {
        let weight = |index: &usize| weights.get(*index).copied().unwrap_or(0) as usize;
        let total: usize = available.iter().map(weight).sum();
        let mut turn = self.turn.fetch_add(1, Ordering::Relaxed).checked_rem(total)?;
        let found = available.iter().find(|index| match turn.checked_sub(weight(index)) {
            Some(rest) => {
                turn = rest;
                false
            }
            None => true,
        });
        found.copied()
    }

    /// Highest random weight: most keys keep their upstream when another comes or goes.
    fn by_hash(&self, available: &[usize], key: &[u8]) -> Option<usize> {
        available.iter().copied().max_by_key(|index| key::hash(self.name(*index), key))
    }
}

#[cfg(test)]
mod tests;
